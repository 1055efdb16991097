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
"""Whatever comes in, what goes out is finite and positive, or said to be unknown."""

import os

import hostile  # noqa: F401  (chooses how many inputs are tried)
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from graph_depth_refiner.config import preset, PRESETS, RefinerConfig
from graph_depth_refiner.frame import Frame, Intrinsics, Provenance, Status
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream
from graph_depth_refiner.refiner import DepthRefiner

LONG = os.environ.get('GRAPH_DEPTH_REFINER_FUZZ') == 'long'
REFINER = DepthRefiner(device='cpu')


def camera(shape, baseline=0.0):
    """Return a plausible camera of an image shape."""
    return Intrinsics(shape[1] + 1.0, shape[1] + 1.0, shape[1] / 2, shape[0] / 2, baseline)


def frame_of(depth, image=None, confidence=None, baseline=0.0):
    """Return a frame of a depth image, in front of a random image unless given."""
    depth = np.asarray(depth, np.float32)
    if image is None:
        image = np.random.default_rng(0).integers(0, 255, depth.shape, np.uint8)
    return Frame(image, depth, camera(depth.shape, baseline), confidence)


def check(refined, frame):
    """Check everything that holds of any refined frame; return it."""
    shape = frame.depth.shape
    depth, normals = refined.depth, refined.normals
    assert depth.shape == shape and depth.dtype == np.float32
    assert normals.shape == (*shape, 3) and normals.dtype == np.float32
    assert not np.isinf(depth).any() and not (depth <= 0).any()
    assert not np.isinf(normals).any()
    lengths = np.linalg.norm(normals.astype(float), axis=-1)
    assert np.allclose(lengths[~np.isnan(lengths)], 1, atol=1e-3)
    assert np.isnan(lengths[np.isnan(depth)]).all()
    assert np.array_equal(refined.provenance == Provenance.UNKNOWN, np.isnan(depth))
    assert set(np.unique(refined.provenance)) <= {int(p) for p in Provenance}
    assert ((refined.confidence >= 0) & (refined.confidence <= 1)).all()
    assert np.isfinite(refined.energy) and refined.energy >= 0
    assert 0 <= refined.iterations
    return refined


def refine(frame, config=None):
    """Refine one frame alone and check what comes out."""
    refiner = DepthRefiner(config, device='cpu') if config else REFINER
    refiner.reset()
    return check(refiner.refine(frame), frame)


def wall(shape, metres, noise=0.01, seed=1):
    """Return the depth of a wall with multiplicative noise."""
    rng = np.random.default_rng(seed)
    return (metres * (1 + noise * rng.standard_normal(shape))).astype(np.float32)


@pytest.mark.parametrize('metres', [0.01, 0.1, 1.0, 10.0, 1000.0, 10000.0])
def test_any_distance_is_refined_alike(metres):
    shape = (24, 32)
    near = refine(frame_of(wall(shape, 1.0)))
    refined = refine(frame_of(wall(shape, metres)))
    # nothing in the method has a scale: the result scales with the input, but for a choice
    # between two planes here and there that rounding decides
    ratio = refined.depth / metres / near.depth
    assert np.median(np.abs(ratio - 1)) < 1e-4
    assert np.mean(np.abs(ratio - 1)) < 1e-3
    assert np.abs(refined.depth / metres - 1).mean() < 0.008  # as the noise came: 0.01 * 0.8


def test_one_frame_from_a_centimetre_to_ten_kilometres():
    depth = np.geomspace(0.01, 10000, 24 * 32).reshape(24, 32)
    refined = refine(frame_of(depth))
    assert np.isfinite(refined.depth).mean() > 0.5


@pytest.mark.parametrize('invalid', [0.0, np.nan, np.inf, -np.inf, -1.0, 1e-30, 1e30])
def test_no_valid_depth_gives_nothing_and_says_so(invalid):
    refined = refine(frame_of(np.full((6, 8), invalid)))
    assert refined.status is Status.EMPTY
    assert np.isnan(refined.depth).all()


def test_confidence_of_zero_everywhere_gives_nothing_and_says_so():
    refined = refine(frame_of(np.ones((6, 8)), confidence=np.zeros((6, 8), np.float32)))
    assert refined.status is Status.EMPTY
    assert np.isnan(refined.depth).all()


@pytest.mark.parametrize('metres', [0.01, 2.0, 10000.0])
def test_one_valid_pixel(metres):
    depth = np.zeros((6, 8))
    depth[2, 3] = metres
    refined = refine(frame_of(depth))
    assert refined.depth[2, 3] == pytest.approx(metres, rel=0.01)


@pytest.mark.parametrize('shape', [
    (1, 1), (1, 2), (2, 1), (1, 9), (9, 1), (2, 2), (3, 3), (5, 4), (7, 33), (65, 3), (1, 700)])
