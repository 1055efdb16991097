# Copyright 2026 graph_depth_refiner contributors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Subscriptions and publishers of the node, with their quality of service."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
import time
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.qos import (
    qos_check_compatible,
    qos_policy_name_from_kind,
    qos_profile_sensor_data,
    QoSCompatibility,
    QoSHistoryPolicy,
    QoSPolicyKind,
    QoSProfile,
    QoSReliabilityPolicy,
)
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.validate_topic_name import validate_topic_name
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from stereo_msgs.msg import DisparityImage

from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.messages.assembly import OUTPUTS
from graph_depth_refiner.messages.conversions import seconds
from graph_depth_refiner.messages.outgoing import Room
from graph_depth_refiner.ros.messages import KeptMessage, message_type
from graph_depth_refiner.ros.node_main import one_line
from graph_depth_refiner.ros.watch import TopicWatch

try:
    from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import PublisherEventCallbacks, SubscriptionEventCallbacks

OUTPUT_QUALITY = QoSProfile(
    depth=5,  # messages kept for reliable readers that are late
    reliability=QoSReliabilityPolicy.RELIABLE)
LARGEST_DEPTH = 100000  # messages kept; far more than memory has room for
OVERRIDABLE = (
    QoSPolicyKind.HISTORY, QoSPolicyKind.DEPTH, QoSPolicyKind.RELIABILITY,
    QoSPolicyKind.DURABILITY)


class InputTopic:
    """One subscription, ended and begun again: watches it, explains whom it cannot hear."""

    def __init__(self, node: Any, role: str, kind: type, topic: str,
                 on_message: Callable[[str, Any], None]) -> None:
        """Subscribe with sensor-data quality unless overridden."""
        self.role = role
        self.watch = TopicWatch()
        self._unmet = ''  # the QoS policy of the newest publisher that does not match
        self._node, self._on_message = node, on_message
        self.name = _resolved(node, role, topic)
        self._create = partial(
            _with_quality, f'qos_overrides.{self.name}.subscription', qos_profile_sensor_data,
            partial(node.create_subscription, kind, topic, self._receive),
            event_callbacks=SubscriptionEventCallbacks(incompatible_qos=self._incompatible))
        self._subscription = self._create()
        self._quality = self._subscription.qos_profile

    @property
    def publishers(self) -> int:
        """Return how many publish on the topic."""
        return self._node.count_publishers(self.name)

    @property
    def incompatible(self) -> str:
        """Name the QoS policy that a publisher does not meet, as long as there is one."""
        matches = (
            qos_check_compatible(one.qos_profile, self._quality)[0] != QoSCompatibility.ERROR
            for one in self._node.get_publishers_info_by_topic(self.name))
        return '' if all(matches) else self._unmet

    def counted(self) -> str:
        """Say how many publish on the topic."""
        number = self.publishers
        return f'{number} publisher{"" if number == 1 else "s"} on {self.name}'

    def remedy(self) -> str:
        """Say which setting would meet the publishers that do not match."""
        policy = self._unmet.lower()
        offered = _values(self._node.get_publishers_info_by_topic(self.name), policy)
        return (f'set parameter qos_overrides.{self.name}.subscription.{policy} to '
                f'{offered or "what the publisher offers"}, or change the publisher')

    def listen(self, wanted: bool) -> None:
        """Begin or end the subscription; what was counted stays."""
        if wanted and self._subscription is None:
            self._subscription = self._create()
        elif not wanted and self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None

    def destroy(self) -> None:
        """End the subscription."""
        self.listen(False)

    def _receive(self, message: Any) -> None:
        self.watch.note(seconds(message.header.stamp), time.monotonic())
        self._on_message(self.role, message)

    def _incompatible(self, event: Any) -> None:
        self._unmet = qos_policy_name_from_kind(event.last_policy_kind)
        self._node.get_logger().error(
            f'{self.role}: a publisher on {self.name} offers incompatible '
            f'{self._unmet}, nothing will be heard from it; {self.remedy()}')


def input_topics(node: Any, config: NodeConfig,
                 on_message: Callable[[str, Any], None]) -> dict[str, InputTopic]:
    """Subscribe to what the configuration names, by role."""
    def subscribe(role: str, kind: type, topic: str, transport: str = 'raw') -> None:
        if transport != 'raw':
            # as image_transport does it: remap the base name, then append
            topic = f'{_resolved(node, role, topic)}/{transport}'
        topics[role] = InputTopic(node, role, kind, topic, on_message)

    topics: dict[str, InputTopic] = {}
    subscribe('image', Image if config.image_transport == 'raw' else CompressedImage,
              config.image_topic, config.image_transport)
    if config.input_kind == 'disparity':
        subscribe('disparity', DisparityImage, config.disparity_topic)
    else:
        subscribe('depth', Image if config.depth_image_transport == 'raw' else CompressedImage,
                  config.depth_topic, config.depth_image_transport)
    subscribe('camera_info', CameraInfo, config.camera_info_topic)
    if config.image_info_topic:
        subscribe('image_info', CameraInfo, config.image_info_topic)
    if config.use_confidence != 'never':
        subscribe('confidence', Image, config.confidence_topic)
    return topics


