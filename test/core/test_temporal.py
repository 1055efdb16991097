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
"""The running mean with the history: what counts, what is bias, and what is a change."""

from __future__ import annotations

import numpy as np
import pytest
from scenes import ramp, run

from graph_depth_refiner.core import temporal
from graph_depth_refiner.core.noise import NoiseModel
from graph_depth_refiner.core.observation import Observation
from graph_depth_refiner.frame import Intrinsics

SHAPE = (48, 64)
SIGMA = 1e-3
NOISE = NoiseModel(SIGMA, 0.0, 0.1 * SIGMA)  # alike over many pixels
INDEPENDENT = NoiseModel(SIGMA, 0.0, SIGMA)
ONES = np.ones(SHAPE, np.float32)
GREY = np.full(SHAPE, 100, np.uint8)
CAMERA = Intrinsics(60.0, 60.0, 32.0, 24.0)
NO_LIMIT = 1e4


def wall(value=0.5):
    return ramp(SHAPE, value, 0, 0)


def fuse(k, d, past, frames, m=ONES, grey=GREY, flow=0.0, limit=NO_LIMIT, noise=NOISE):
    """Return what is fused, as numpy arrays."""
    obs = Observation(*map(k.array, (d, m, m, grey)), grey, CAMERA, 0.0, None, False, d)
    warped = tuple(map(k.array, (past, frames, GREY[None])))
    found = temporal.fuse(k, obs, warped, noise, flow, limit)
    return temporal.Fused(*map(k.numpy, (found.d, found.frames, found.history)), found.kept)


def test_a_camera_at_rest_gives_the_mean(kernels):
    rng = np.random.default_rng(0)
    seen = (0.5 + SIGMA * rng.standard_normal((10, *SHAPE))).astype(np.float32)
    d, frames = seen[0], ONES
    for one in seen[1:]:
        fused = fuse(kernels, one, d, frames)
        d, frames = fused.d, fused.frames
    # a pixel in a thousand is an outlier of such noise, or has some around it
    same = frames == len(seen)
    assert same.mean() > 0.98
    assert np.abs(d - seen.mean(axis=0))[same].max() < 1e-6


def test_confidence_weighs(kernels):
    # two frames said 0.5, this one, half as sure, 0.502: (2 * 0.5 + 0.5 * 0.502) / 2.5
    fused = fuse(kernels, 0.502 * ONES, wall(), 2 * ONES, m=0.5 * ONES)
    assert fused.d == pytest.approx(0.5004) and fused.frames == pytest.approx(2.5)
    assert fused.kept == 1


def test_the_frames_are_limited(kernels):
    # of 50 frames 8 count: (8 * 0.5 + 0.502) / 9
    fused = fuse(kernels, 0.502 * ONES, wall(), 50 * ONES, limit=8)
    assert fused.d == pytest.approx(0.5 + 0.002 / 9) and (fused.frames == 8).all()


def moving_bias():
    """Return an error, smooth over the image, of 2.5 standard deviations."""
    return (2.5 * SIGMA * np.sin(np.arange(SHAPE[1]) / 40)).astype(np.float32) * ONES


def test_a_bias_that_moves_with_the_camera_is_taken_out(kernels):
    d = wall() + moving_bias()
    fused = fuse(kernels, d, wall(), 9 * ONES, flow=1000 * temporal.BIAS_FLOW)
    # blurred over 24 px, a sine of 250 px keeps exp(-(24 / 40)^2 / 2) = 0.84 of its height
    inner = np.abs(fused.history - d)[:, 8:-8]
    assert inner.max() < 0.35 * np.abs(moving_bias()).max()
    assert fused.kept == 1 and (fused.frames == 10).all()


def test_a_bias_is_no_change_of_the_scene(kernels):
    # 4 standard deviations everywhere would be a change of a thing, but not of all of it
    fused = fuse(kernels, wall() + np.float32(4 * SIGMA), wall(), 100 * ONES, flow=1e6)
    assert fused.kept == 1 and fused.history == pytest.approx(0.5 + 4 * SIGMA, rel=1e-4)


def test_at_rest_nothing_is_taken_out(kernels):
    fused = fuse(kernels, wall() + moving_bias(), wall(), 9 * ONES)
    assert (fused.history == np.float32(0.5)).all()


@pytest.mark.parametrize('flow, share', [(0.0, 0.0), (temporal.BIAS_FLOW, 0.5)])
def test_the_bias_grows_with_the_motion(flow, share):
    sums = np.stack([np.full((6, 8), 64 * 0.01), np.full((6, 8), 64)]).astype(np.float32)
    assert temporal.bias_field(sums, flow) == pytest.approx(share * 0.01)


def test_no_bias_is_known_where_little_is_measured():
    # a tenth of the support that is asked for: a tenth counts
    count = 0.1 * temporal.LEAST_SUPPORT * temporal.BLOCK ** 2
    sums = np.stack([np.full((6, 8), 0.01 * count), np.full((6, 8), count)]).astype(np.float32)
    assert temporal.bias_field(sums, 1e9) == pytest.approx(0.1 * 0.01, rel=1e-4)
    assert (temporal.bias_field(0 * sums, 1e9) == 0).all()


def test_an_outlier_costs_the_history_half_of_its_weight(kernels):
    d = wall()
    d[20, 30] += 100 * SIGMA
    fused = fuse(kernels, d, wall(), 8 * ONES)
    assert fused.d[20, 30] == np.float32(0.5)
    assert fused.frames[20, 30] == pytest.approx(8 * temporal.OUTLIER_SHARE)
    assert (np.delete(fused.frames.ravel(), 20 * SHAPE[1] + 30) == 9).all()


