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
"""A stream through the whole refiner: history helps, and never hurts."""

from __future__ import annotations

from dataclasses import replace
import pickle

import numpy as np
import pytest

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.kernels import select
from graph_depth_refiner.core.video import data_weight
from graph_depth_refiner.frame import Frame, Intrinsics, Status
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream
from graph_depth_refiner.refiner import DepthRefiner

SIZE = (160, 120)


@pytest.fixture(scope='module')
def views():
    return list(SyntheticStream(1, SIZE).views(8))


def error(refined, view):
    """Return the mean error of depth in percent."""
    return float(100 * np.nanmean(np.abs(refined.depth - view.depth) / view.depth))


def without_pose(view):
    return replace(view.frame, pose=None)


@pytest.mark.parametrize('pose', [True, False], ids=['odometry', 'frames'])
def test_history_lowers_the_error(views, pose):
    warm, cold = DepthRefiner(), DepthRefiner(
        RefinerConfig().with_values(**{'temporal.enabled': False}))
    for view in views:
        frame = view.frame if pose else without_pose(view)
        refined, alone = warm.refine(frame), cold.refine(frame)
    assert refined.status is Status.REFINED
    assert error(refined, view) < 0.8 * error(alone, view)
    assert warm.state.frame_count.mean() > 3


@pytest.mark.parametrize('pose', [True, False], ids=['odometry', 'frames'])
def test_a_cut_costs_nothing(views, pose):
    # a new scene must come out as if nothing had been before it, bit for bit
    other = SyntheticStream(7, SIZE).view(0)
    frame = replace(other.frame, stamp=10.0, pose=views[-1].frame.pose if pose else None)
    refiner = DepthRefiner()
    for view in views:
        refiner.refine(view.frame)
    scene_change, alone = refiner.refine(frame), DepthRefiner().refine(frame)
    assert np.array_equal(scene_change.depth, alone.depth, equal_nan=True)
    assert np.array_equal(scene_change.normals, alone.normals, equal_nan=True)


def starts_anew(refiner, frame):
    """Tell whether the refiner treats a frame as the first one."""
    refined, alone = refiner.refine(frame), DepthRefiner(refiner.config).refine(frame)
    return np.array_equal(refined.depth, alone.depth, equal_nan=True)


@pytest.fixture
def warm(views):
    refiner = DepthRefiner()
    for view in views[:3]:
        refiner.refine(view.frame)
    return refiner


def test_goes_on_without_reason_to_reset(warm, views):
    assert not starts_anew(warm, views[3].frame)


def test_resets_when_time_jumps_back(warm, views):
    assert starts_anew(warm, replace(views[3].frame, stamp=0.0))


def test_resets_with_another_camera(warm, views):
    frame = views[3].frame
    k = frame.intrinsics
    assert starts_anew(warm, replace(frame, intrinsics=Intrinsics(k.fx + 1, k.fy, k.cx, k.cy)))


def test_resets_with_another_size(warm):
    assert starts_anew(warm, replace(SyntheticStream(1, (128, 96)).view(3).frame, stamp=9.0))


def test_resets_by_call(warm, views):
    warm.reset()
    assert warm.state is None and starts_anew(warm, views[3].frame)


def test_no_depth_at_all_is_survived(warm, views):
    frame = views[3].frame
    assert warm.refine(replace(frame, depth=0 * frame.depth)).status is Status.EMPTY
    assert warm.refine(views[4].frame).status is Status.REFINED


def test_state_can_be_stored_and_restored(warm, views):
    stored = pickle.dumps(warm.state)
    expected = warm.refine(views[3].frame)
    other = DepthRefiner()
    other.state = pickle.loads(stored)
    assert np.array_equal(other.refine(views[3].frame).depth, expected.depth, equal_nan=True)


@pytest.mark.parametrize('steps', [0, 1, 3])
def test_any_number_of_steps_is_a_result(views, steps):
    refiner = DepthRefiner(RefinerConfig().with_values(**{'solver.iterations': steps}))
    for view in views[:3]:
        refined = refiner.refine(view.frame)
    assert refined.iterations == steps
    assert np.isfinite(refined.depth).mean() > 0.99 and error(refined, view) < 1


def test_a_spent_budget_stops_the_steps(views):
    # one microsecond is over before the solver begins
    refiner = DepthRefiner(
        RefinerConfig().with_values(**{'solver.time_budget_ms': 1e-3, 'solver.iterations': 1000}))
    refined = refiner.refine(views[0].frame)
    assert refined.iterations == 0 and refined.status is Status.BUDGET
    assert error(refined, views[0]) < 1


@pytest.mark.parametrize('pose', [True, False], ids=['odometry', 'frames'])
def test_a_scene_a_hundred_times_larger_comes_out_a_hundred_times_larger(views, pose):
    near, far = DepthRefiner(), DepthRefiner()
    for view in views[:4]:
        frame = view.frame if pose else without_pose(view)
        moved = frame.pose
        if pose:
            moved = frame.pose.copy()
            moved[:3, 3] *= 100
        one = near.refine(frame)
        other = far.refine(replace(frame, depth=100 * frame.depth, pose=moved))
    ratio = other.depth / (100 * one.depth)
    # rounding may turn a choice of planes here and there, and with it an estimated motion a little
    assert (np.abs(ratio - 1) < 1e-3).mean() > (0.995 if pose else 0.98)
    assert np.nanmean(np.abs(ratio - 1)) < 1e-3


@pytest.mark.parametrize('scale', [2, 4])
def test_solving_at_lower_resolution_keeps_the_size(views, scale):
    refiner = DepthRefiner(RefinerConfig().with_values(**{'solver.scale': scale}))
    for view in views[:4]:
        refined = refiner.refine(view.frame)
    assert refined.depth.shape == view.depth.shape
    assert refined.normals.shape == (*view.depth.shape, 3)
    assert error(refined, view) < 3  # of a scene with 40 x 30 planes


def test_an_unchanged_image_keeps_the_graph():
    stream = SyntheticStream(2, SIZE, 'static')
    refiner = DepthRefiner()
    hits = [refiner.refine(stream.view(k).frame).graph_hit_rate for k in range(3)]
    assert hits == [0, 1, 1]


def test_grey_images_and_missing_confidence_will_do(views):
    refiner = DepthRefiner()
    for view in views[:3]:
        grey = np.ascontiguousarray(view.frame.image[..., 1])
        refined = refiner.refine(
            Frame(grey, view.frame.depth, view.frame.intrinsics, None, view.frame.stamp))
    assert refined.status is Status.REFINED and error(refined, view) < 1


def test_a_measurement_weighs_more_where_the_history_does_not_count():
    # the history counts for ten frames but in one row, each frame with a weight of 0.1: there
    # the measurement has a weight of 1 + 0.1 * 10, and of 1 elsewhere
    frame_count = np.full((20, 30), 10, np.float32)
    frame_count[7] = 0
    k = select('cpu', 'fused')
    weight = data_weight(k, np.ones((20, 30), np.float32), frame_count)
    assert weight[7] == pytest.approx(2) and (np.delete(weight, 7, axis=0) == 1).all()
    assert (data_weight(k, frame_count, 0 * frame_count) == frame_count).all()  # without a past
