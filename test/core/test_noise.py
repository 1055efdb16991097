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
"""The noise of a sensor: what a stream begins with, and what residuals teach."""

from __future__ import annotations

import numpy as np
import pytest
from scenes import ramp

from graph_depth_refiner.core import noise, noise_numba
from graph_depth_refiner.core.kernels import select
from graph_depth_refiner.core.noise import first_model, fused_sigma, HIDDEN, learn, NoiseModel
from graph_depth_refiner.frame import Intrinsics

CAMERA = Intrinsics(500.0, 500.0, 320.0, 240.0)
START = NoiseModel(0.0, 0.1, 1e-4)  # far from what is to be learned


def residuals(floor, share, frames=1e9, number=20000, seed=0):
    """Return inverse depth from 0.2 to 2, residuals of a sensor, and the frames behind."""
    rng = np.random.default_rng(seed)
    d = rng.uniform(0.2, 2, number)
    sigma = (floor + share * d) * np.sqrt(1 + 1 / frames)
    return d, sigma * rng.standard_normal(number), np.full(number, frames)


@pytest.mark.parametrize('floor, share', [(2e-3, 0.0), (0.0, 5e-3), (1e-3, 4e-3)])
def test_floor_and_share_are_learned(floor, share):
    model = START
    for seed in range(5):
        model = learn(model, *residuals(floor, share, seed=seed))
    # medians of 2500 samples err by 1.2 / sqrt(2500), some 2 %: in the middle by less
    assert model.sigma(0.7) == pytest.approx(floor + 0.7 * share, rel=0.03)
    assert model.floor == pytest.approx(floor, abs=3e-4)
    assert model.share == pytest.approx(share, abs=3e-4)


def test_the_error_of_the_mean_itself_is_not_counted():
    # against a mean of one frame the residual has twice the variance
    once = learn(START, *residuals(1e-3, 4e-3, frames=1))
    often = learn(START, *residuals(1e-3, 4e-3))
    assert once.sigma(0.7) == pytest.approx(often.sigma(0.7), rel=0.01)


def test_what_was_learned_fades():
    model = START
    for number in range(3):
        model = learn(model, *residuals(0.0, 1e-3))
        assert model.frames == pytest.approx(sum(noise.MEMORY ** one for one in range(number + 1)))
    for _ in range(60):
        model = learn(model, *residuals(0.0, 5e-3))
    # the old ones weigh 25 times as much each, as shares count, but 0.9^60 is 0.2 %
    assert model.share == pytest.approx(5e-3, rel=0.1)


def test_both_parts_are_at_least_zero():
    # errors that fall with inverse depth would need a negative share: the floor alone is left
    rng = np.random.default_rng(0)
    d = rng.uniform(0.2, 2, 20000)
    falling = learn(START, d, 1e-3 / d * rng.standard_normal(d.size), np.full(d.size, 1e9))
    assert falling.share == 0 and falling.floor > 0
    rising = learn(START, d, 1e-3 * d ** 3 * rng.standard_normal(d.size), np.full(d.size, 1e9))
    assert rising.floor == 0 and rising.share > 0


def test_a_single_depth_is_explained_by_one_part():
    # bins by a depth that the residual is part of would have small ones in the middle
    rng = np.random.default_rng(0)
    d = 0.5 + 2e-3 * rng.standard_normal(20000)
    for frames in (1, 9):
        history = 0.5 + 2e-3 / frames ** 0.5 * rng.standard_normal(d.size)
        model = learn(START, d, d - history, np.full(d.size, float(frames)))
        assert model.sigma(0.5) == pytest.approx(2e-3, rel=0.03)


def test_the_fused_order_is_that_of_a_stable_sort():
    # numbers above 0 over many powers of two, most of them several times
    values = np.random.default_rng(0).integers(1, 500, 5000).astype(np.float32) ** 3 / 7
    assert (noise_numba.rising_order(values) == np.argsort(values, kind='stable')).all()


def test_the_fused_bins_are_those_of_the_reference():
    # 20003 samples: some bins have one more than others; many residuals are the same
    samples = [one.astype(np.float32) for one in residuals(1e-3, 4e-3, 3.0, 20003)]
    samples[1] = np.round(samples[1], 3)
    expected, found = noise.binned(*samples), noise_numba.binned(*samples)
    assert found[0] == expected[0]
    assert found[1] == pytest.approx(expected[1], rel=1e-6)  # float32 sums of 2500
    assert (found[2] == expected[2]).all()


def test_few_samples_teach_nothing():
    few = noise.BINS * noise.LEAST_SAMPLES - 1
    assert learn(START, *(one[:few] for one in residuals(1e-3, 0))) is START


def test_a_perfect_sensor_still_has_a_deviation():
    d, _, frames = residuals(0, 0)
    model = learn(START, d, 0 * d, frames)
    assert model.sigma(1.0) == pytest.approx(noise.LEAST, rel=1e-3)


@pytest.mark.parametrize('sensor, floor, share', [
    ('active-stereo', noise.SUBPIXEL / (500 * noise.BASELINE), 0.0),
    ('structured-light', noise.STRUCTURED_LIGHT, 0.0),
    ('tof', 0.0, noise.TIME_OF_FLIGHT)])
def test_kinds_of_sensors_begin_with_their_model(sensor, floor, share):
    model = first_model(sensor, ramp((40, 60)), CAMERA)
    assert (model.floor, model.share, model.fixed) == (floor, share, False)


