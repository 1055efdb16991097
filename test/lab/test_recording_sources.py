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
"""Every source of recordings gives the same frames."""

import json

import cv2
import numpy as np
import pytest
from recordings import frames, SCALE, write_ros1, write_ros2, write_sequence

from graph_depth_refiner.files.exports import write_depth
from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.evaluation.recording.sources import Choice, open_recording

SIZE = (48, 36)
CAMERA = (40.8, 40.8, 23.5, 17.5)


@pytest.fixture(scope='module')
def chosen():
    """Return a few frames with holes."""
    some = frames(SIZE, 4)
    for frame in some:
        frame.depth[3:5, 6:9] = 0
    return some


def assert_same(recording, chosen):
    """Compare all frames."""
    assert len(recording) == len(chosen)
    for number, frame in enumerate(chosen):
        read = recording.frame(number)
        assert read.depth == pytest.approx(frame.depth, abs=1e-6)
        assert (read.image == frame.image).all()
        assert read.stamp == pytest.approx(frame.stamp)
        assert read.intrinsics == frame.intrinsics
        assert read.confidence is None


def test_folder_with_sequence_json(tmp_path, chosen):
    recording = open_recording(write_sequence(tmp_path / 'room', chosen))
    assert_same(recording, chosen)
    assert (recording.name, 'structured light' in recording.description) == ('room', True)


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_bags_of_ros2(tmp_path, chosen, storage):
    assert_same(open_recording(write_ros2(tmp_path / 'bag', chosen, storage)), chosen)


def test_bag_of_ros1(tmp_path, chosen):
    assert_same(open_recording(write_ros1(tmp_path / 'room.bag', chosen)), chosen)


def test_truncated_bag_of_ros1_is_refused(tmp_path, chosen):
    path = write_ros1(tmp_path / 'room.bag', chosen)
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(ValueError, match='room.bag: expected a ROS 1 recording'):
        open_recording(path)


def test_tum_folder(tmp_path, chosen):
    for name in ('rgb', 'depth'):
        (tmp_path / name).mkdir()
    lists = {'rgb': [], 'depth': []}
    for frame in chosen:
        name = f'{frame.stamp:.6f}.png'
        cv2.imwrite(str(tmp_path / 'rgb' / name), frame.image[..., ::-1])
        write_depth(tmp_path / 'depth' / name, frame.depth, SCALE)
        for kind, lines in lists.items():
            lines.append(f'{frame.stamp:.6f} {kind}/{name}')
    for kind, lines in lists.items():
        (tmp_path / f'{kind}.txt').write_text('\n'.join(lines))
    recording = open_recording(tmp_path)
    assert recording.frame(2).depth == pytest.approx(chosen[2].depth, abs=1e-6)
    assert (recording.frame(2).image == chosen[2].image).all()


def plain_folder(folder, chosen, camera=True):
    """Write rgb/N.png, depth/frame-N.png in millimetres and camera.json."""
    for name in ('rgb', 'depth'):
        (folder / name).mkdir(parents=True)
    for number, frame in enumerate(chosen):
        cv2.imwrite(str(folder / 'rgb' / f'{number}.png'), frame.image[..., ::-1])
        write_depth(folder / 'depth' / f'frame-{number}.png', frame.depth, 1000)
    if camera:
        known = dict(zip(('fx', 'fy', 'cx', 'cy'), CAMERA))
        (folder / 'camera.json').write_text(json.dumps(known))
    return folder


def test_plain_folder_is_paired_in_order(tmp_path, chosen):
    recording = open_recording(plain_folder(tmp_path / 'plain', chosen))
    assert recording.camera == Intrinsics(*CAMERA)
    assert recording.frame(3).depth == pytest.approx(chosen[3].depth, abs=6e-4)
    assert (recording.frame(3).image == chosen[3].image).all()


def test_camera_and_scale_may_be_told(tmp_path, chosen):
    folder = plain_folder(tmp_path / 'plain', chosen, camera=False)
    with pytest.raises(ValueError, match='or --camera, got neither'):
        open_recording(folder)
    recording = open_recording(folder, Choice(camera=(50, 51, 24, 18), depth_scale=500))
    assert recording.camera == Intrinsics(50, 51, 24, 18)
    assert recording.frame(0).depth == pytest.approx(2 * chosen[0].depth, abs=2e-3)


def test_frames_at_the_beginning_may_be_left_out(tmp_path, chosen):
    folder = write_sequence(tmp_path / 'room', chosen)
    bag = write_ros2(tmp_path / 'bag', chosen)
    for path in (folder, bag):
        assert_same(open_recording(path, Choice(start=3)), chosen[3:])
        with pytest.raises(ValueError, match='more frames than the 4 to leave out, got 4'):
            open_recording(path, Choice(start=4))


@pytest.mark.parametrize('text, message', [
    ('{', 'expected JSON'), ('[]', 'expected an object, got a list'),
    ('{"fx": "x", "fy": 1, "cx": 1, "cy": 1}', "expected a number fx, got 'x'"),
    ('{"fx": 9, "fy": 9, "cx": 1, "cy": 1, "poses": [1]}', 'expected 4 poses'),
])
def test_wrong_camera_files_are_refused(tmp_path, chosen, text, message):
    folder = plain_folder(tmp_path / 'plain', chosen)
    (folder / 'camera.json').write_text(text)
    with pytest.raises(ValueError, match=message):
        open_recording(folder)


def test_folders_without_pairs_are_refused(tmp_path, chosen):
    folder = plain_folder(tmp_path / 'plain', chosen)
    (folder / 'rgb' / '0.png').unlink()
    with pytest.raises(ValueError, match='got 3 images and 4 depth maps'):
        open_recording(folder)
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'empty' / 'camera.json').write_text('{"fx": 9, "fy": 9, "cx": 1, "cy": 1}')
    with pytest.raises(ValueError, match='folders depth and color or rgb'):
        open_recording(tmp_path / 'empty')
    with pytest.raises(ValueError, match='expected a recording or a folder'):
        open_recording(tmp_path / 'nothing')


def test_frames_of_two_sizes_are_refused(tmp_path, chosen):
    folder = plain_folder(tmp_path / 'plain', chosen)
    small = np.ones((18, 24), np.float32)
    write_depth(folder / 'depth' / 'frame-2.png', small, 1000)
    cv2.imwrite(str(folder / 'rgb' / '2.png'), np.zeros((18, 24, 3), np.uint8))
    recording = open_recording(folder)
    with pytest.raises(ValueError, match='48x36 .* in frame 0 and 24x18 .* in frame 2'):
        recording.frame(2)
