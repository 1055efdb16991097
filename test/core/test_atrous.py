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
"""A-trous smoothing: wide windows where one plane explains them, and nothing elsewhere."""

from __future__ import annotations

from functools import partial

import numpy as np
from scenes import ramp, run

from graph_depth_refiner.core.atrous import smooth_planes

SHAPE = (70, 90)
SIGMA = 1e-3
ONES = np.ones(SHAPE, np.float32)
INNER = np.s_[:, 29:-29, 29:-29]  # three passes reach 28 pixels
X = (np.arange(SHAPE[1]) * ONES).astype(np.float32)


def smooth(k, planes, weight=ONES, passes=3, independent=0.0):
    return run(k, lambda *some: smooth_planes(k, *some, independent, passes),
               planes.astype(np.float32), weight, SIGMA * ONES)


def wall(ux=5e-4, uy=-2e-4):
    d = ramp(SHAPE, 0.5, ux, uy)
    return np.stack([d, ux * ONES, uy * ONES])


def test_a_plane_stays_a_plane(kernels):
    assert np.abs(smooth(kernels, wall()) - wall()).max() < 2e-6


def test_noise_on_a_plane_is_averaged_over_wide_windows(kernels):
    rng = np.random.default_rng(0)
    noisy = wall()
    noisy[0] += 0.3 * SIGMA * rng.standard_normal(SHAPE)
    noisy[1:] += 0.03 * SIGMA * rng.standard_normal((2, *SHAPE))
    left = (smooth(kernels, noisy) - wall())[INNER].std(axis=(1, 2))
    # a pass averages some 4 pi 1.2^2 = 18 samples, a value counts in several of the next
    assert left[0] < 0.3 * SIGMA / 18 ** 0.5
    # slopes of samples up to 16 px apart: the values' noise over several pixels
    assert left[1:].max() < 0.3 * SIGMA / 18


def test_a_step_of_many_deviations_stays(kernels):
    planes = wall(0, 0)
    planes[0] += 20 * SIGMA * (X >= 45)
    assert np.abs(smooth(kernels, planes) - planes).max() < 2e-6


def test_a_crease_stays_sharp(kernels):
    # a roof: both sides predict each other wrongly by a deviation per pixel from the ridge
    planes = wall(0, 0)
    planes[0] = 0.5 - SIGMA * np.abs(X - 44.5)
    planes[1] = np.where(X < 44.5, SIGMA, -SIGMA)
    smoothed = smooth(kernels, planes)
    assert np.abs(smoothed[0] - planes[0]).max() < 0.5 * SIGMA
    assert np.abs(smoothed[1:] - planes[1:]).max() < 0.2 * SIGMA


def test_what_is_curved_beyond_the_noise_stays(kernels):
    # samples of the first pass are 4 px away, off by one deviation, those of the second 8 px
    # and four deviations, more than the width: so it changes by less than a deviation
    planes = wall(0, 0)
    curve = SIGMA / 8
    planes[0] = 0.5 + 0.5 * curve * (X - 44.5) ** 2
    planes[1] = curve * (X - 44.5)
    smoothed = smooth(kernels, planes)
    assert np.abs(smoothed[0] - planes[0])[20:-20, 20:-20].max() < SIGMA
    assert np.abs(smoothed[1] - planes[1])[20:-20, 20:-20].max() < 0.1 * SIGMA


def test_noise_that_was_averaged_already_makes_the_test_stricter(kernels):
    # a step of two deviations is noise while nothing is averaged, else another surface
    planes = wall(0, 0)
    planes[0] += 2 * SIGMA * (X >= 45)
    blurred, sharp = (np.abs(smooth(kernels, planes, independent=one) - planes)[0].max()
                      for one in (0.0, 1.0))
    assert blurred > 0.3 * SIGMA
    assert sharp < 0.01 * SIGMA


def test_pixels_of_no_weight_stay_and_do_not_count(kernels):
    planes, weight = wall(0, 0), ONES.copy()
    weight[:, 40:50] = 0
    planes[0, :, 40:50] += SIGMA
    smoothed = smooth(kernels, planes, weight)
    assert np.abs(smoothed - planes).max() < 1e-7


def test_no_pass_changes_nothing(kernels):
    noisy = wall() + np.random.default_rng(0).normal(size=(3, *SHAPE))
    assert np.array_equal(smooth(kernels, noisy, passes=0), noisy.astype(np.float32))


def test_both_variants_agree_at_any_size(variants):
    rng = np.random.default_rng(1)
    for height, width in ((1, 1), (3, 50), (37, 53)):
        planes = rng.normal(0, SIGMA, (3, height, width)).astype(np.float32)
        planes[1:] *= 0.1
        weight = rng.integers(0, 2, (height, width)).astype(np.float32)
        sigma = rng.uniform(0.5, 2, (height, width)).astype(np.float32) * SIGMA
        one, other = (
            run(k, partial(smooth_planes, k, independent=0.5, passes=3), planes, weight, sigma)
            for k in variants)
        assert np.abs(one - other).max() < 1e-4 * SIGMA
