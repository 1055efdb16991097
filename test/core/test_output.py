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
from scenes import ramp_planes, run

from graph_depth_refiner.frame import Intrinsics, Provenance

SHAPE = (30, 40)
SIGMA = 1e-3
ONES = np.ones(SHAPE, np.float32)


def test_results_say_where_they_come_from(kernels):
    x, d, m = ramp_planes(SHAPE, 0.5, 0, 0), 0.5 * ONES, 0.5 * ONES
    d[0, 0], m[0, 0] = 0, 0  # a hole
    d[0, 1] = 0.6  # a hundred units off
    x[0, 0, 2] = -1  # no depth at all
    depth, normals, confidence, provenance = run(
        kernels, kernels.describe, x, d, m, 3 * ONES, SIGMA, Intrinsics(50, 50, 20, 15),
        (0.01, 100.0))
    assert provenance[0, :4].tolist() == [
        Provenance.FILLED, Provenance.CORRECTED, Provenance.UNKNOWN, Provenance.MEASURED]
    assert np.isnan(depth[0, 2]) and np.isnan(normals[0, 2]).all() and confidence[0, 2] == 0
    assert np.allclose(depth[1:], 2) and np.allclose(normals[1:], (0, 0, -1))
    assert np.allclose(confidence[1:], 0.75)  # of three frames: 3 / (1 + 3)


def test_variants_agree(variants):
    rng = np.random.default_rng(1)
    x = (0.5 + 0.1 * rng.standard_normal((3, *SHAPE))).astype(np.float32)
    d = (x[0] + 3 * SIGMA * rng.standard_normal(SHAPE)).astype(np.float32) * (
        rng.random(SHAPE) > 0.2)
    frame_count = rng.random((15, 20)).astype(np.float32)  # at half the resolution
    args = (x, d.astype(np.float32), ONES, frame_count, SIGMA, Intrinsics(50, 55, 20, 15),
            (0.3, 0.8))
    for one, two in zip(*(run(k, k.describe, *args) for k in variants)):
        assert np.allclose(one, two, rtol=1e-5, atol=1e-5, equal_nan=True)
