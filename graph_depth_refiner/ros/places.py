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
"""Where the camera is and how its image lies to its depth: by TF, odometry or poses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.messages.conversions import seconds
from graph_depth_refiner.messages.placement import check_sources
from graph_depth_refiner.messages.transforms import parse_transform
from graph_depth_refiner.ros.poses import Poses
from graph_depth_refiner.ros.tf import is_installed, Tf


def check_places(config: NodeConfig) -> None:
    """Refuse a configuration of places that cannot work, in one sentence."""
    check_sources(config)
    if (needed := _needs_tf(config)) and not is_installed():
        raise ValueError(
            f'{needed}: expected tf2_ros, which reads TF, got none installed; odometry_topic with '
            'camera_in_body, or camera_pose_topic, need none')


def _needs_tf(config: NodeConfig) -> str:
    """Return the parameter by which poses come from TF, if one does."""
    if config.fixed_frame:
        return 'fixed_frame'
    return 'camera_in_body' if config.odometry_topic and not config.camera_in_body else ''


class LivePlaces:
    """The places of frames by what comes in; asked by the worker, which may wait."""

    def __init__(self, node: Any, config: NodeConfig, timeout: Callable[[], float]) -> None:
        """Listen to TF where it is of use; the configuration was checked."""
        self._config, self._timeout = config, timeout
        self._camera_in_body = parse_transform('camera_in_body', config.camera_in_body)
        self.poses = Poses()
        useful = is_installed() and (_needs_tf(config) or config.image_info_topic)
        self._tf = Tf(node) if useful else None

    @property
    def wanted(self) -> bool:
        """Say whether poses are asked for."""
        config = self._config
        return bool(config.camera_pose_topic or config.odometry_topic or config.fixed_frame)

    def transform(self, target: str, source: str, stamp: Any) -> np.ndarray | None:
        """Return the matrix (4 4) from `source` to `target`, None where unknown."""
        return self._tf and self._tf.lookup(target, source, stamp, self._timeout())

    def pose(self, frame: str, stamp: Any) -> np.ndarray | None:
        """Return where a camera frame is in a fixed one, a matrix (4 4); None where unknown."""
        config = self._config
        if config.camera_pose_topic:
            return self.poses.at(seconds(stamp), self._timeout())
        if config.odometry_topic:
            return self._by_odometry(frame, stamp)
        return self._moving(config.fixed_frame, frame, stamp) if config.fixed_frame else None

    def _moving(self, target: str, source: str, stamp: Any) -> np.ndarray | None:
        """Return the matrix (4 4) of a transform, waiting for it unless it has stopped coming."""
        if self._tf is None:
            return None
        current = self._tf.is_current(target, source, stamp)
        return self._tf.lookup(target, source, stamp, self._timeout() if current else 0.0)

    def _by_odometry(self, frame: str, stamp: Any) -> np.ndarray | None:
        pose, camera = self.poses.at(seconds(stamp), self._timeout()), self._camera_in_body
        if pose is not None and camera is None:
            camera = self._moving(self.poses.body, frame, stamp)
        return None if pose is None or camera is None else pose @ camera

    def clear(self) -> None:
        """Forget what moves, as the stream starts anew."""
        self.poses.clear()
        if self._tf:
            self._tf.clear()

    def destroy(self) -> None:
        """Stop listening."""
        if self._tf:
            self._tf.destroy()
