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
"""Node `demo_camera`: a synthetic or recorded depth camera, with the truth on its own topics."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import rclpy
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Header

from graph_depth_refiner.files.pictures import image_colors
from graph_depth_refiner.lab.demo.sources import (
    recorded_bag,
    recorded_folder,
    Sample,
    synthetic,
    to_and_fro,
)
from graph_depth_refiner.lab.synthetic.stream import COMMAND_ROOM, COMMAND_SENSOR
from graph_depth_refiner.messages.outgoing import image_fields
from graph_depth_refiner.ros.messages import filled
from graph_depth_refiner.ros.spinning import until_shutdown

FRAME_ID = 'demo_camera_optical_frame'
QUEUE = 5
LISTENERS = 2  # the refiner and the monitor
PATIENCE = 30.0  # seconds to wait for them


class DemoCamera(Node):
    """Publishes its frames to and fro at a steady rate, once somebody listens."""

    def __init__(self) -> None:
        """Load or render the frames."""
        super().__init__('demo_camera')
        source = self.declare_parameter('source', 'synthetic').value
        path = Path(self.declare_parameter('path', '').value)
        seed = self.declare_parameter('seed', 0).value
        size = tuple(self.declare_parameter('size', [320, 240]).value)
        count = self.declare_parameter('frames', 30).value
        sensor = self.declare_parameter('sensor', COMMAND_SENSOR).value
        room = self.declare_parameter('room', COMMAND_ROOM).value
        self._period = 1 / self.declare_parameter('rate', 10.0).value
        if source == 'synthetic':
            self._samples = synthetic(seed, size, count, sensor, room)
        else:
            self._samples = _recorded(source, path, count)
        # no topic without messages: the refiner waits for a confidence that somebody publishes
        names = ['image', 'depth', 'camera_info', 'truth/depth', 'truth/normals']
        if self._samples and self._samples[0].frame.confidence is not None:
            names.append('confidence')
        self._outputs = {
            name: self.create_publisher(_kind(name), name, QUEUE) for name in names}
        self._order = to_and_fro(len(self._samples))
        self._asked = self.get_clock().now()
        self._timer = self.create_timer(0.1, self._wait)
        self.get_logger().info(f'{len(self._samples)} frames at {1 / self._period:g} Hz')

    def _wait(self) -> None:
        """Start when all listen, so that nobody misses the beginning."""
        waited = (self.get_clock().now() - self._asked).nanoseconds * 1e-9
        if self._outputs['depth'].get_subscription_count() < LISTENERS and waited < PATIENCE:
            return
        self.destroy_timer(self._timer)
        self._timer = self.create_timer(self._period, self._publish)

    def _publish(self) -> None:
        header = Header(stamp=self.get_clock().now().to_msg(), frame_id=FRAME_ID)
        for name, message in _messages(self._samples[next(self._order)], header).items():
            self._outputs[name].publish(message)


def _kind(name: str) -> type:
    return CameraInfo if name == 'camera_info' else Image


def _recorded(source: str, path: Path, count: int) -> list[Sample]:
    known = {'bag': recorded_bag, 'folder': recorded_folder}
    if source not in known:
        raise ValueError(f'source: expected synthetic, bag or folder, got {source!r}')
    return known[source](path, count)


def _messages(sample: Sample, header: Header) -> dict[str, Any]:
    frame = sample.frame
    camera = frame.intrinsics
    height, width = frame.depth.shape
    images = {
        'image': (image_colors(frame.image), 'rgb8'), 'depth': (frame.depth, '32FC1'),
        'truth/depth': (sample.depth, '32FC1'), 'truth/normals': (sample.normals, '32FC3')}
    if frame.confidence is not None:
        images['confidence'] = (frame.confidence, '32FC1')
    messages = {
        name: filled(Image, header, image_fields(pixels, encoding))
        for name, (pixels, encoding) in images.items()}
    messages['camera_info'] = CameraInfo(
        header=header, height=height, width=width, distortion_model='plumb_bob', d=[0.0] * 5,
        k=[camera.fx, 0.0, camera.cx, 0.0, camera.fy, camera.cy, 0.0, 0.0, 1.0],
        p=[camera.fx, 0.0, camera.cx, 0.0, 0.0, camera.fy, camera.cy, 0.0, 0.0, 0.0, 1.0, 0.0])
    return messages


def main() -> int:
    """Run the node until it is told to end."""
    rclpy.init()
    try:
        with until_shutdown():
            rclpy.spin(DemoCamera())
    except (KeyboardInterrupt, BrokenExecutor):
        pass
    except ValueError as error:
        rclpy.logging.get_logger('demo_camera').error(str(error))
        return 2
    finally:
        rclpy.try_shutdown()
    return 0
