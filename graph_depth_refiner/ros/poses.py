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
"""Camera poses known from odometry, found again by the stamp of a depth image."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from graph_depth_refiner.messages.conversions import seconds

KEPT = 500  # a second or more of fast odometry


def pose_matrix(pose: Any) -> np.ndarray:
    """Return a Pose message as a matrix (4 4), camera to world; ValueError if it is none."""
    q = np.array([pose.orientation.x, pose.orientation.y, pose.orientation.z,
                  pose.orientation.w])
    length = np.linalg.norm(q)
    if not (np.isfinite(length) and length > 0.5):
        raise ValueError(f'camera_pose.orientation: expected a quaternion, got {q.tolist()}')
    x, y, z, w = q / length
    matrix = np.eye(4)
    matrix[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]
    matrix[:3, 3] = pose.position.x, pose.position.y, pose.position.z
    if not np.isfinite(matrix).all():
        raise ValueError('camera_pose.position: expected finite numbers, got others')
    return matrix


class Poses:
    """The last poses by stamp."""

    def __init__(self) -> None:
        """Start knowing none."""
        self._poses: deque[tuple[float, np.ndarray]] = deque(maxlen=KEPT)

    def add(self, message: Any) -> None:
        """Take in a PoseStamped message."""
        self._poses.append((seconds(message.header.stamp), pose_matrix(message.pose)))

    def at(self, stamp: float, slop: float) -> np.ndarray | None:
        """Return the pose nearest in time, or None where none is near."""
        nearest = min(self._poses, key=lambda known: abs(known[0] - stamp), default=None)
        return nearest[1] if nearest and abs(nearest[0] - stamp) <= slop else None

    def clear(self) -> None:
        """Forget all."""
        self._poses.clear()