def test_a_known_baseline_is_a_matcher_whose_noise_is_not_learned():
    # half a pixel of disparity: 0.5 / (500 * 0.1) = 0.01
    camera = Intrinsics(500.0, 500.0, 320.0, 240.0, baseline=0.1)
    for sensor in ('auto', 'stereo'):
        model = first_model(sensor, ramp((40, 60)), camera)
        assert (model.floor, model.share) == (pytest.approx(0.01), 0) and model.fixed


@pytest.mark.parametrize('baseline', [1e-12, 1e12])
def test_a_baseline_out_of_proportion_does_not_count(baseline):
    d = np.full((40, 60), 0.5, np.float32)
    model = first_model('auto', d, Intrinsics(500.0, 500.0, 320.0, 240.0, baseline))
    assert noise.LEAST * 0.5 <= model.floor <= 0.5


@pytest.mark.parametrize('scale', [1e-3, 1.0, 1e3])
def test_auto_has_no_scale(scale):
    # differences in small windows show a third of the noise: HIDDEN
    rng = np.random.default_rng(1)
    d = (scale * 0.5 * (1 + 2e-3 * rng.standard_normal((100, 200)))).astype(np.float32)
    model = first_model('auto', d, CAMERA)
    assert model.floor == 0 and not model.fixed
    assert model.share == pytest.approx(noise.HIDDEN * 2e-3, rel=0.05)


def test_spread_of_a_noisy_plane():
    rng = np.random.default_rng(1)
    d = ramp((100, 200), 0.5, 1e-3, 0) + rng.normal(0, 0.01, (100, 200))
    assert noise.spread_about_planes(d.astype(np.float32)) == pytest.approx(0.01, rel=0.05)


def test_spread_of_a_sensor_that_rounds_is_not_none():
    # steps of 0.01, each 4 px wide: most neighbours are equal, yet the depth is uncertain by
    # the rounding, 0.01 / sqrt(12), give or take what a window of 5 px sees of it
    d = np.round(np.arange(200)[None, :] / 4 + np.zeros((100, 1))) * 0.01 + 0.5
    assert noise.spread_about_planes(d.astype(np.float32)) == pytest.approx(
        0.01 / 12 ** 0.5, rel=0.3)


def test_spread_where_there_is_nothing_to_see():
    least = pytest.approx(noise.LEAST)
    assert noise.spread_about_planes(np.zeros((20, 30), np.float32)) == least
    assert noise.spread_about_planes(np.ones((2, 3), np.float32)) == least


def test_a_mean_has_a_part_that_no_number_of_frames_takes_away():
    model = NoiseModel(1e-3, 2e-3, 1e-4)
    d, frames = np.full(4, 0.5, np.float32), np.array([0.3, 1, 4, 1e9], np.float32)
    assert fused_sigma(model, d, frames) == pytest.approx(
        2e-3 * np.sqrt([1, 1, noise.COMMON + (1 - noise.COMMON) / 4, noise.COMMON]))


@pytest.mark.parametrize('backend', ['fused', 'torch'])
def test_the_same_frame_again_teaches_nothing(backend):
    # cameras slower than their driver send frames twice: the noise would be learned as none
    pytest.importorskip('numba' if backend == 'fused' else 'torch')
    k = select('cpu', backend)
    rng = np.random.default_rng(0)
    ones = np.ones((120, 160), np.float32)
    d = (0.5 + 1e-3 * rng.standard_normal(ones.shape)).astype(np.float32)
    other = (0.5 + 1e-3 * rng.standard_normal(ones.shape)).astype(np.float32)
    before = NoiseModel(2e-3, 0.0, 1e-3)

    def floor(history):
        model = k.learn_noise(before, *map(k.array, (d, ones, history, ones)), 6.0)
        return float(model.floor + 0.5 * model.share)
    assert floor(d) == pytest.approx(2e-3)
    assert floor(other) == pytest.approx(1e-3, rel=0.1)
    # a frame that went through other units and back differs by rounding
    assert floor(d * np.float32(1 + 3e-7)) == pytest.approx(2e-3)
    # some pixels differ, as after a lossy filter of the driver: 5 % leave it the same frame,
    # 20 % make it another one, as does noise of a ten thousandth
    some = rng.random(ones.shape)
    assert floor(np.where(some < 0.05, other, d)) == pytest.approx(2e-3)
    assert floor(np.where(some < 0.2, other, d)) < 1.9e-3
    assert floor(d * (1 + 1e-4 * np.sign(other - d))) < 1.9e-3


@pytest.mark.parametrize('backend', ['fused', 'torch'])
def test_no_less_noise_is_learned_than_a_single_frame_shows(backend):
    # at rest 70 % of the pixels stay on a step of a sensor that rounds: their residual is 0
    pytest.importorskip('numba' if backend == 'fused' else 'torch')
    k = select('cpu', backend)
    ones = np.ones((120, 160), np.float32)
    d = 0.5 * ones
    history = d + np.float32(3e-3) * (np.random.default_rng(0).random(d.shape) < 0.3)
    model = k.learn_noise(NoiseModel(2e-3, 0.0, 1e-3), *map(
        k.array, (d, ones, history.astype(np.float32), ones)), 6.0)
    assert float(model.floor + 0.5 * model.share) == pytest.approx(1e-3, rel=0.1)


def test_a_matcher_hides_no_noise_that_stands_still():
    # its error is that of a patch, half a pixel, and nothing of it was learned over frames
    assert NoiseModel(1e-3, 0.0, 1e-3).hidden == HIDDEN
    assert NoiseModel(1e-3, 0.0, 1e-3, fixed=True).hidden == 1
