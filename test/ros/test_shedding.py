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
"""Work is shed in the stated order and taken up again."""

from itertools import pairwise

import pytest

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.frame import Status
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream
from graph_depth_refiner.refiner import DepthRefiner
from graph_depth_refiner.ros.shedding import RECOVERY, Shedder, STAGES


def run(shedder, frames, cost, period=1.0):
    """Feed frames of one cost; return the stages seen, each once."""
    stages = [shedder.stage]
    for _ in range(frames):
        shedder.observe(period, cost)
        if shedder.stage != stages[-1]:
            stages.append(shedder.stage)
    return stages


def test_overload_goes_through_all_stages_in_order():
    assert run(Shedder(), 200, cost=2.0) == list(range(len(STAGES)))


@pytest.mark.parametrize('shape, work', [
    ((240, 320), [(10, 0), (0, 0), (0, 2), (0, 4)]),  # solved at its own resolution
    ((480, 640), [(10, 0), (0, 0), (0, 4), (0, 4)]),  # at a half of it
    ((720, 1280), [(10, 0), (0, 0), (0, 4), (0, 4)])])  # at a quarter
def test_first_steps_then_resolution(shape, work):
    config = RefinerConfig().with_values(**{'solver.iterations': 10})
    shed = [stage.apply(config, shape).solver for stage in STAGES]
    assert [(solver.iterations, solver.scale) for solver in shed] == work


def test_every_stage_saves_more_for_no_less_a_millisecond():
    assert STAGES[0].cost == 'error of depth +0 %, of normals +0 %'
    price = [(stage.depth + stage.normals) / stage.saved for stage in STAGES[1:]]
    assert price == sorted(price)
    assert all(before.saved < after.saved for before, after in pairwise(STAGES))


@pytest.mark.parametrize('stage', range(len(STAGES)))
def test_every_stage_still_refines(stage):
    shedder = Shedder()
    shedder.stage = stage
    refiner = DepthRefiner(shedder.apply(RefinerConfig(), (120, 160)), 'cpu')
    views = SyntheticStream(7, (160, 120)).views(3)
    assert [refiner.refine(view.frame).status for view in views] == 3 * [Status.REFINED]


def test_load_that_fits_changes_nothing():
    assert run(Shedder(), 1000, cost=0.75) == [0]


def test_one_slow_frame_changes_nothing():
    shedder = Shedder()
    run(shedder, 50, cost=0.6)
    shedder.observe(1.0, 1.5)
    assert run(shedder, 100, cost=0.6) == [0]


def test_recovers_when_there_is_time_again():
    shedder = Shedder()
    run(shedder, 30, cost=2.0)
    assert shedder.stage > 0
    # a period is a second here
    assert run(shedder, round(len(STAGES) * (RECOVERY + 10)), cost=0.3)[-1] == 0


def test_a_slow_camera_leaves_the_time_it_leaves():
    assert run(Shedder(), 100, cost=1.4, period=2.0) == [0]


def test_a_pause_says_nothing():
    shedder = Shedder()
    for _ in range(20):
        run(shedder, 4, cost=2.0)
        shedder.observe(60.0, 1.0)
    assert shedder.stage > 0
    stage = shedder.stage
    assert run(shedder, 20, cost=1.0, period=60.0) == [stage]


def test_converged_mode_is_left_alone():
    config = RefinerConfig().with_values(**{'solver.mode': 'converged'})
    shedder = Shedder()
    shedder.stage = len(STAGES) - 1
    assert shedder.apply(config, (480, 640)) is config


def test_no_step_stays_no_step():
    shedder = Shedder()
    shedder.stage = 1
    config = RefinerConfig().with_values(**{'solver.iterations': 0})
    assert shedder.apply(config, (480, 640)).solver.iterations == 0


def test_a_fast_camera_is_given_time_to_show_the_change():
    shedder = Shedder()
    # at 100 Hz a change is due after half a second, not after four frames
    for _ in range(40):
        shedder.observe(0.01, 0.012)
    assert shedder.stage == 0
    for _ in range(10):
        shedder.observe(0.01, 0.012)
    assert shedder.stage == 1


def test_work_that_proves_too_much_is_tried_ever_less_often():
    shedder, changes = Shedder(), 0
    # all work takes 1.0 of the period, one stage less 0.5: neither can last
    for _ in range(300):
        before = shedder.stage
        shedder.observe(1.0, 0.5 if shedder.stage else 1.0)
        changes += shedder.stage != before
    # without patience a change every 3 to 5 periods; with it 5 + 5, 5 + 6, 5 + 12, 5 + 24, …
    assert 6 <= changes <= 16


def test_all_work_is_taken_up_again_within_ten_seconds_of_free_cores():
    shedder = Shedder()
    for _ in range(600):  # 40 s at 15 Hz, on cores that leave now less, now more
        shedder.observe(1 / 15, (0.065, 0.035)[shedder.stage > 1])
    assert shedder._recovery > RECOVERY
    shedder.stage = len(STAGES) - 1
    for _ in range(150):
        shedder.observe(1 / 15, 0.02)
    assert shedder.stage == 0
