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
"""The filters of librealsense itself, fed through its software device."""

from __future__ import annotations

import numpy as np

from graph_depth_refiner.frame import Intrinsics

UNITS = 1e-3  # metres per count of a Z16 depth image
BASELINE = 0.05  # metres, of a D400; its disparity domain asks for one
WAIT_MS = 2000


class LibrealsenseFilter:
    """Spatial, temporal and hole filling filters with their defaults, in the disparity domain."""

    def __init__(self, shape: tuple[int, int], intrinsics: Intrinsics) -> None:
        """Make a software device for depth images of this shape."""
        import pyrealsense2 as rs  # optional, and it needs libusb

        self._rs = rs
        self._shape = shape
        self._number = 0
        self._device = rs.software_device()
        self._sensor = self._device.add_sensor('Depth')
        stream = rs.video_stream()
        stream.type, stream.fmt = rs.stream.depth, rs.format.z16
        stream.index, stream.uid, stream.fps, stream.bpp = 0, 0, 30, 2
        stream.height, stream.width = shape
        camera = rs.intrinsics()
        camera.height, camera.width = shape
        camera.fx, camera.fy = intrinsics.fx, intrinsics.fy
        camera.ppx, camera.ppy = intrinsics.cx, intrinsics.cy
        stream.intrinsics = camera
        self._profile = self._sensor.add_video_stream(stream)
        self._sensor.add_read_only_option(rs.option.depth_units, UNITS)
        self._sensor.add_read_only_option(
            rs.option.stereo_baseline, (intrinsics.baseline or BASELINE) / UNITS)
        self._queue = rs.frame_queue(2)
        self._sensor.open(self._profile)
        self._sensor.start(self._queue)
        self.reset()

    def reset(self) -> None:
        """Forget all earlier images."""
        rs = self._rs
        self._filters = [
            rs.disparity_transform(True), rs.spatial_filter(), rs.temporal_filter(),
            rs.disparity_transform(False), rs.hole_filling_filter()]

    def run(self, depth: np.ndarray) -> np.ndarray:
        """Filter one depth image in metres; NaN where unknown."""
        counts = np.nan_to_num(depth, posinf=0, neginf=0) / UNITS
        counts = np.clip(np.rint(counts), 0, np.iinfo(np.uint16).max).astype(np.uint16)
        frame = self._rs.software_video_frame()
        frame.pixels = counts
        frame.bpp, frame.stride = 2, 2 * self._shape[1]
        frame.timestamp = 1000.0 / 30 * self._number
        frame.domain = self._rs.timestamp_domain.hardware_clock
        frame.frame_number = self._number
        frame.profile = self._profile.as_video_stream_profile()
        frame.depth_units = UNITS
        self._number += 1
        self._sensor.on_video_frame(frame)
        current = self._queue.wait_for_frame(WAIT_MS)
        for step in self._filters:
            current = step.process(current)
        filtered = np.asanyarray(current.get_data()).astype(np.float32) * np.float32(UNITS)
        return np.where(filtered > 0, filtered, np.float32(np.nan))  # H W

    def close(self) -> None:
        """Stop the software device."""
        self._sensor.stop()
        self._sensor.close()
