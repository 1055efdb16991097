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
"""Test `evaluate recording` on small recordings of a synthetic room."""

import json

import browser
import cv2
import numpy as np
import pytest
from recordings import frames, in_memory, SENSOR, write_ros2, write_sequence

from graph_depth_refiner.cli.main import main
from graph_depth_refiner.config import preset
from graph_depth_refiner.frame import Frame
from graph_depth_refiner.lab.evaluation.recording import report
from graph_depth_refiner.lab.evaluation.recording.judging import judge, Schedule
from graph_depth_refiner.lab.evaluation.recording.methods import METHODS, Setting, stream
from graph_depth_refiner.lab.evaluation.recording.reference import Reference
from graph_depth_refiner.lab.evaluation.recording.sensors import SENSORS
from graph_depth_refiner.lab.evaluation.recording.sources import Recording
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream

NAMES = ('input', 'bilateral', 'running-average', 'ours')
EARLY = ('--first', '4', '--every', '3', '--frames', '2', '--set', 'solver.iterations=2')
MEASURES = {'plane', 'edge', 'flying', 'plane_normals', 'jitter', 'invented', 'ms'}


def evaluate(*arguments):
    """Run the command."""
    return main(['evaluate', 'recording', *map(str, arguments)])


@pytest.fixture(scope='module')
def judged(tmp_path_factory):
    """Judge a folder once, with everything that can be written."""
    folder = tmp_path_factory.mktemp('recording')
    write_sequence(folder / 'room', frames())
    patch = pytest.MonkeyPatch()
    patch.setenv('XDG_CACHE_HOME', str(folder / 'cache'))
    with patch.context():
        assert evaluate(folder / 'room', '--methods', ','.join(NAMES), '--json',
                        folder / 'room.json', '--report', folder / 'report', *EARLY) == 0
    patch.undo()
    return folder


def rows(path):
    """Return the rows of a file without what the clock says."""
    found = json.loads(path.read_text())[0]['rows']
    return [{key: value for key, value in row.items() if key not in ('recording', 'ms')}
            for row in found]


def test_json_holds_every_judged_frame_of_every_method(judged):
    found, = json.loads((judged / 'room.json').read_text())
    assert set(found) == {'recording', 'sensor', 'sensor_reason', 'at_rest', 'frames', 'notes',
                          'rows', 'history', 'table'}
    assert (found['recording'], found['sensor'], found['at_rest']) == (
        'room', 'structured-light', False)
    assert found['frames'] == [4, 7]
    assert [(row['method'], row['frame']) for row in found['rows']] == [
        (name, number) for name in NAMES for number in (4, 7)]
    assert all(set(row) >= MEASURES for row in found['rows'])
    assert set(found['table']) == set(NAMES)
    assert found['history'] == {'ours': 100} and found['table']['ours']['history'] == 100
    mean = np.mean([row['plane'] for row in found['rows'] if row['method'] == 'ours'])
    assert found['table']['ours']['plane'] == pytest.approx(mean)


def test_filters_and_the_average_are_better_than_the_input(judged):
    table = json.loads((judged / 'room.json').read_text())[0]['table']
    for name in NAMES[1:]:
        assert table[name]['plane'] < 0.8 * table['input']['plane']
        assert table[name]['jitter'] < 0.8 * table['input']['jitter']
        assert table[name]['plane_normals'] < table['input']['plane_normals']


def test_the_report_opens_in_a_browser_without_errors(judged, tmp_path):
    images, shown, console = browser.count_images(judged / 'report' / 'index.html', tmp_path)
    assert images == shown == 2
    assert console == []


