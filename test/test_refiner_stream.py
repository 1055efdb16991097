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

from graph_depth_refiner.config import preset, PRESETS, RefinerConfig
from graph_depth_refiner.frame import Frame, Intrinsics, Provenance, Status
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream
from graph_depth_refiner.refiner import DepthRefiner, State

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
    assert refined.history > 0.8 and refined.history_frames > 3


@pytest.mark.parametrize('pose', [True, False], ids=['odometry', 'frames'])
def test_a_cut_costs_nothing(views, pose):
    # a new scene must come out as if nothing but the noise were known of before, bit for bit
    other = SyntheticStream(7, SIZE).view(0)
    frame = replace(other.frame, stamp=10.0, pose=views[-1].frame.pose if pose else None)
    refiner = DepthRefiner()
    for view in views:
        refiner.refine(view.frame)
    fresh = DepthRefiner()
    fresh.state = State(noise=refiner.state.noise)
    scene_change, alone = refiner.refine(frame), fresh.refine(frame)
    assert scene_change.reset == 'motion unknown' and scene_change.history == 0
    assert np.array_equal(scene_change.depth, alone.depth, equal_nan=True)
    assert np.array_equal(scene_change.normals, alone.normals, equal_nan=True)


def starts_anew(refiner, frame, noise=True):
    """Tell whether the refiner treats a frame as the first one; the noise may be known."""
    fresh = DepthRefiner(refiner.config)
    fresh.state = State(noise=refiner.state.noise if noise else None)
    refined, alone = refiner.refine(frame), fresh.refine(frame)
    assert refined.reset == 'first frame' or refined.history > 0
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
    other = Intrinsics(k.fx + 1, k.fy, k.cx, k.cy)
    assert starts_anew(warm, replace(frame, intrinsics=other), noise=False)


def test_resets_with_another_size(warm):
    frame = replace(SyntheticStream(1, (128, 96)).view(3).frame, stamp=9.0)
    assert starts_anew(warm, frame, noise=False)


def test_resets_by_call(warm, views):
    warm.reset()
    assert warm.state.history is None and starts_anew(warm, views[3].frame)


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
    measured = view.frame.depth > 0
    assert np.isfinite(refined.depth[measured]).all() and error(refined, view) < 1


def test_a_spent_budget_stops_the_steps(views):
    # one microsecond is over before the solver begins
    refiner = DepthRefiner(
        RefinerConfig().with_values(**{'solver.time_budget_ms': 1e-3, 'solver.iterations': 1000}))
    refined = refiner.refine(views[0].frame)
    assert refined.iterations == 0 and refined.status is Status.BUDGET
    measured = np.abs(views[0].frame.depth / views[0].depth - 1)[views[0].frame.depth > 0]
    # no step of the solver, but planes and their smoothing
    assert error(refined, views[0]) < 0.9 * 100 * measured.mean()


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
    unknown = np.isnan(one.depth)  # wide holes
    assert (np.isnan(other.depth) != unknown).mean() < 1e-3
    ratio = (other.depth / (100 * one.depth))[~unknown]
    # rounding may turn a choice of planes here and there, and with it an estimated motion a little
    assert (np.abs(ratio - 1) < 1e-3).mean() > 0.998
    assert np.nanmean(np.abs(ratio - 1)) < 1e-4


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


WALL = (96, 128)
NOISE = 0.005  # of the depth
CAMERA = Intrinsics(120.0, 120.0, 64.0, 48.0)


def wall(number, depth=2.0, shade=0, **more):
    """Return a frame of a textured wall, or of any depth H W, with noise of its own."""
    texture = np.random.default_rng(1).integers(40, 200, WALL).astype(np.uint8)
    noise = 1 + NOISE * np.random.default_rng(10 + number).standard_normal(WALL)
    image = (texture + shade).astype(np.uint8)
    return Frame(image, (depth * noise).astype(np.float32), CAMERA, stamp=number / 30, **more)


def test_the_error_of_a_static_wall_falls_as_the_root_of_the_frames():
    # the planes average over the image too, in every frame alike: what falls is the mean that
    # is carried on, of 16 frames to a quarter
    refiner = DepthRefiner()
    spread = []
    for number in range(16):
        refined = refiner.refine(wall(number))
        spread.append(float(np.std(2 * refiner.state.history.d)))
    assert spread[0] == pytest.approx(NOISE, rel=0.05)
    assert spread[3] == pytest.approx(NOISE / 2, rel=0.05)
    assert spread[15] == pytest.approx(NOISE / 4, rel=0.05)
    assert refined.history_frames == pytest.approx(16, abs=0.5) and refined.history > 0.99
    # to a quarter by the frames, and to a third of that by the windows
    assert np.nanstd(refined.depth / 2) < NOISE / 12