@pytest.mark.parametrize('color', [False, True])
def test_any_shape(shape, color):
    rng = np.random.default_rng(0)
    image = rng.integers(0, 255, (*shape, 3), np.uint8) if color else None
    refined = refine(frame_of(wall(shape, 2.0), image))
    assert np.nanmax(np.abs(refined.depth - 2)) < 0.2


@pytest.mark.skipif(not LONG, reason='takes gigabytes: GRAPH_DEPTH_REFINER_FUZZ=long runs it')
@pytest.mark.parametrize('shape', [(3072, 4096), (1, 16384), (16384, 1)])
def test_the_largest_shapes(shape):
    refined = refine(frame_of(wall(shape, 2.0)),
                     RefinerConfig().with_values(**{'solver.iterations': 2}))
    assert np.nanmax(np.abs(refined.depth - 2)) < 0.2


@pytest.mark.parametrize('level', [0, 255])
@pytest.mark.parametrize('noise', [0.0, 0.01])
def test_constant_images_and_constant_depth(level, noise):
    shape = (12, 16)
    refined = refine(frame_of(wall(shape, 3.0, noise), np.full(shape, level, np.uint8)))
    assert np.allclose(refined.depth, 3, rtol=0.05)
    if not noise:
        assert np.allclose(refined.normals, (0, 0, -1), atol=0.02)


@pytest.mark.parametrize('image', [np.nan, np.inf, -1.0, 1e30])
def test_images_of_strange_floats(image):
    refine(frame_of(wall((6, 8), 2.0), np.full((6, 8), image, np.float32)))


@pytest.mark.parametrize('fx, baseline', [
    (1e-9, 0.0), (1e9, 0.0), (1e9, 1e300), (1e-9, 1e-300), (500.0, 1e-12), (500.0, 1e12)])
def test_cameras_at_the_edge_of_numbers(fx, baseline):
    depth = wall((6, 8), 2.0)
    frame = Frame(np.zeros((6, 8), np.uint8), depth, Intrinsics(fx, fx, 4.0, 3.0, baseline))
    refined = refine(frame)
    assert np.nanmax(np.abs(refined.depth - depth)) < 0.5


metres = st.one_of(
    st.floats(0.01, 10000), st.floats(0.5, 5),
    st.sampled_from([0.0, np.nan, np.inf, -1.0, 1e-3, 1e5, 1e-38]))


@given(st.integers(1, 9), st.integers(1, 9), st.lists(metres, min_size=1, max_size=12),
       st.lists(st.floats(0, 1, width=32), min_size=1, max_size=5), st.binary(min_size=1),
       st.sampled_from([0.0, 0.0, 0.05, 1.0]))
def test_arbitrary_small_frames(height, width, depths, confidences, pixels, baseline):
    shape = (height, width)
    frame = frame_of(
        np.resize(np.array(depths, np.float32), shape),
        np.resize(np.frombuffer(pixels, np.uint8), shape),
        np.resize(np.array(confidences, np.float32), shape), baseline)
    refined = refine(frame)
    hostile.OUTCOMES['accepted'] += 1
    if refined.status is Status.WORSE:
        valid = refined.provenance == Provenance.MEASURED
        assert np.array_equal(refined.depth[valid], frame.depth[valid])


# ------------------------------------------------- steps that go wrong


# a hundred times the noise
WILD_STEPS = {'solver.learning_rate': 100.0, 'solver.rate_decay': 1.0, 'solver.iterations': 3}


def test_steps_that_raise_the_energy_are_not_taken():
    frame = frame_of(wall((24, 32), 2.0))
    refined = refine(frame, RefinerConfig().with_values(**WILD_STEPS))
    tiny = RefinerConfig().with_values(**{'solver.learning_rate': 1e-6, 'solver.iterations': 1})
    without_steps = refine(frame, RefinerConfig().with_values(**{'solver.iterations': 0}))
    assert refined.status is Status.REFINED and refined.iterations == 0
    assert refined.energy == pytest.approx(refine(frame, tiny).energy, rel=1e-4)
    assert np.allclose(refined.depth, without_steps.depth, rtol=1e-6)


@pytest.mark.parametrize('sensor', ['active-stereo', 'tof'])
def test_without_steps_a_cluttered_stream_is_refined(sensor):
    # as under load: fitted planes are no minimum of the energy, that of the measurement is lower
    stream = SyntheticStream(1, (160, 120), 'moving', sensor, 'clutter')
    refiner = DepthRefiner(RefinerConfig().with_values(**{'solver.iterations': 0}), device='cpu')
    first, second = (refiner.refine(stream.view(t).frame) for t in range(2))
    assert first.status is Status.REFINED and second.status is Status.REFINED
    assert second.history > 0.5


