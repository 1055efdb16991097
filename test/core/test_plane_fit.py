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
"""Planes in shiftable windows: exact on planes, true to edges and thin structures."""

from __future__ import annotations

import numpy as np
from scenes import ramp, run

SHAPE = (40, 60)
SETTINGS = (1e-3, (8, 4, 2), 1.3, 0.07)  # sigma, window radii, bonus of wide ones, color sigma
ONES = np.ones(SHAPE, np.float32)


def fit(k, d, m, guide=None):
    guide = np.full(d.shape, 0.5, np.float32) if guide is None else guide
    return run(k, k.fit_planes, d, m, guide, *SETTINGS)


def test_a_plane_is_found_exactly_also_in_holes(kernels):
    d, m = ramp(SHAPE), ONES.copy()
    m[10:25, 20:40] = 0  # larger than the narrow windows
    x, _ = fit(kernels, np.where(m > 0, d, 0).astype(np.float32), m)
    # the ridge of 1e-3 px^2 against pixels that spread by 0.2 px^2 or more: below 1 %
    assert np.abs(x[1] - 2e-3).max() < 2e-5 and np.abs(x[2] + 1e-3).max() < 1e-5
    assert np.abs(x[0] - d).max() < 2e-4  # 1 % of a slope, 10 pixels into the hole


def test_a_step_stays_a_step(kernels):
    d, m = ramp(SHAPE), ONES
    d[:, 30:] += 0.3
    x, _ = fit(kernels, d, m)
    assert np.abs(x[0] - d).max() < 1e-4


def test_a_thin_pole_is_refitted(kernels):
    d, m = ramp(SHAPE), ONES
    d[:, 30:32] = 1.0  # two pixels wide, in no window of its own
    x, _ = fit(kernels, d, m)
    # slopes of a handful of points are damped, so the pole is flat within a few units
    assert np.abs(x[0][:, 30:32] - 1.0).max() < 5e-3
    assert np.abs(x[0][:, :28] - d[:, :28]).max() < 1e-4


def test_one_pixel_is_no_plane_but_keeps_its_value(kernels):
    d, m = np.zeros((20, 20), np.float32), np.zeros((20, 20), np.float32)
    d[5, 5] = m[5, 5] = 1
    x, _ = fit(kernels, d, m)
    assert np.isfinite(x).all() and x[0, 5, 5] == 1


def test_variants_agree(variants):
    rng = np.random.default_rng(0)
    d = ramp((67, 101))
    d[20:40, 30:60] += 0.2
    d = (d + 1e-3 * rng.standard_normal(d.shape)).astype(np.float32)
    m = ((rng.random(d.shape) > 0.1) * rng.uniform(0.5, 1, d.shape)).astype(np.float32)
    guide = rng.random(d.shape).astype(np.float32)
    (one, cost), (other, other_cost) = (fit(k, d, m, guide) for k in variants)
    close = np.abs(one - other).max(0) < 1e-5
    assert close.mean() > 0.995  # two windows may cost the same up to rounding
    # costs are variances: rounding of the sums is judged against that of the noise, 1e-6
    assert np.isclose(cost, other_cost, rtol=1e-3, atol=1e-8).mean() > 0.995
