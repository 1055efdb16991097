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
"""Small recordings of a synthetic room, in memory and in files, for tests of the judge."""

from dataclasses import replace
from functools import cache
import json

import cv2
import numpy as np
from rosbags.rosbag1 import Writer
from rosbags.typesys import get_typestore, Stores

from graph_depth_refiner.bags.bags import BagWriter, TYPES
from graph_depth_refiner.bags.make_bag import messages, topics
from graph_depth_refiner.files.exports import write_depth
from graph_depth_refiner.lab.evaluation.recording.sensors import Sensor
from graph_depth_refiner.lab.evaluation.recording.sources import Recording
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream

SCALE = 5000  # counts per metre of depth files
# the noise of SyntheticStream: 3 mm + 3 mm / m^2, once more for weakly lit surfaces
SENSOR = Sensor('synthetic', 0.002, 0.003, 'synthetic', ahead=30)


def in_memory(stream, length, poses=True, change=lambda frame: frame):
    """Return a recording of a synthetic stream; `change` may alter its frames."""
    @cache
    def load(number):
        frame = replace(stream.view(number).frame, confidence=None)
        return change(frame if poses else replace(frame, pose=None))

    return Recording('room', '', length, load)


def quantised(frame):
    """Return a frame whose depth survives being written to a file."""
    return replace(frame, depth=(np.rint(frame.depth * SCALE) / SCALE).astype(np.float32),
                   stamp=1 + frame.stamp)


def frames(size=(160, 120), count=40, motion='moving', seed=5):
    """Return frames as files can hold them."""
    recording = in_memory(SyntheticStream(seed, size, motion, 'independent'), count, False)
    return [quantised(recording.frame(number)) for number in range(count)]


def write_sequence(folder, chosen, sensor='structured light'):
    """Write color/NNNNN.png, depth/NNNNN.png and sequence.json."""
    for name in ('color', 'depth'):
        (folder / name).mkdir(parents=True)
    for number, frame in enumerate(chosen):
        cv2.imwrite(str(folder / 'color' / f'{number:05d}.png'), frame.image[..., ::-1])
        write_depth(folder / 'depth' / f'{number:05d}.png', frame.depth, SCALE)
    camera = chosen[0].intrinsics
    (folder / 'sequence.json').write_text(json.dumps({
        'sensor': sensor, 'depth_scale': SCALE, 'stamps': [frame.stamp for frame in chosen],
        'fx': camera.fx, 'fy': camera.fy, 'cx': camera.cx, 'cy': camera.cy}))
    return folder


def all_messages(chosen):
    """Yield the messages of frames."""
    for frame in chosen:
        yield from messages((frame, round(frame.stamp * 1e9)), False)


def write_ros2(folder, chosen, storage='mcap'):
    """Write a bag of ROS 2."""
    folder.mkdir(parents=True)
    writer = BagWriter(folder, storage, topics(False), [])
    for message in all_messages(chosen):
        writer.write(message)
    writer.finish()
    return folder


def write_ros1(path, chosen):
    """Write a bag of ROS 1."""
    store = get_typestore(Stores.ROS1_NOETIC)
    with Writer(path) as writer:
        connections = {t.name: writer.add_connection(t.name, t.kind, typestore=store)
                       for t in topics(False)}
        for m in all_messages(chosen):
            data = TYPES.cdr_to_ros1(m.data, m.kind)
            writer.write(connections[m.topic], m.time, bytes(data))
    return path