def test_a_history_of_a_single_frame_gives_way_to_an_outlier(kernels):
    d = wall()
    d[20, 30] += 100 * SIGMA
    fused = fuse(kernels, d, wall(), ONES)
    assert fused.d[20, 30] == d[20, 30] and fused.frames[20, 30] == 1


def test_what_moved_starts_at_once(kernels):
    d = wall()
    d[:, 32:] = 0.6  # a hundred standard deviations nearer
    fused = fuse(kernels, d, wall(), 20 * ONES)
    # windows reach 2 px: all that are on the new side beyond that disagree
    assert (fused.d[:, 34:] == np.float32(0.6)).all() and (fused.frames[:, 34:] == 1).all()
    assert (fused.frames[:, :29] == 21).all()
    assert fused.kept == pytest.approx(0.5, abs=0.05)


def test_another_colour_starts_anew(kernels):
    grey = GREY.copy()
    grey[:, 40:] += 40  # 0.16 of the range
    fused = fuse(kernels, 0.5005 * ONES, wall(), 20 * ONES, grey=grey)
    assert (fused.d[:, 41:] == np.float32(0.5005)).all() and (fused.frames[:, 41:] == 1).all()
    assert (fused.frames[:, :39] == 21).all()


def test_another_exposure_is_no_change_of_the_scene(kernels):
    # twice as bright: 0.4 of the range; what is too dark, or without a history, does not tell
    fused = fuse(kernels, wall(), wall(), 20 * ONES, grey=2 * GREY)
    assert (fused.frames == 21).all()
    gain = [run(kernels, kernels.exposure_gain, now, before, frames) for now, before, frames in (
        (2 * GREY, GREY, ONES), (0 * GREY, GREY, ONES), (2 * GREY, GREY, 0 * ONES),
        (100 + GREY, 0 * GREY + temporal.DARK - 1, ONES))]
    assert gain == [2, 1, 1, 1]


def test_unseen_pixels_keep_their_value_for_a_while(kernels):
    frames, count = 8 * ONES, 0
    while frames.any():
        fused = fuse(kernels, 0 * ONES, wall(), frames, m=0 * ONES)
        frames, count = fused.frames, count + 1
        assert (fused.d == np.where(frames > 0, np.float32(0.5), 0)).all()
    # 8 * 0.9^19 is 1.08, and once more is less than a frame
    assert count == 20


def test_under_motion_they_are_forgotten_sooner(kernels):
    fused = fuse(kernels, 0 * ONES, wall(), 8 * ONES, m=0 * ONES, flow=temporal.UNSEEN_FLOW)
    assert fused.frames == pytest.approx(8 * temporal.UNSEEN_SHARE / 2)


def test_under_motion_a_rough_history_counts_less_than_a_plane(kernels):
    # misplaced by 0.05 * 10 = 0.5 px: where steps change by 4e-3 that is two deviations, so that
    # 9 frames count for 9 / (1 + 9 * 4); at the border and on a slope nothing is known to change
    rough, slope = wall(), ramp(SHAPE, 0.5, 4e-3, 0)
    rough[:, ::2] += np.float32(2e-3)
    fused = fuse(kernels, rough, rough, 9 * ONES, flow=10.0)
    assert fused.frames[:, 1:-1] == pytest.approx(1 + 9 / 37, rel=1e-3)
    assert fused.frames[:, [0, -1]] == pytest.approx(10)
    assert fuse(kernels, slope, slope, 9 * ONES, flow=10.0).frames == pytest.approx(10)


def test_a_small_shift_is_a_change_where_noise_is_independent(kernels):
    # a deviation off everywhere: five of those of a mean over 25 pixels, if each errs on its own
    d = wall()
    d[:, 32:] += np.float32(SIGMA)
    alike, independent = (
        fuse(kernels, d, wall(), 20 * ONES, noise=noise) for noise in (NOISE, INDEPENDENT))
    assert (alike.frames == 21).all()
    assert (independent.frames[:, 34:] == 1).all() and (independent.frames[:, :29] == 21).all()


def test_without_a_history_the_measurement_is_all(kernels):
    fused = fuse(kernels, 0.5 * ONES, 0 * wall(), 0 * ONES)
    assert (fused.d == np.float32(0.5)).all() and (fused.frames == 1).all()
    assert fused.kept == 0 and (fused.history == 0).all()


@pytest.mark.parametrize('shape', [SHAPE, (37, 53), (1, 1), (3, 9)])
def test_variants_agree(variants, shape):
    rng = np.random.default_rng(0)

    def some(values, share):
        return (values * (rng.random(shape) < share)).astype(np.float32)
    past = some(0.5 + SIGMA * rng.standard_normal(shape), 0.9)
    d = some(0.5 + 3 * SIGMA * rng.standard_normal(shape), 0.8)
    m = some(rng.uniform(0.5, 1, shape), 1) * (d > 0)
    frames = some(20 * rng.random(shape), 1) * (past > 0)
    noise = NoiseModel(0.5 * SIGMA, SIGMA, SIGMA)
    sums = [run(k, k.bias_sums, d, m, past, frames, noise) for k in variants]
    assert np.allclose(*sums, atol=1e-5)
    bias = temporal.bias_field(sums[0], 3.0)
    grey, other = rng.integers(90, 110, (2, *shape)).astype(np.uint8)
    found = [run(k, k.fuse, d, m, grey, past, frames, other, 1.01, bias, noise, 3.0, 15.0, 1.0)
             for k in variants]
    # a gate may fall to either side by rounding
    for one, two in zip(*(each[:3] for each in found)):
        assert np.isclose(one, two, rtol=1e-4).mean() > 0.999
    assert np.abs(found[0][3] - found[1][3]).max() <= 1
