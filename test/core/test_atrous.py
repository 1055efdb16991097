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
from types import SimpleNamespace

import numpy as np
import pytest
from scenes import ramp, run

from graph_depth_refiner.core.atrous import GUESS_WIDTH, smooth_planes, WIDTH
from graph_depth_refiner.core.noise import HIDDEN

SHAPE = (70, 90)
SIGMA = 1e-3
ONES = np.ones(SHAPE, np.float32)
INNER = np.s_[:, 25:-25, 25:-25]  # two passes reach 24 pixels
Y, X = np.indices(SHAPE, np.float32)


def smooth(k, planes, weight=ONES, passes=2, independent=0.0, single=False):
    return run(k, lambda *some: smooth_planes(k, *some, independent, HIDDEN, passes, single),
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


def test_one_pass_weighs_samples_by_distance(kernels):
    # 5x5 samples, 4 px apart, weigh as a Gaussian of 1.2 samples: 1, .7066 and .2494 in a row,
    # 2.912 in all. A pixel that is off by far less than the noise tilts no plane at itself: it
    # keeps 1 / 2.912^2, and its neighbours take their share
    planes = wall(0, 0) * 0
    planes[0, 35, 45] = off = 0.01 * SIGMA
    d = smooth(kernels, planes, passes=1)[0] / (off / 2.912 ** 2)
    assert abs(d[35, 45] - 1) < 0.01
    for distance, expected in ((2, 0), (4, 0.7066), (6, 0), (8, 0.2494), (12, 0)):
        for place in ((35, 45 + distance), (35, 45 - distance), (35 + distance, 45)):
            assert abs(d[place] - expected) < 0.01
    assert abs(d[39, 49] - 0.7066 ** 2) < 0.01


def test_what_is_half_as_wide_off_counts_for_nine_sixteenths(kernels):
    # (1 - 1/4)^2: beside it the mean is .5625 * .7066 of 2.912^2 - (1 - .5625) * .7066, and the
    # slope towards it adds 3 %
    planes = wall(0, 0) * 0
    planes[0, 35, 45] = off = WIDTH / 2 * SIGMA
    assert abs(smooth(kernels, planes, passes=1)[0, 35, 49] / off - 0.0502) < 0.001


def test_where_few_pixels_count_slopes_change_less_and_values_hardly(kernels):
    # a flat quarter of the image whose slopes are wrong by little, the rest of another depth.
    # Inside, samples vary by 1.170 spacings^2 and the fit keeps .05 / (1.170 + .05) of the slope.
    # At its corner three of five columns and rows count: a share of .672^2 = .451, by which the
    # slope goes (.451 - .42) / .2 of the way, to .05 / (.491 + .05), and the value stays
    planes = wall(0, 0) * 0
    planes[0] += 50 * SIGMA
    planes[0, :36, :46] = 0
    planes[1:] = wrong = 0.01 * SIGMA
    planes[0, 35, 45] = off = 0.01 * SIGMA
    smoothed = smooth(kernels, planes, passes=1)
    assert np.allclose(smoothed[1:, 20, 20] / wrong, 0.041, atol=0.002)
    assert abs(smoothed[0, 35, 45] / off - 1) < 0.03
    planes[0, 35, 45] = 0
    corner = smooth(kernels, planes, passes=1)[1:, 35, 45]
    assert np.allclose(corner / wrong, 1 - 0.155 * (1 - 0.0924), atol=0.02)


def test_weights_count_relative_to_each_other(kernels):
    noisy = wall()
    noisy[0] += 0.3 * SIGMA * np.random.default_rng(0).standard_normal(SHAPE)
    one, other = (smooth(kernels, noisy, share * ONES) for share in (1.0, 0.25))
    assert np.abs(one - other).max() < 1e-3 * SIGMA


@pytest.mark.parametrize('hidden, single, width', [
    (HIDDEN, False, WIDTH), (HIDDEN, True, WIDTH), (1.0, False, GUESS_WIDTH)])
def test_passes_go_farther_and_ask_for_less_noise(kernels, hidden, single, width):
    # 12 pixels are averaged before the first pass and four times as many after each; single
    # pixels get one pass more
    seen = []

    def atrous_pass(planes, weight, width, spacing):
        seen.append((spacing, float(width[0, 0]) / SIGMA))
        return kernels.atrous_pass(planes, weight, width, spacing)

    k = SimpleNamespace(atrous_pass=atrous_pass, smaller=kernels.smaller,
                        plane_mismatch=kernels.plane_mismatch)
    smooth_by = partial(smooth_planes, k, independent=0.75, hidden=hidden,
                        passes=2 + (not single), single=single)
    run(kernels, smooth_by, wall().astype(np.float32), ONES, SIGMA * ONES)
    expected = [width * (0.25 + 0.75 / n) ** 0.5 for n in (12, 48, 192)]
    assert [spacing for spacing, _ in seen] == [4, 8, 16]
    assert np.allclose([width for _, width in seen], expected, rtol=1e-5)


def ripples(length, amplitude):
    """Return planes of a wall with ripples both ways, their slopes included."""
    planes, turn = wall(0, 0), 2 * np.pi / length
    planes[0] += amplitude * np.sin(turn * X) * np.sin(turn * Y)
    planes[1] = turn * amplitude * np.cos(turn * X) * np.sin(turn * Y)
    planes[2] = turn * amplitude * np.sin(turn * X) * np.cos(turn * Y)
    return planes


@pytest.mark.parametrize('hidden', [HIDDEN, 1.0])
def test_ripples_that_stand_still_are_noise_too(kernels, hidden):
    # residuals along the motion tell only a third of these ripples; a guess includes them
    def slopes_left(k):
        planes = ripples(20, SIGMA).astype(np.float32)
        smooth_by = partial(smooth_planes, k, independent=0.0, hidden=hidden, passes=2,
                            single=False)
        found = run(kernels, smooth_by, planes, ONES, SIGMA / 3 * ONES)
        return np.abs(found[1:])[INNER].mean()
    deaf = SimpleNamespace(atrous_pass=kernels.atrous_pass, smaller=kernels.smaller,
                           plane_mismatch=lambda *_: np.float32(0))
    heard = slopes_left(kernels) / slopes_left(deaf)
    assert heard < 0.8 if hidden > 1 else heard == 1


def test_what_bends_alike_everywhere_is_not_taken_for_noise(kernels):
    planes = wall(0, 0)
    curve = SIGMA / 8
    planes[0] = 0.5 + 0.5 * curve * ((X - 44.5) ** 2 + (Y - 34.5) ** 2)
    planes[1:] = curve * (X - 44.5), curve * (Y - 34.5)
    found = run(kernels, partial(kernels.plane_mismatch, spacing=8), planes.astype(np.float32),
                ONES, SIGMA * ONES)
    assert found < 1e-2  # planes 16 px apart are off by 16 deviations


def test_nothing_known_shows_no_mismatch(kernels):
    planes = ripples(20, SIGMA).astype(np.float32)
    nothing = run(kernels, partial(kernels.plane_mismatch, spacing=2), planes, 0 * ONES,
                  SIGMA * ONES)
    assert nothing == 0


def test_both_variants_agree_at_any_size(variants):
    rng = np.random.default_rng(1)
    for height, width in ((1, 1), (3, 50), (37, 53)):
        planes = rng.normal(0, SIGMA, (3, height, width)).astype(np.float32)
        planes[1:] *= 0.1
        weight = rng.integers(0, 2, (height, width)).astype(np.float32)
        sigma = rng.uniform(0.5, 2, (height, width)).astype(np.float32) * SIGMA
        one, other = (
            run(k, partial(smooth_planes, k, independent=0.5, hidden=HIDDEN, passes=3,
                           single=False), planes, weight, sigma)
            for k in variants)
        assert np.abs(one - other).max() < 1e-4 * SIGMA
