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
"""Command `make-bag`: turn an RGB-D data set into a ROS 2 recording."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from graph_depth_refiner.bags.bags import (
    BagWriter,
    Message,
    message_bytes,
    STORAGES,
    Topic,
    TYPES,
)
from graph_depth_refiner.bags.topics import CAMERA_INFO, COMPRESSED, IMAGE
from graph_depth_refiner.cli.progress import Progress
from graph_depth_refiner.files.pictures import image_colors
from graph_depth_refiner.frame import Frame
from graph_depth_refiner.lab.evaluation.datasets import READERS, RgbdScene
from graph_depth_refiner.messages.outgoing import depth_fields, image_fields

# the names of the TUM recordings
IMAGE_TOPIC = '/camera/rgb/image_color'
INFO_TOPIC = '/camera/rgb/camera_info'
DEPTH_TOPIC = '/camera/depth/image'
OPTICAL_FRAME = 'camera_rgb_optical_frame'
PERIOD = 1 / 30  # seconds between frames that have no stamps
DEPTH_HEADER = bytes(12)  # of compressedDepth; only 32FC1 has something to say there


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    kinds = [name for name in READERS if name not in ('middlebury', 'kitti')]
    parser.add_argument('kind', choices=kinds, help='data set')
    parser.add_argument('folder', type=Path, help='its folder')
    parser.add_argument('target', type=Path, help='new folder for the recording')
    parser.add_argument(
        '--storage', choices=tuple(STORAGES), default='mcap', help='(default: %(default)s)')
    parser.add_argument(
        '--frames', type=int, default=0, metavar='N', help='the first N only; 0 is all')
    parser.add_argument(
        '--compressed', action='store_true', help='JPEG images and compressedDepth PNG')


def run(args: argparse.Namespace) -> int:
    """Write the recording."""
    scenes = READERS[args.kind](args.folder)
    count = min(args.frames, len(scenes)) if args.frames > 0 else len(scenes)
    if args.target.exists():
        raise ValueError(f'{args.target}: expected a new folder, got one that exists')
    args.target.mkdir(parents=True)
    progress = Progress('frames', count)
    writer = BagWriter(args.target, args.storage, topics(args.compressed), [])
    for number in range(count):
        for message in messages(stamped(scenes[number], number), args.compressed):
            writer.write(message)
        progress.advance()
    writer.finish()
    progress.close()
    print(f'{args.target}: {count} frames')
    return 0


def topics(compressed: bool) -> list[Topic]:
    """Return the topics of the recording."""
    if compressed:
        return [Topic(f'{IMAGE_TOPIC}/compressed', COMPRESSED), Topic(INFO_TOPIC, CAMERA_INFO),
                Topic(f'{DEPTH_TOPIC}/compressedDepth', COMPRESSED)]
    return [Topic(IMAGE_TOPIC, IMAGE), Topic(INFO_TOPIC, CAMERA_INFO), Topic(DEPTH_TOPIC, IMAGE)]


def stamped(scene: RgbdScene, number: int) -> tuple[Frame, int]:
    """Return the frame of a scene and its time in nanoseconds."""
    stamp = scene.frame.stamp or 1 + number * PERIOD
    return scene.frame, round(stamp * 1e9)


def messages(frame_at: tuple[Frame, int], compressed: bool) -> Iterator[Message]:
    """Yield image, camera_info and depth of a frame as messages of one stamp."""
    frame, time = frame_at
    header = make_header(time)
    colors = image_colors(frame.image)
    if compressed:
        jpeg = cv2.imencode('.jpg', colors[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 95])[1]
        image = {'format': 'rgb8; jpeg compressed bgr8', 'data': jpeg.reshape(-1)}
        depth = _compressed_depth(frame.depth)
    else:
        image, depth = image_fields(colors, 'rgb8'), depth_fields(frame.depth, '32FC1')
    fields = (image, info_fields(frame), depth)
    for topic, part in zip(topics(compressed), fields, strict=True):
        yield Message(topic.name, topic.kind, time, message_bytes(topic.kind, header, part))


def make_header(time: int, frame_id: str = OPTICAL_FRAME) -> Any:
    """Return a header for a time in nanoseconds."""
    stamp = TYPES.types['builtin_interfaces/msg/Time'](time // 10 ** 9, time % 10 ** 9)
    return TYPES.types['std_msgs/msg/Header'](stamp, frame_id)


def info_fields(frame: Frame) -> dict[str, Any]:
    """Return the fields of the CameraInfo of an undistorted frame."""
    i = frame.intrinsics
    height, width = frame.depth.shape
    return {
        'height': height, 'width': width, 'distortion_model': 'plumb_bob', 'd': [0.0] * 5,
        'k': [i.fx, 0, i.cx, 0, i.fy, i.cy, 0, 0, 1], 'r': [1, 0, 0, 0, 1, 0, 0, 0, 1],
        'p': [i.fx, 0, i.cx, 0, 0, i.fy, i.cy, 0, 0, 0, 1, 0], 'binning_x': 0, 'binning_y': 0,
        'roi': TYPES.types['sensor_msgs/msg/RegionOfInterest'](0, 0, 0, 0, False),
    }


def _compressed_depth(depth: np.ndarray) -> dict[str, Any]:
    stored = np.frombuffer(depth_fields(depth, '16UC1')['data'], np.uint16).reshape(depth.shape)
    png = cv2.imencode('.png', stored)[1].tobytes()
    data = np.frombuffer(DEPTH_HEADER + png, np.uint8)
    return {'format': '16UC1; compressedDepth png', 'data': data}
