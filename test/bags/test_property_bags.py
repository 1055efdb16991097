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
"""Recordings and stored messages, whole or damaged, are read or refused in words."""

from pathlib import Path
import shutil
import tempfile

from hostile import bounded, outcome, tampered
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from graph_depth_refiner.bags.bags import BagWriter, Message, METADATA, reading
from graph_depth_refiner.bags.frames import plan_frames
from graph_depth_refiner.bags.make_bag import messages, topics
from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.messages.assembly import Assembler, Inputs

MAX_PIXELS = 4096
CONFIG = NodeConfig(max_pixels=MAX_PIXELS)
FRAME = Frame(
    np.full((6, 8, 3), 90, np.uint8), np.linspace(1, 2, 48, dtype=np.float32).reshape(6, 8),
    Intrinsics(9.0, 9.0, 4.0, 3.0))
SECOND = 10 ** 9


def stored(compressed):
    """Return image, camera_info and depth as a recording holds them."""
    return list(messages((FRAME, SECOND), compressed))


def assembled(parts):
    """Decode three stored messages into a frame."""
    image, info, depth = (message.decoded() for message in parts)
    return Assembler().assemble(Inputs(image, depth, info), CONFIG).frame


for _ in (False, True):  # rosbags compiles what it needs; no example is to be billed for it
    assembled(stored(_))


@given(st.data(), st.booleans())
def test_stored_messages(data, compressed):
    parts = stored(compressed)
    at = data.draw(st.integers(0, 2))
    whole = parts[at]
    parts[at] = Message(
        whole.topic, whole.kind, whole.time, data.draw(tampered(whole.data)))
    size = sum(len(part.data) for part in parts)
    frame = bounded(MAX_PIXELS, size, assembled, parts)
    outcome(parts[at].stamp)
    if frame is not None:
        assert frame.depth.size <= MAX_PIXELS


@given(st.sampled_from(['sensor_msgs/msg/Image', 'sensor_msgs/msg/CameraInfo',
                        'sensor_msgs/msg/CompressedImage', 'stereo_msgs/msg/DisparityImage',
                        'no_msgs/msg/Such', '']), st.binary(max_size=200))
def test_arbitrary_bytes_as_a_message(kind, data):
    message = Message('/topic', kind, 0, data)
    outcome(message.decoded)
    outcome(message.stamp)


def read_all(path):
    """Read a recording as refine-bag does: plan its frames, then decode each."""
    with reading(path) as bag:
        plan = plan_frames(bag, 0.1)
        kept = list(bag.messages())
        for frame in plan.frames:
            assembled([kept[n] for n in (frame.image, frame.camera_info, frame.depth)])
        return len(plan.frames)


@pytest.fixture(scope='module', params=['mcap', 'sqlite3'])
def recording(request):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / 'whole'
        folder.mkdir()
        writer = BagWriter(folder, request.param, topics(False), [])
        for number in range(3):
            for message in messages((FRAME, SECOND * (number + 1)), False):
                writer.write(message)
        writer.finish()
        yield folder


def damage(recording, name, data):
    """Return a copy of the recording with another content of one file."""
    copy = recording.parent / 'damaged'
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(recording, copy)
    (copy / name).write_bytes(data)
    return copy


@given(st.data())
def test_damaged_recordings(recording, data):
    name = data.draw(st.sampled_from(sorted(p.name for p in recording.iterdir())))
    content = data.draw(st.one_of(
        tampered((recording / name).read_bytes()), st.binary(max_size=100)))
    outcome(read_all, damage(recording, name, content))


@given(st.data())
def test_damaged_storage_without_metadata(recording, data):
    storage = next(p for p in recording.iterdir() if p.name != METADATA)
    content = data.draw(tampered(storage.read_bytes()))
    outcome(read_all, damage(recording, storage.name, content) / storage.name)


def test_a_whole_recording_is_read(recording):
    assert read_all(recording) == 3
