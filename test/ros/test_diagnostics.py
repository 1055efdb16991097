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
"""What /diagnostics tells of the noise and of the frames before."""

from types import SimpleNamespace

from diagnostic_updater import DiagnosticStatusWrapper
import pytest

from graph_depth_refiner.ros.diagnostics import Diagnostics, noise_millimetres
from graph_depth_refiner.ros.shedding import STAGES
from graph_depth_refiner.ros.watch import Recent
from graph_depth_refiner.ros.worker import Ledger


def told(recent, resets, poses=None):
    """Return the values of a report by name."""
    status = DiagnosticStatusWrapper()
    Diagnostics._past(status, SimpleNamespace(
        recent=recent, resets=resets, poses=poses or Ledger()))
    return {one.key: one.value for one in status.values}


def test_noise_of_depth_grows_with_its_square_and_with_itself():
    # 0.001 z^2 + 0.002 z: 1 + 2 mm at 1 m, 4 + 4 mm at 2 m
    assert noise_millimetres((0.001, 0.002), 1) == pytest.approx(3)
    assert noise_millimetres((0.001, 0.002), 2) == pytest.approx(8)


def test_the_newest_noise_and_what_the_past_was_good_for():
    recent, resets = Recent(), Ledger()
    recent.note(noise_floor=1.0, noise_share=1.0)
    recent.note(noise_floor=0.001, noise_share=0.002)
    for has in (0.0, 1.0, 1.0, 1.0):
        recent.note(has_history=has)
    for frames in (2.0, 3.0, 7.0):
        recent.note(history_frames=frames)
    resets.count('first frame')
    resets.count('scene change', 2)
    poses = Ledger()
    poses.count('corrected', 3)
    assert told(recent, resets, poses) == {
        'noise at 1 m (mm)': '3.00', 'noise at 2 m (mm)': '8.00',
        'frames with history (%)': '75.0', 'history weight (frames)': '4.0',
        'no history: first frame': '1', 'no history: scene change': '2', 'poses corrected': '3'}


def test_before_the_first_frame_nothing_is_told():
    assert set(told(Recent(), Ledger()).values()) == {'none'}


def test_what_is_shed_is_told_with_what_it_costs():
    report = SimpleNamespace(
        _pipeline=SimpleNamespace(processor=SimpleNamespace(shedder=SimpleNamespace(stage=2))),
        _same_name=False, last_complaint='')
    status = Diagnostics._summary(report, DiagnosticStatusWrapper())
    assert status.message == (
        f'overloaded: work is shed, stage 2: error of depth {STAGES[2].depth:+d} %, '
        f'of normals {STAGES[2].normals:+d} %')


def test_failures_of_a_device_are_told_if_there_are_any():
    def told_of(failures, graphs):
        status = DiagnosticStatusWrapper()
        Diagnostics._device(status, SimpleNamespace(
            device='cpu', threads=SimpleNamespace(number=2), device_failures=failures,
            graphs=graphs))
        return {one.key: one.value for one in status.values}
    assert not {'device failures', 'failed captures'} & set(told_of(0, None))
    found = told_of(1, SimpleNamespace(failures=2))
    assert (found['device'], found['threads']) == ('cpu', '2')
    assert (found['device failures'], found['failed captures']) == ('1', '2')
