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
"""Carried planes are believed where the measurement agrees, and averaged with it."""

from __future__ import annotations

import numpy as np
import pytest

from graph_depth_refiner.core import output_numba as fused_results
from graph_depth_refiner.core import output_torch as plain_results
from graph_depth_refiner.core import temporal_numba as fused
from graph_depth_refiner.core import temporal_torch as plain
from graph_depth_refiner.frame import Intrinsics, Provenance

SHAPE = (30, 40)
SIGMA = 1e-3
ONES = np.ones(SHAPE, np.float32)
twins = pytest.mark.parametrize('temporal', [plain, fused], ids=['plain', 'fused'])


def flat(value):
    x = np.zeros((3, *SHAPE), np.float32)
    x[0] = value
    return x


def colors(value=100):
    return np.full((1, *SHAPE), value, np.uint8)


@twins
def test_agreement_is_believed_and_a_new_surface_is_not(temporal):
    d = flat(0.5)[0]
    d[:, 20:] = 0.6  # a hundred units nearer: something came in
    consistency_gate = temporal.consistency_gate(d, ONES, colors(), flat(0.5), ONES, colors(), SIGMA)
    assert (consistency_gate[:, :17] == 1).all() and (consistency_gate[:, 21:] == 0).all()


@twins
def test_a_steady_offset_is_not_believed(temporal):
    d = flat(0.5)[0] + np.float32(1.5 * SIGMA)  # within the noise of one pixel, not of many
    assert (temporal.consistency_gate(d, ONES, colors(), flat(0.5), ONES, colors(), SIGMA) == 0).all()


@twins
def test_another_image_is_not_believed_also_without_measurement(temporal):
    consistency_gate = temporal.consistency_gate(0 * ONES, 0 * ONES, colors(140), flat(0.5), ONES, colors(), SIGMA)
    assert (consistency_gate == 0).all()
    consistency_gate = temporal.consistency_gate(0 * ONES, 0 * ONES, colors(), flat(0.5), ONES, colors(), SIGMA)
    assert (consistency_gate == 1).all()


@twins
def test_fusion_is_a_running_mean(temporal):
    # three frames said 0.5, this one says 0.502: the mean of four is 0.5005
    chosen, warped = flat(0.502), flat(0.5)
    planes, d, m, left = temporal.fuse(
        chosen[0], ONES, chosen, warped, 3 * ONES, SIGMA, 20.0)
    assert np.allclose(planes[0], 0.5005) and np.allclose(d, 0.5005)
    assert (left == 4).all() and (m == 1).all()


@twins
def test_another_plane_starts_anew_and_outliers_do_not_count(temporal):
    chosen, warped = flat(0.6), flat(0.5)
    d = chosen[0].copy()
    d[5, 5] = 0.7  # far off the plane its neighbours elected
    planes, data, m, left = temporal.fuse(d, ONES, chosen, warped, 3 * ONES, SIGMA, 20.0)
    assert np.allclose(planes, chosen) and np.allclose(data, 0.6)
    assert m[5, 5] == 0 and left[5, 5] == 0 and left[6, 6] == 1


@twins
def test_evidence_is_limited(temporal):
    *_, left = temporal.fuse(flat(0.5)[0], ONES, flat(0.5), flat(0.5), 50 * ONES, SIGMA, 8.0)
    assert (left == 8).all()


def test_twins_agree():
    rng = np.random.default_rng(0)
    warped = flat(0.5) + (SIGMA * rng.standard_normal((3, *SHAPE))).astype(np.float32)
    d = (0.5 + 2 * SIGMA * rng.standard_normal(SHAPE)).astype(np.float32)
    m, n = (rng.random(SHAPE).astype(np.float32) * (rng.random(SHAPE) > 0.3) for _ in range(2))
    m, n = m.astype(np.float32), n.astype(np.float32)
    color, other = rng.integers(90, 110, (2, 3, *SHAPE)).astype(np.uint8)
    args = (d, m, color, warped, n, other, SIGMA)
    assert np.allclose(plain.consistency_gate(*args), fused.consistency_gate(*args), atol=1e-4)
    chosen = np.roll(warped, 1, axis=2).copy()
    for one, two in zip(plain.fuse(d, m, chosen, warped, n, SIGMA, 20.0),
                        fused.fuse(d, m, chosen, warped, n, SIGMA, 20.0)):
        assert np.allclose(one, two, atol=1e-6)


@pytest.mark.parametrize('results', [plain_results, fused_results], ids=['plain', 'fused'])
def test_results_say_where_they_come_from(results):
    x, d, m = flat(0.5), flat(0.5)[0], 0.5 * ONES
    d[0, 0], m[0, 0] = 0, 0  # a hole
    d[0, 1] = 0.6  # a hundred units off
    x[0, 0, 2] = -1  # no depth at all
    depth, normals, confidence, provenance = results.describe(
        x, d, m, 3 * ONES, SIGMA, Intrinsics(50, 50, 20, 15), (0.01, 100.0))
    assert provenance[0, :4].tolist() == [
        Provenance.FILLED, Provenance.CORRECTED, Provenance.UNKNOWN, Provenance.MEASURED]
    assert np.isnan(depth[0, 2]) and np.isnan(normals[0, 2]).all() and confidence[0, 2] == 0
    assert np.allclose(depth[1:], 2) and np.allclose(normals[1:], (0, 0, -1))
    assert np.allclose(confidence[1:], 0.75)  # of three frames: 3 / (1 + 3)


def test_result_twins_agree():
    rng = np.random.default_rng(1)
    x = (0.5 + 0.1 * rng.standard_normal((3, *SHAPE))).astype(np.float32)
    d = (x[0] + 3 * SIGMA * rng.standard_normal(SHAPE)).astype(np.float32) * (
        rng.random(SHAPE) > 0.2)
    frame_count = rng.random((15, 20)).astype(np.float32)  # at half the resolution
    args = (x, d.astype(np.float32), ONES, frame_count, SIGMA, Intrinsics(50, 55, 20, 15),
            (0.3, 0.8))
    for one, two in zip(plain_results.describe(*args), fused_results.describe(*args)):
        assert np.allclose(one, two, rtol=1e-5, atol=1e-5, equal_nan=True)