def test_the_report_has_a_panel_for_every_frame(judged):
    page = (judged / 'report' / 'index.html').read_text()
    for number in (4, 7):
        name = f'room_{number:05d}.png'
        assert f'src="{name}"' in page
        picture = cv2.imread(str(judged / 'report' / name))
        # a row for image and reference and one a method, three pictures each
        assert picture.shape[1] == 3 * (report.WIDTH + 4)
        assert picture.shape[0] == (1 + len(NAMES)) * (22 + report.WIDTH * 120 // 160 + 4)
    assert 'plane deg' in page and 'running-average' in page


def test_a_bag_gives_the_numbers_of_the_folder(judged, tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(judged / 'cache'))
    kept = set((judged / 'cache').rglob('*.npz'))
    assert len(kept) == 2
    bag = write_ros2(tmp_path / 'bag', frames())
    assert evaluate(bag, '--methods', ','.join(NAMES), '--json', tmp_path / 'bag.json',
                    '--sensor', 'structured-light', *EARLY) == 0
    assert rows(tmp_path / 'bag.json') == rows(judged / 'room.json')
    assert set((judged / 'cache').rglob('*.npz')) == kept  # the same contents, the same references


def test_a_camera_at_rest_is_said_and_curved_surfaces_are_not_judged(tmp_path, capsys):
    write_sequence(tmp_path / 'desk', frames((80, 60), 24, 'static', seed=3))
    assert evaluate(tmp_path / 'desk', '--methods', 'input', '--no-cache', '--json',
                    tmp_path / 'desk.json', *EARLY) == 0
    said = capsys.readouterr().out
    assert 'the camera stands still' in said and 'camera at rest' in said
    found, = json.loads((tmp_path / 'desk.json').read_text())
    # noise of 3 mm + 3 mm / m^2 at 1 to 5.5 m is 0.6 to 1.7 %, more where little light returns
    assert found['at_rest'] and 0.6 < found['table']['input']['jitter'] < 2
    assert 'plane' in found['table']['input']
    assert 'curved' not in found['table']['input']


def test_a_poor_reference_is_said():
    # of a wall at 2 m: the input is off by 1 % and the reference uncertain by 0.5 %, more than a
    # third of it
    shape, flat = (60, 80), np.zeros((60, 80, 3), np.float32)
    flat[..., 2] = -1
    wall = np.full(shape, 2.0, np.float32)
    camera = SyntheticStream(0, (80, 60)).intrinsics
    recording = Recording('wall', '', 50, lambda n: Frame(
        np.zeros((*shape, 3), np.uint8), np.float32(1.01) * wall, camera,
        pose=np.eye(4)))

    class Poor:
        """Returns a reference of its own making."""

        def reference(self, recording, number, later, sensor, at_rest):
            return Reference(wall, wall, flat, 0.005 * wall, np.full(shape, 30), 3, 1.2)

    setting = Setting(recording, SENSORS['tof'], False, preset('realtime'))
    verdict = judge(setting, '', Schedule(first=1, frames=1), Poor(), ['input'])
    assert verdict.notes[:3] == [
        'frame 1: only 3 of 48 later frames could be aligned',
        'frame 1: the camera moves by 1.2 px only in the frames after it, which leaves the fixed '
        'pattern of the sensor in the reference',
        'plane: the reference is uncertain by 0.50 % where the input is off by 1.00 %; '
        'differences smaller than that mean nothing']
    assert verdict.notes[3].startswith('curved: not judged in frame 1, fewer than 50 pixels')


def test_a_short_recording_gets_one_sentence(tmp_path, capsys):
    write_sequence(tmp_path / 'short', frames((80, 60), 8))
    assert evaluate(tmp_path / 'short', '--methods', 'input') == 2
    assert capsys.readouterr().err == (
        'graph_depth_refiner: short: expected at least 37 frames (20 before the first judged one '
        'and 16 after it), got 8\n')


def test_a_recording_without_overlap_gets_one_sentence(tmp_path, capsys):
    # every frame shows another wall, half a metre from the one before
    rng = np.random.default_rng(0)
    camera = SyntheticStream(0, (80, 60)).intrinsics
    write_sequence(tmp_path / 'jumps', [
        Frame(rng.integers(0, 255, (60, 80, 3), np.uint8),
              np.full((60, 80), 1 + 0.5 * (n % 6), np.float32), camera, stamp=float(n))
        for n in range(24)])
    assert evaluate(tmp_path / 'jumps', '--methods', 'input', '--no-cache', *EARLY) == 2
    assert capsys.readouterr().err == (
        'graph_depth_refiner: jumps: expected later frames that show the same places, got none: '
        'no later frame could be aligned to any judged one\n')


@pytest.mark.parametrize('arguments, message', [
    (('--methods', 'input,magic'), "got 'magic'"),
    (('--methods', 'ours:magic=3'), 'magic'),
    (('--every', '0'), 'every: expected at least 1, got 0'),
    (('--camera', '1,2,3'), "four numbers FX,FY,CX,CY, got '1,2,3'"),
])
def test_wrong_arguments_get_one_sentence(tmp_path, capsys, arguments, message):
    assert evaluate(tmp_path, *arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize('length, kind, expected', [
    (91, 'active-stereo', [20, 28, 36, 44, 52, 60]), (151, 'tof', [20, 28, 36, 44, 52, 60]),
    (1000, 'stereo', [20, 28, 36, 44, 52, 60]), (90, 'stereo', [20, 28, 36, 44, 52]),
    (40, 'structured-light', [20]), (60, 'tof', [20])])
def test_judged_frames_leave_enough_before_and_after(length, kind, expected):
    recording = Recording('x', '', length, lambda number: None)
    judged = Schedule().judged(recording, SENSORS[kind])
    assert list(judged) == expected
    for number, later in judged.items():
        assert later.start == number + 1 and later.stop <= length
        assert len(later) == min(SENSORS[kind].ahead, length - 1 - number)


def test_every_method_runs():
    recording = in_memory(SyntheticStream(3, (48, 36)), 3)
    config = preset('realtime', **{'solver.iterations': 2})
    setting = Setting(recording, SENSOR, False, config)
    for name in (*METHODS, 'ours:iterations=3+reg_lambda=5'):
        if name in ('paper', 'ours-converged'):
            continue  # take seconds
        *_, last = stream(name, setting, [1, 2])
        assert last.number == 2 and last.estimate.depth.shape == (36, 48)
        known = np.isfinite(last.estimate.depth)
        assert known.mean() > 0.5 and (last.estimate.depth[known] > 0).all()


def test_methods_say_whether_they_used_the_frames_before():
    rooms = [in_memory(SyntheticStream(seed, (96, 72)), 4) for seed in (3, 8)]
    frame = rooms[0].frame(0)

    def cut(number):  # to another room after three frames
        shown = rooms[number >= 3].frame(number % 3)
        return Frame(shown.image, shown.depth, frame.intrinsics, stamp=float(number))

    setting = Setting(Recording('cut', '', 5, cut), SENSOR, False, preset('realtime'))

    def used(name):
        return [output.history for output in stream(name, setting, [0, 1, 2, 3, 4])]

    assert used('ours') == [False, True, True, False, True]
    assert used('ours-alone') == [False] * 5
    assert used('median') == used('running-average') == [None] * 5


def test_a_pixel_without_measurement_stays_in_the_average_for_a_while():
    # after 3 frames the weight is 3; it fades by 0.8 a frame and ends below 1: after 5 frames
    wall, hole = np.full((36, 48), 2, np.float32), np.full((36, 48), 2, np.float32)
    hole[10:20, 10:20] = 0
    image = np.zeros((36, 48, 3), np.uint8)
    camera = SyntheticStream(0, (48, 36)).intrinsics
    recording = Recording(
        'wall', '', 12, lambda n: Frame(image, wall if n < 3 else hole, camera))
    setting = Setting(recording, SENSOR, True, preset('realtime'))
    known = [np.isfinite(output.estimate.depth[15, 15])
             for output in stream('running-average', setting, [11])]
    assert known == [True] * 7 + [False] * 5


def test_tables_mark_the_best_and_leave_out_what_nobody_has():
    table = {'input': {'plane': 2.0, 'ms': 1.0}, 'ours': {'plane': 1.0, 'edge': 3.0, 'ms': 9.0}}
    head, first, second = report.format_scores(table).splitlines()
    assert 'plane %' in head and 'edge %' in head and 'jitter' not in head
    assert first.split() == ['input', '2.00', '-', '1.00']
    assert second.split() == ['ours', '1.00*', '3.00*', '9.00']


def test_means_over_recordings_are_relative_to_the_input():
    # ratios 1/2 and 1/8: their geometric mean is 1/4; the times are averaged as they are
    tables = [{'input': {'plane': 2.0, 'ms': 0.0}, 'ours': {'plane': 1.0, 'ms': 10.0}},
              {'input': {'plane': 8.0, 'ms': 0.0}, 'ours': {'plane': 1.0, 'ms': 20.0}}]
    means = report.overall(tables)
    assert means['ours'] == pytest.approx({'plane': 0.25, 'ms': 15.0})
    assert means['input']['plane'] == 1
