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
"""Camera poses of a topic, found again by the stamp of a depth image."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from graph_depth_refiner.messages.conversions import seconds
from graph_depth_refiner.messages.transforms import LONGEST_GAP, pose_row, Track

KEPT = 500  # a second or more of fast odometry


class Poses:
    """The last poses by stamp; taken in by one thread, asked for by another."""

    def __init__(self) -> None:
        """Start knowing none."""
        self._track, self.body = Track(KEPT), ''
        self._news = threading.Condition()

    def add(self, role: str, message: Any) -> None:
        """Take in a PoseStamped or Odometry message; ValueError where it is no pose."""
        pose = getattr(message.pose, 'pose', message.pose)  # that of odometry has a covariance
        row = pose_row(role, pose)
        with self._news:
            self._track.add(seconds(message.header.stamp), row)
            self.body = getattr(message, 'child_frame_id', '')
            self._news.notify_all()

    def at(self, stamp: float, timeout: float) -> np.ndarray | None:
        """
        Return the pose (4 4) at a moment, interpolated; None where it lies outside of them.

        Waits for the pose after it, unless no poses come any more.
        """
        with self._news:
            if self._track.newest > stamp - LONGEST_GAP:
                self._news.wait_for(lambda: self._track.newest >= stamp, timeout)
            return self._track.at(stamp)

    def clear(self) -> None:
        """Forget all."""
        with self._news:
            self._track.clear()
