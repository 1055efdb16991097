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
"""Where the cameras of a recording are, by its /tf, odometry or poses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from graph_depth_refiner.bags.bags import Bag
from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.messages.conversions import seconds
from graph_depth_refiner.messages.placement import check_sources
from graph_depth_refiner.messages.transforms import (
    parse_transform,
    pose_row,
    Track,
    TransformTree,
)

TRANSFORMS = 'tf2_msgs/msg/TFMessage'
ODOMETRY = 'nav_msgs/msg/Odometry'
POSE = 'geometry_msgs/msg/PoseStamped'
STATIC = 'tf_static'  # how the name of the topic ends


class BagPlaces:
    """The places of frames in a recording, read from it when one is asked for."""

    def __init__(self, bag: Bag, config: NodeConfig) -> None:
        """Read nothing yet, but refuse what is not there."""
        self._bag, self._config = bag, config
        check_sources(config)
        for name, kind in (('camera_pose_topic', POSE), ('odometry_topic', ODOMETRY)):
            topic = getattr(config, name)
            known = [one.name for one in bag.topics() if one.kind == kind]
            if topic and topic not in known:
                raise ValueError(f'{name}: expected a topic of {kind} in the recording, one of '
                                 f'{", ".join(known) or "none"}, got {topic!r}')
        self._camera_in_body = parse_transform('camera_in_body', config.camera_in_body)

    @property
    def wanted(self) -> bool:
        """Say whether poses are asked for."""
        config = self._config
        return bool(config.camera_pose_topic or config.odometry_topic or config.fixed_frame)

    def transform(self, target: str, source: str, stamp: Any) -> np.ndarray | None:
        """Return the matrix (4 4) from `source` to `target`, None where unknown."""
        return self._tree.lookup(target, source, seconds(stamp))

    def pose(self, frame: str, stamp: Any) -> np.ndarray | None:
        """Return where a camera frame is in a fixed one, a matrix (4 4); None where unknown."""
        if self._config.camera_pose_topic:
            return self._poses.at(seconds(stamp))
        if self._config.odometry_topic:
            return self._by_odometry(frame, seconds(stamp))
        if self._config.fixed_frame:
            return self.transform(self._config.fixed_frame, frame, stamp)
        return None

    def _by_odometry(self, frame: str, stamp: float) -> np.ndarray | None:
        track, body = self._odometry
        pose, camera = track.at(stamp), self._camera_in_body
        if camera is None:
            camera = self._tree.lookup(body, frame, stamp)
        return None if pose is None or camera is None else pose @ camera

    @cached_property
    def _tree(self) -> TransformTree:
        tree = TransformTree()
        for topic, message in self._decoded(
                [one.name for one in self._bag.topics() if one.kind == TRANSFORMS]):
            for one in message.transforms:
                with suppress(ValueError):  # one bad transform is no reason to lose the others
                    tree.add(one, seconds(one.header.stamp), topic.endswith(STATIC))
        return tree

    @cached_property
    def _poses(self) -> Track:
        track = Track()
        for _, message in self._decoded([self._config.camera_pose_topic]):
            with suppress(ValueError):
                track.add(seconds(message.header.stamp), pose_row('camera_pose', message.pose))
        return track

    @cached_property
    def _odometry(self) -> tuple[Track, str]:
        track, body = Track(), ''
        for _, message in self._decoded([self._config.odometry_topic]):
            body = message.child_frame_id
            with suppress(ValueError):
                track.add(seconds(message.header.stamp), pose_row('odometry', message.pose.pose))
        return track, body

    def _decoded(self, topics: list[str]) -> Iterator[tuple[str, Any]]:
        """Yield topics and messages, but for damaged ones."""
        for one in self._bag.messages(topics):
            try:
                message = one.decoded()
            except ValueError:
                continue
            yield one.topic, message