def _resolved(node: Any, role: str, topic: str) -> str:
    """Return the full name of a topic, or raise ValueError where it is none."""
    try:
        validate_topic_name(topic)
        return node.resolve_topic_name(topic)
    except Exception as error:  # of several kinds
        raise ValueError(
            f'{role}_topic: expected a name of a topic, got {topic!r} ({one_line(error)})'
        ) from None


def _with_quality(name: str, quality: QoSProfile, create: Callable[..., Any],
                  **options: Any) -> Any:
    """Create a publisher or subscription whose quality can be overridden, or ValueError."""
    try:
        # rclpy writes the overrides into the profile it is given
        return create(copy(quality), qos_overriding_options=QoSOverridingOptions(
            OVERRIDABLE, callback=_usable), **options)
    except Exception as error:  # of several kinds
        raise ValueError(
            f'{name}: expected values that are a quality of service, got others '
            f'({one_line(error)})') from None


def _usable(quality: QoSProfile) -> SetParametersResult:
    """Refuse what the middleware refuses with a page of text."""
    if quality.history == QoSHistoryPolicy.UNKNOWN:
        return SetParametersResult(successful=False, reason='history is unknown')
    if not 0 <= quality.depth <= LARGEST_DEPTH:
        return SetParametersResult(
            successful=False, reason=f'depth is {quality.depth}, not 0 to {LARGEST_DEPTH}')
    return SetParametersResult(successful=True)


def _values(endpoints: list[Any], policy: str) -> str:
    """Name the values that endpoints of a topic have for a policy."""
    found = {getattr(one.qos_profile, policy, None) for one in endpoints}
    return ' or '.join(sorted(value.name.lower() for value in found if hasattr(value, 'name')))


def _published(node: Any, topic: str) -> str:
    """Return the full name of an output; a transport follows the name of what it compresses."""
    base, _, transport = topic.rpartition('/')
    if base in OUTPUTS:
        return f'{node.resolve_topic_name(base)}/{transport}'
    return node.resolve_topic_name(topic)


class OutputTopics:
    """The publishers; reliable unless overridden."""

    def __init__(self, node: Any, topics: list[str]) -> None:
        """Advertise the topics."""
        self._node = node
        kinds = {
            topic: message_type(OUTPUTS[topic].package, OUTPUTS[topic].type_name)
            for topic in topics}
        self._names = {topic: _published(node, topic) for topic in topics}
        self._messages = {topic: KeptMessage(kind) for topic, kind in kinds.items()}
        self._publishers = {
            topic: _with_quality(
                f'qos_overrides.{self._names[topic]}.publisher', OUTPUT_QUALITY,
                partial(node.create_publisher, kind, self._names[topic]),
                event_callbacks=PublisherEventCallbacks(
                    incompatible_qos=partial(self._incompatible, topic)))
            for topic, kind in kinds.items()}

    def _incompatible(self, topic: str, event: Any) -> None:
        name = self._names[topic]
        policy = qos_policy_name_from_kind(event.last_policy_kind).lower()
        wanted = _values(self._node.get_subscriptions_info_by_topic(name), policy)
        self._node.get_logger().error(
            f'{topic}: a subscriber to {name} asks for incompatible {policy} and will hear '
            f'nothing; set parameter qos_overrides.{name}.publisher.{policy} to '
            f'{wanted or "what it asks for"}, or change the subscriber')

    def wanted(self) -> list[str]:
        """Return the topics somebody listens to."""
        return [
            topic for topic, publisher in self._publishers.items()
            if publisher.get_subscription_count()]

    def any_wanted(self) -> bool:
        """Tell whether somebody listens to anything."""
        return any(one.get_subscription_count() for one in self._publishers.values())

    def publish(self, topic: str, header: Any, make: Callable[[Room], dict[str, Any]]) -> None:
        """Publish the fields that are made in the memory of the message before."""
        self.forward(topic, self._messages[topic].filled(header, make))

    def forward(self, topic: str, message: Any) -> None:
        """Publish a message as it is."""
        self._publishers[topic].publish(message)

    def destroy(self) -> None:
        """End all publishers."""
        for publisher in self._publishers.values():
            self._node.destroy_publisher(publisher)