def test_a_moving_object_leaves_no_ghost():
    # a box of a fifth of the image comes nearer by a meter and crosses it by 8 px per frame
    refiner = DepthRefiner()
    for number in range(8):
        depth, shade = np.full(WALL, 2.0), np.zeros(WALL, int)
        box = np.s_[30:70, 8 * number:8 * number + 30]
        depth[box], shade[box] = 1.0, 50
        frame = wall(number, depth, shade)
        refined = refiner.refine(frame)
        alone = DepthRefiner().refine(frame)
        assert number == 0 or refined.history > 0.5
        far = np.abs(refined.depth / depth - 1) > 0.1  # of the other surface
        assert far.mean() <= (np.abs(alone.depth / depth - 1) > 0.1).mean() + 1e-3


@pytest.mark.parametrize('scale', [1, 2])
@pytest.mark.parametrize('name, fill', [
    *(('realtime', fill) for fill in ('none', 'small', 'all')), ('paper', 'all'),
    ('stereo', 'all')])
def test_holes_are_filled_as_configured(name, fill, scale):
    depth = np.full(WALL, 2.0)
    depth[20:24, 20:24] = 0  # narrow
    depth[40:80, 60:110] = 0  # nobody saw it
    values = {'holes.fill': fill, 'solver.scale': scale, 'solver.iterations': 30}
    refined = DepthRefiner(preset(name, **values)).refine(wall(0, depth))
    narrow, wide = refined.depth[20:24, 20:24], refined.depth[40:80, 60:110]
    known = depth > 0
    assert np.isfinite(refined.depth[known]).all()
    assert np.isfinite(narrow).all() == np.isfinite(narrow).any() == (fill != 'none')
    assert np.isfinite(wide).all() == np.isfinite(wide).any() == (fill == 'all')
    where = np.isfinite(refined.depth) & ~known
    assert (refined.provenance[where] == Provenance.FILLED).all()
    assert (refined.provenance[~where & ~known] == Provenance.UNKNOWN).all()
    assert (refined.confidence[~known] == 0).all()
    assert np.allclose(refined.depth[where], 2, rtol=0.05)  # slopes go on for 20 px


def test_what_earlier_frames_saw_fills_a_wide_hole():
    refiner = DepthRefiner()
    for number in range(5):
        refiner.refine(wall(number))
    depth = np.full(WALL, 2.0)
    depth[40:80, 60:110] = 0
    refined = refiner.refine(wall(5, depth))
    hole = np.s_[40:80, 60:110]
    assert np.allclose(refined.depth[hole], 2, rtol=0.02)
    assert (refined.provenance[hole] == Provenance.FILLED).all()
    # five frames, of which one that sees nothing leaves 0.85: 4.25 / 5.25
    assert np.median(refined.confidence[hole]) == pytest.approx(4.25 / 5.25, abs=0.02)


def test_a_hole_that_nobody_saw_does_not_shrink_at_rest():
    depth = np.full(WALL, 2.0)
    hole = np.s_[40:56, 60:80]  # the history may fill it, but knows nothing
    depth[hole] = 0
    refiner = DepthRefiner()
    for number in range(12):
        refined = refiner.refine(wall(number, depth))
    assert refined.history_frames > 8
    assert (refined.provenance[hole] == Provenance.UNKNOWN).all()


@pytest.mark.parametrize('name', PRESETS)
def test_every_preset_takes_the_same_path(name):
    refiner = DepthRefiner(preset(name, **{'solver.iterations': 30}))
    for number in range(3):
        refined = refiner.refine(wall(number))
        assert refined.status is Status.REFINED
        assert list(refined.milliseconds) == [
            'observe', 'graph', 'history', 'clean', 'planes', 'solve', 'upsample', 'output']
        assert min(refined.noise) >= 0 < max(refined.noise)
    assert (refined.history > 0.9) == preset(name).temporal.enabled
    # level with the wall: better than the measurement by far
    assert np.nanstd(refined.depth / 2) < 0.7 * NOISE


def test_a_baseline_that_becomes_known_is_another_camera():
    refiner = DepthRefiner()
    for number in range(3):
        refiner.refine(wall(number))
    stereo = replace(wall(3), intrinsics=replace(CAMERA, baseline=0.5))
    assert refiner.refine(stereo).noise == DepthRefiner().refine(stereo).noise
