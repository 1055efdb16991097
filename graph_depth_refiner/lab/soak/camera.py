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
"""A camera that does to the node what it is told, and remembers all of it."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable
from copy import copy
import time
from typing import Any

import cv2
import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from rclpy.time import Time
from sensor_msgs.msg import CameraInfo, CompressedImage, Image

from graph_depth_refiner.lab.benchmarks.feeder import messages
from graph_depth_refiner.lab.soak.ledger import GOOD, Ledger, LONE
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream

KINDS = {'camera_info': CameraInfo, 'image': Image, 'confidence': Image, 'depth': Image}
TRANSPORTS = {'image': 'compressed', 'depth': 'compressedDepth'}  # where they are asked for
TRANSPORT_PARAMETERS = {'image': 'image_transport', 'depth': 'depth_image_transport'}
SIZES = ((160, 120), (96, 72), (320, 240), (64, 48))
VIEWS = 8  # rendered of each size
QUEUE = 1000  # messages kept until the node has them: no loss on the way goes unnoticed
PATIENCE = 30.0  # seconds for the node to see a publisher
APART = 30_000_000  # ns at least between stamps: more than slop, so that sets do not mix


def topic_name(topic: str, compressed: bool) -> str:
    """Return the full name of a topic."""
    return f'{topic}/{TRANSPORTS[topic]}' if compressed and topic in TRANSPORTS else topic


def packed(found: dict[str, Any]) -> dict[str, Any]:
    """Return messages with image and depth compressed."""
    image, depth = found['image'], found['depth']
    pixels = np.frombuffer(image.data, np.uint8).reshape(image.height, image.width, 3)
    stored = np.frombuffer(depth.data, np.uint16).reshape(depth.height, depth.width)
    jpeg = cv2.imencode('.jpg', pixels)[1].tobytes()
    png = bytes(12) + cv2.imencode('.png', stored)[1].tobytes()
    return {
        **found,
        'image': CompressedImage(header=image.header, format='jpeg', data=array('B', jpeg)),
        'depth': CompressedImage(
            header=depth.header, format='16UC1; compressedDepth png', data=array('B', png))}


class Camera:
    """Four topics of synthetic frames; everything happens in the caller's thread."""

    def __init__(self, hz: float, seed: int, ledger: Ledger, compressed: bool = False) -> None:
        """Render the frames and advertise the topics."""
        self.node = rclpy.create_node('soak_camera')
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.ledger, self.period = ledger, 1 / hz
        self.compressed = compressed
        form = packed if compressed else dict
        self.views = {
            size: [form(messages(view.frame)) for view in SyntheticStream(seed, size).views(VIEWS)]
            for size in SIZES}
        self.size = SIZES[0]
        self.sent: Counter[str] = Counter()  # messages by topic
        self.offset = 0  # ns that the stamps are ahead of the clock
        self._excuses: list[tuple[float, frozenset[str], str]] = []  # until when
        self._recent: list[tuple[float, int]] = []  # stamps of the last moments
        self._late: list[tuple[int, str, Any]] = []  # ticks to wait, topic, message
        self._tick = 0
        self._last_stamp = 0
        self.publishers: dict[str, Any] = {}
        for topic in KINDS:
            self.advertise(topic)

    def close(self) -> None:
        """Leave the ROS graph."""
        self.executor.shutdown()
        self.node.destroy_node()

    # ------------------------------------------------------------- publishers

    def advertise(self, topic: str) -> None:
        """Begin to publish a topic."""
        packs = self.compressed and topic in TRANSPORTS
        self.publishers[topic] = self.node.create_publisher(
            CompressedImage if packs else KINDS[topic], topic_name(topic, self.compressed),
            QoSProfile(depth=QUEUE))

    def withdraw(self, topic: str) -> None:
        """Stop publishing a topic, once all of it has arrived."""
        publisher = self.publishers.pop(topic)
        publisher.wait_for_all_acked(rclpy.duration.Duration(seconds=10))
        self.node.destroy_publisher(publisher)

    def wait_for_node(self) -> None:
        """Wait until the node listens to every topic that is published."""
        end = time.monotonic() + PATIENCE
        while not all(p.get_subscription_count() for p in self.publishers.values()):
            if time.monotonic() > end:
                silent = [t for t, p in self.publishers.items() if not p.get_subscription_count()]
                raise ValueError(f'node: expected a subscription to {silent[0]}, got none')
            self.spin(0.05)

    # ----------------------------------------------------------------- sending

    def stream(self, seconds: float, each: Callable[[], None] | None = None) -> None:
        """Call `each` once per period, which sends a good frame unless given."""
        end = time.monotonic() + seconds
        due = time.monotonic()
        while time.monotonic() < end:
            self._release()
            (each or self.send)()
            self._tick += 1
            due = max(due + self.period, time.monotonic() - self.period)
            self.spin(max(0.0, due - time.monotonic()))

    def spin(self, seconds: float) -> None:
        """Take in messages and answers for a while."""
        end = time.monotonic() + seconds
        while True:
            self.executor.spin_once(max(0.0, end - time.monotonic()))
            if time.monotonic() >= end:
                return

    def frame(self) -> dict[str, Any]:
        """Return copies of the messages of the present view."""
        views = self.views[self.size]
        found = views[self._tick % len(views)]
        return {topic: copy(m) for topic, m in found.items() if topic in self.publishers}

    def send(self, changed: dict[str, Any] | None = None, without: Iterable[str] = (),
             fates: frozenset[str] | None = None, order: list[str] | None = None,
             late: dict[str, int] | None = None, keep: str = '') -> None:
        """
        Send one set, in order unless told otherwise.

        `changed` replaces messages, topics `without` are left out, those `late` are sent
        so many periods later, and the one to `keep` has its own stamp. `fates` is what may
        become of the frame.
        """
        found = {**self.frame(), **(changed or {})}
        stamp = self.next_stamp()
        left_out = set(without) | (set(KINDS) - set(self.publishers))
        needed = set(KINDS) if 'confidence' in self.publishers else set(KINDS) - {'confidence'}
        if left_out & needed:
            fates = LONE
        for topic in order or list(found):
            if topic in left_out:
                continue
            message = found[topic]
            if topic != keep:
                self._stamp(message, stamp)
            if topic == 'depth':
                self._note(stamp, fates or GOOD)
            if late and topic in late:
                self._late.append((self._tick + late[topic], topic, message))
            else:
                self._publish(topic, message)

    def stray(self, message: Any, fates: frozenset[str]) -> None:
        """Send a depth message that belongs to no set, between two sets."""
        stamp = self._last_stamp + int(5e8 * self.period)
        self._stamp(message, stamp)
        self._note(stamp, fates)
        self._publish('depth', message)

    def jump(self, seconds: float) -> None:
        """Let the stamps go on from another time."""
        self.offset += int(1e9 * seconds)
        if seconds < 0:
            self._last_stamp = 0

    def next_stamp(self) -> int:
        """Return the stamp of now, in ns, different from all before."""
        stamp = max(time.time_ns() + self.offset, self._last_stamp + APART)
        while stamp in self.ledger.sent:
            stamp += 1
        self._last_stamp = stamp
        return stamp

    def flush(self) -> None:
        """Send all that was held back."""
        for _, topic, message in self._late:
            if topic in self.publishers:
                self._publish(topic, message)
        self._late.clear()

    # ---------------------------------------------------------------- excuses

    def excuse(self, reason: str, fates: frozenset[str], before: float, after: float) -> None:
        """Let more become of the frames around now, by seconds before and after."""
        now = time.monotonic()
        for sent, stamp in self._recent:
            if sent >= now - before:
                self.ledger.excuse(stamp, fates, reason)
        self._excuses.append((now + after, fates, reason))

    def end_excuses(self) -> None:
        """Excuse nothing any more."""
        self._excuses.clear()

    def _note(self, stamp: int, fates: frozenset[str]) -> None:
        now = time.monotonic()
        self.ledger.send(stamp, now, fates)
        self._recent = [(sent, s) for sent, s in self._recent if sent > now - 10]
        self._recent.append((now, stamp))
        self._excuses = [one for one in self._excuses if one[0] > now]
        for _, more, reason in self._excuses:
            self.ledger.excuse(stamp, more, reason)

    def _release(self) -> None:
        """Send what was held back until now."""
        due = [one for one in self._late if one[0] <= self._tick]
        self._late = [one for one in self._late if one[0] > self._tick]
        for _, topic, message in due:
            if topic in self.publishers:
                self._publish(topic, message)

    @staticmethod
    def _stamp(message: Any, stamp: int) -> None:
        message.header = copy(message.header)
        message.header.stamp = Time(nanoseconds=stamp).to_msg()

    def _publish(self, topic: str, message: Any) -> None:
        self.publishers[topic].publish(message)
        self.sent[topic] += 1
