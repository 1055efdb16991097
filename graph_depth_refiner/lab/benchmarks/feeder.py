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
"""
A camera of its own process for the benchmark of the node.

Frames are rendered and serialised beforehand; only the stamps are new, so that the camera
takes as little from the machine as a real driver would.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
import signal
import struct
import time
from typing import Any

import numpy as np
import rclpy
from rclpy.qos import qos_profile_sensor_data
from rclpy.serialization import serialize_message
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Header

from graph_depth_refiner.frame import Frame
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream
from graph_depth_refiner.messages.outgoing import depth_fields, image_fields
from graph_depth_refiner.ros.messages import filled

STAMP = struct.Struct('<iI')  # of a serialised header, after four bytes of encapsulation
FRAME_ID = 'camera_optical_frame'


def messages(frame: Frame, encoding: str = '16UC1') -> dict[str, Any]:
    """Return the messages of a frame by topic."""
    header = Header(frame_id=FRAME_ID)
    i = frame.intrinsics
    height, width = frame.depth.shape
    info = CameraInfo(
        header=header, height=height, width=width, distortion_model='plumb_bob', d=[0.0] * 5,
        k=[i.fx, 0.0, i.cx, 0.0, i.fy, i.cy, 0.0, 0.0, 1.0],
        r=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        p=[i.fx, 0.0, i.cx, 0.0, 0.0, i.fy, i.cy, 0.0, 0.0, 0.0, 1.0, 0.0])
    found = {
        'camera_info': info,
        'image': filled(Image, header, image_fields(frame.image, 'rgb8')),
        'depth': filled(Image, header, depth_fields(frame.depth, encoding)),
    }
    if frame.confidence is not None:
        confidence = frame.confidence.astype(np.float32)
        found['confidence'] = filled(Image, header, image_fields(confidence, '32FC1'))
    return found


def stamped(data: bytes, stamp: float) -> bytes:
    """Return a serialised message with another stamp in its header."""
    seconds = int(stamp)
    changed = STAMP.pack(seconds, int((stamp - seconds) * 1e9))
    return b''.join((data[:4], changed, memoryview(data)[4 + STAMP.size:]))


def main() -> None:
    """Publish at a fixed rate until SIGTERM, then write the stamps to a file."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--size', type=int, nargs=2)
    parser.add_argument('--hz', type=float)
    parser.add_argument('--frames', type=int)
    parser.add_argument('--seed', type=int)
    parser.add_argument('--sent', type=Path)
    args = parser.parse_args()
    stop: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _: stop.append(got))
    stream = SyntheticStream(seed=args.seed, size=tuple(args.size))
    stored = [
        {topic: serialize_message(message) for topic, message in messages(view.frame).items()}
        for view in stream.views(args.frames)]
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node('feeder')
    kinds = {'camera_info': CameraInfo}
    publishers = {
        topic: node.create_publisher(kinds.get(topic, Image), topic, qos_profile_sensor_data)
        for topic in stored[0]}
    # there and back again, so that the view never jumps
    order = itertools.cycle([*range(args.frames), *range(args.frames - 2, 0, -1)])
    sent = []
    due = time.time()
    while not stop:
        due = max(due + 1 / args.hz, time.time() - 1 / args.hz)
        time.sleep(max(0.0, due - time.time()))
        stamp = time.time()
        for topic, data in stored[next(order)].items():
            publishers[topic].publish(stamped(data, stamp))
        sent.append(round(stamp, 6))
    args.sent.write_text(json.dumps(sent))
    rclpy.try_shutdown()


if __name__ == '__main__':
    main()
