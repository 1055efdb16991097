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
"""Planes around every pixel: exact on planes, sharp at steps, continuous where it bends."""

from __future__ import annotations

import numpy as np
import pytest
from scenes import ramp, run

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.downsampling import Guide, Level
from graph_depth_refiner.core.local_planes import finish_planes, fit_planes
from graph_depth_refiner.frame import Intrinsics

SHAPE = (40, 60)
SIGMA = 1e-3
ONES = np.ones(SHAPE, np.float32)
INNER = np.s_[7:-7, 7:-7]  # two rounds away from the border


def fit(k, d, frames=ONES):
    return run(k, lambda *some: fit_planes(k, *some), d, frames, SIGMA * ONES)


@pytest.mark.parametrize('ux, uy', [(0, 0), (2e-3, -1e-3), (0.01, 0.01), (-0.02, 0.01)])
def test_a_plane_is_found_however_steep(kernels, ux, uy):
    # 0.02 per pixel are twenty standard deviations. The ridge of 0.05 px^2 takes its share
    # of the slopes: of a spread of 1.8 px^2 inside, 0.03, and of half of that at the border,
    # where the pixels lie a pixel to one side: 0.07 px of slope in each of both rounds
    d = ramp(SHAPE, 10, ux, uy)
    planes, steep = fit(kernels, d), max(abs(ux), abs(uy))
    slopes = planes[1:] - np.array([ux, uy])[:, None, None]
    assert np.abs(planes[0] - d)[INNER].max() < 1e-5
    assert np.abs(slopes[:, 7:-7, 7:-7]).max() < 0.03 * steep + 2e-6
    assert np.abs(planes[0] - d).max() < 0.2 * steep + 1e-5


def test_noise_is_averaged(kernels):
    rng = np.random.default_rng(0)
    d = ramp(SHAPE)
    noisy = (d + SIGMA * rng.standard_normal(SHAPE)).astype(np.float32)
    # weights fade over 1.5 px: as many as 4 pi 1.5^2 = 28 equal ones, twice a little more
    error = (fit(kernels, noisy)[0] - d)[4:-4, 4:-4].std()
    assert error < 1.1 * SIGMA / 28 ** 0.5


def test_a_step_stays_a_step(kernels):
    d = ramp(SHAPE, 0.5, 0.5 * SIGMA, 0)
    d[:, 30:] += 20 * SIGMA
    planes = fit(kernels, d)
    # as at a border, but for a pixel that predicts itself across: 0.15 px of the slope
    assert np.abs(planes[0] - d)[INNER].max() < 0.15 * 0.5 * SIGMA
    assert np.abs(planes[1] - 0.5 * SIGMA)[INNER].max() < 0.1 * SIGMA


def test_normals_of_a_sphere_are_continuous(kernels):
    # inverse depth of a cap, d = 0.5 + sqrt(r^2 - x^2 - y^2): its slopes are known
    y, x = np.mgrid[:40, :60] - np.array([19.5, 29.5])[:, None, None]
    radius, scale = 60.0, 1e-3
    height = np.sqrt(radius ** 2 - x ** 2 - y ** 2)
    planes = fit(kernels, (0.5 + scale * height).astype(np.float32))
    slopes = scale * np.stack([-x, -y]) / height
    inner = np.s_[:, 4:-4, 4:-4]
    # the slope changes by scale / radius per pixel and more towards the rim; facets would
    # change by nothing for pixels on end, then by many times that
    assert np.abs(planes[1:] - slopes)[inner].max() < 0.04 * np.abs(slopes).max()
    step = np.diff(planes[1, 4:-4, 4:-4], axis=1)
    expected = np.diff(slopes[0, 4:-4, 4:-4], axis=1)
    assert (step / expected).min() > 0.8 and (step / expected).max() < 1.2


def test_unknown_pixels_stay_unknown_and_count_for_nothing(kernels):
    frames = ONES.copy()
    frames[10:25, 20:40] = 0
    d, known = ramp(SHAPE, 0.5, 0.5 * SIGMA, 0), frames > 0
    for unknown in (0, 1):  # whatever value they come with
        planes = fit(kernels, np.where(known, d, unknown * d).astype(np.float32), frames)
        assert (planes[:, ~known] == 0).all()
        # as at a border: 0.2 px of the slope
        assert np.abs(planes[0] - d)[known].max() < 0.2 * 0.5 * SIGMA


def test_a_pixel_alone_keeps_its_value(kernels):
    d, frames = 0 * ONES, 0 * ONES
    d[5, 5] = frames[5, 5] = 1
    planes = fit(kernels, d, frames)
    assert planes[0, 5, 5] == 1 and (planes[1:] == 0).all() and planes[0].sum() == 1


def test_first_slopes_are_of_the_flatter_side_at_an_edge(kernels):
    d = ramp(SHAPE, 0.5, 1e-3, 0)
    d[:, 30:] += 0.3
    slopes = run(kernels, kernels.first_slopes, d, ONES, SIGMA * ONES)
    assert slopes[0] == pytest.approx(1e-3, rel=1e-3) and np.abs(slopes[1]).max() < 1e-6


def finished(k, planes, frames, **values):
    """Return the last planes of a flat image."""
    level = Level(*map(k.array, (planes[0], frames, SIGMA * ONES)), SIGMA, SIGMA)
    guide = Guide(k.array(ONES), k.array(ONES), k.array(np.zeros((1, *SHAPE), np.uint8)),
                  Intrinsics(60.0, 60.0, 30.0, 20.0), 1)
    config = RefinerConfig().with_values(**values)
    return k.numpy(finish_planes(k, k.array(planes), level, guide, config))


def test_slopes_are_refitted_to_the_values(kernels):
    planes = np.stack([ramp(SHAPE), 0 * ONES, 0 * ONES])
    found = finished(kernels, planes, ONES, **{'planes.passes': 0})
    assert (found[0] == planes[0]).all()
    assert np.abs(found[1, 4:-4, 4:-4] - 2e-3).max() < 1e-4
    assert (finished(kernels, planes, ONES, **{'planes.start': False}) == planes).all()


@pytest.mark.parametrize('fill', ['none', 'small', 'all'])
def test_a_hole_goes_on_with_the_planes_around(kernels, fill):
    frames = ONES.copy()
    frames[10:20, 20:30] = 0
    planes = np.stack([0.5 * ONES * frames, 0 * ONES, 0 * ONES])
    found = finished(kernels, planes, frames, **{'holes.fill': fill})
    assert found[0, frames == 0] == pytest.approx(0 if fill == 'none' else 0.5)


@pytest.mark.parametrize('every', [1, 2])
@pytest.mark.parametrize('shape', [(67, 101), (1, 1), (2, 9)])
def test_variants_agree(variants, shape, every):
    rng = np.random.default_rng(0)
    d = ramp(shape)
    d[20:40, 30:60] += 0.2
    frames = ((rng.random(shape) > 0.1) * rng.uniform(0.5, 9, shape)).astype(np.float32)
    d = ((d + SIGMA * rng.standard_normal(shape)) * (frames > 0)).astype(np.float32)
    sigma = (SIGMA * rng.uniform(0.5, 1, shape)).astype(np.float32)
    one, other = (run(k, k.first_slopes, d, frames, sigma) for k in variants)
    assert np.isclose(one, other, atol=1e-6).mean() > 0.999  # sides may turn as much as allowed
    fits = [run(k, k.fit_local_planes, d, frames, sigma, one, every) for k in variants]
    assert np.allclose(*fits, atol=2e-6)