def test_a_frame_that_gets_worse_is_returned_as_it_came():
    # without a prior nothing has a lower energy than the measurement, neither the planes that
    # are fitted to it nor what wild steps make of them
    depth = wall((24, 32), 2.0)
    depth[3:5, 4:9] = 0
    frame = frame_of(depth)
    refiner = DepthRefiner(
        RefinerConfig().with_values(**WILD_STEPS, **{'energy.reg_lambda': 0.0}), device='cpu')
    refined = check(refiner.refine(frame), frame)
    assert refined.status is Status.WORSE and refined.iterations == 0
    assert refined.reset == 'energy did not fall' and refiner.state.history is None
    assert np.array_equal(refined.depth, np.where(depth > 0, depth, np.nan), equal_nan=True)
    assert (refined.provenance[depth > 0] == Provenance.MEASURED).all()
    # laid out as always: kernels of messages would be compiled anew for another order
    assert refined.normals.flags.c_contiguous


@pytest.mark.parametrize('before, stand', [
    (9, 9), (3, 3),  # the steps before it stand
    (0, 0)])
def test_a_step_that_is_not_finite_is_undone_counted_and_forgotten(monkeypatch, before, stand):
    small_steps = {'solver.iterations': 10, 'solver.learning_rate': 0.6, 'solver.rate_decay': 0.2}
    refiner = DepthRefiner(RefinerConfig().with_values(**small_steps), device='cpu')
    frame = frame_of(wall((24, 32), 2.0))
    good = check(refiner.refine(frame), frame)
    assert good.status is Status.REFINED and good.iterations == 10

    solver = refiner._kernels.adam
    steps = solver.steps

    def poisoned(state, rates, slope_share):
        steps(state, [*rates[:before], np.nan, *rates[before + 1:]], slope_share)

    refiner.reset()
    monkeypatch.setattr(solver, 'steps', poisoned)
    refined = check(refiner.refine(frame), frame)
    assert refined.status is Status.DIVERGED
    assert refined.iterations == stand  # none after it is taken
    assert refiner.state.history is None
    monkeypatch.undo()
    assert check(refiner.refine(frame), frame).status is Status.REFINED  # no NaN is carried on


@pytest.mark.parametrize('name, value', [
    ('energy.reg_lambda', 1e4), ('energy.reg_lambda', 0.0), ('energy.reg_alpha', 1e4),
    ('energy.reg_alpha', 0.0),
    ('solver.learning_rate', 1e-6), ('solver.learning_rate', 100.0), ('solver.slope_rate', 10.0),
    ('solver.slope_rate', 0.0),
    ('solver.iterations', 0), ('solver.iterations', 1), ('graph.window', 15), ('graph.patch', 15),
    ('graph.sigma_intensity', 1e-4), ('graph.sigma_space', 0.1), ('graph.neighbours', 1),
    ('graph.color', True), ('graph.normalise', False), ('solver.time_budget_ms', 1e-3),
    ('depth.min', 9e4), ('depth.max', 0.0011)])
def test_every_extreme_of_the_configuration(name, value):
    depth = wall((16, 24), 2.0)
    depth[4:8, 4:8] = np.nan
    refine(frame_of(depth), RefinerConfig().with_values(**{name: value}))


def scenes():
    """Yield frames that are hard on arithmetic."""
    one = np.zeros((9, 12), np.float32)
    one[4, 5] = 2
    yield frame_of(one)
    yield frame_of(np.full((9, 12), np.nan))
    yield frame_of(wall((1, 1), 2.0))
    yield frame_of(wall((2, 3), 2.0))
    yield frame_of(np.geomspace(0.01, 10000, 18 * 24).reshape(18, 24))
    yield frame_of(wall((18, 24), 2.0, 0.0), np.zeros((18, 24, 3), np.uint8))
    yield frame_of(wall((18, 24), 2.0), baseline=0.1)


WAYS = [
    *({'preset': name} for name in PRESETS), {'solver.method': 'irls'},
    {'solver.mode': 'converged', 'solver.max_iterations': 100},
    {'solver.method': 'irls', 'solver.mode': 'converged', 'solver.max_iterations': 100},
    {'solver.levels': 3}, {'solver.scale': 2}, {'solver.scale': 4}, {'backend': 'torch'}]


@pytest.mark.parametrize('way', WAYS, ids=str)
def test_every_way_of_solving(way):
    values = dict(way)
    if values.get('backend') == 'torch':
        pytest.importorskip('torch')
    config = preset(values.pop('preset', 'realtime'), **{'solver.iterations': 4, **values})
    refiner = DepthRefiner(config, device='cpu')
    for frame in scenes():
        for _ in range(3):  # the later ones start from what was learnt
            check(refiner.refine(frame), frame)


def test_depth_of_no_confidence_does_not_come_back_in_a_first_frame():
    rng = np.random.default_rng(0)
    depth = rng.normal(2.5, 0.005, (48, 64))
    confidence = np.ones(depth.shape, np.float32)
    depth[20:24, 30:34], confidence[20:24, 30:34] = 0.7, 0
    image = np.full(depth.shape, 90, np.uint8)
    found = refine(frame_of(depth, image, confidence)).depth[20:24, 30:34]
    assert np.nanmax(np.abs(found - 2.5)) < 0.1
