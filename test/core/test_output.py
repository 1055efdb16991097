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
"""Depth, normals, confidence and provenance of planes."""

from __future__ import annotations

import numpy as np
import pytest
from scenes import ramp_planes, run

from graph_depth_refiner.core.noise import NoiseModel
from graph_depth_refiner.core.output import in_turn
from graph_depth_refiner.frame import Intrinsics, Provenance

SHAPE = (30, 40)
NOISE = (5e-4, 1e-3)  # at an inverse depth of 0.5 a deviation of 1e-3
ONES = np.ones(SHAPE, np.float32)


def test_results_say_where_they_come_from(kernels):
    x, d, m = ramp_planes(SHAPE, 0.5, 0, 0), 0.5 * ONES, 0.5 * ONES
    d[0, 0], m[0, 0] = 0, 0  # a hole
    d[0, 1] = 0.6  # a hundred units off
    x[0, 0, 2] = -1  # no depth at all
    frames = 3 * ONES
    frames[0, 0] = 4  # of earlier frames
    d[0, 4], d[0, 5] = 0.5029, 0.5031  # three deviations at 0.503 are 3.009e-3
    d[0, 6] = m[0, 6] = frames[0, 6] = 0  # filled from around
    m[0, 7] = 0.9
    depth, normals, confidence, provenance = run(
        kernels, kernels.describe, x, d, m, frames, NOISE,
        Intrinsics(50, 50, 20, 15), (0.01, 100.0))
    assert provenance[0, :7].tolist() == [
        Provenance.FILLED, Provenance.CORRECTED, Provenance.UNKNOWN, Provenance.MEASURED,
        Provenance.MEASURED, Provenance.CORRECTED, Provenance.FILLED]
    assert np.isnan(depth[0, 2]) and np.isnan(normals[0, 2]).all() and confidence[0, 2] == 0
    assert np.allclose(depth[1:], 2) and np.allclose(normals[1:], (0, 0, -1))
    # n frames are worth n / (1 + n), filled or measured, and a measurement at least its own
    assert np.allclose(confidence[0, [0, 1, 3, 6, 7]], [0.8, 0.75, 0.75, 0, 0.9])


def test_variants_agree(variants):
    rng = np.random.default_rng(1)
    x = (0.5 + 0.1 * rng.standard_normal((3, *SHAPE))).astype(np.float32)
    d = (x[0] + 3e-3 * rng.standard_normal(SHAPE)).astype(np.float32) * (
        rng.random(SHAPE) > 0.2)
    frames = (9 * rng.random(SHAPE)).astype(np.float32)
    args = (x, d.astype(np.float32), ONES, frames, NOISE, Intrinsics(50, 55, 20, 15),
            (0.3, 0.8))
    for one, two in zip(*(run(k, k.describe, *args) for k in variants)):
        assert np.allclose(one, two, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize('scale', [2, 4])
@pytest.mark.parametrize('shape', [SHAPE, (29, 43), (12, 9)])
@pytest.mark.parametrize('share', [0.7, None])
def test_planes_are_upsampled_and_described_at_once(kernels, scale, shape, share):
    rng, k = np.random.default_rng(2), kernels
    small = ramp_planes((shape[0] // scale, shape[1] // scale), 0.5, 2e-3, -1e-3)
    d = (0.5 + 5e-3 * rng.standard_normal(shape)).astype(np.float32) * (rng.random(shape) > 0.2)
    frames = (9 * rng.random(shape)).astype(np.float32)
    around, behind = k.array(d), k.array(frames)
    cells = (k.array(small), k.array(np.ones_like(small[0])), around, behind,
             NoiseModel(1e-3, 1e-3, 1e-3), 1e-3, scale)
    kept = None if share is None else k.array(rng.random(shape) < share)
    measured = k.array(d * (rng.random(shape) > 0.2).astype(np.float32))  # d is also of the past
    shown = (measured, k.array(np.ones_like(d)), behind, NOISE, Intrinsics(50, 55, 20, 15),
             (0.3, 0.8))
    described = k.upsample_and_describe(cells, kept, shown)
    expected = in_turn(k.upsample_planes, k.keep_planes, k.describe, cells, kept, shown)
    for one, other in zip(described, expected):
        assert np.allclose(k.numpy(one), k.numpy(other), rtol=1e-6, atol=1e-6, equal_nan=True)
    unknown = np.isnan(k.numpy(described[0]))
    assert unknown.any() if kept is not None else not unknown.any()
