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
"""Warped planes count where the measurement agrees with them, and are averaged with it."""

from __future__ import annotations

import numpy as np
from scenes import ramp_planes, run

SHAPE = (30, 40)
SIGMA = 1e-3
ONES = np.ones(SHAPE, np.float32)


def flat(value):
    return ramp_planes(SHAPE, value, 0, 0)


def colors(value=100):
    return np.full((1, *SHAPE), value, np.uint8)


def gate(k, d, m, color):
    """Return the weight of a wall at 0.5 that was seen in one frame."""
    return run(k, k.consistency_gate, d, m, color, flat(0.5), ONES, colors(), SIGMA)


def test_agreement_counts_and_a_new_surface_does_not(kernels):
    d = flat(0.5)[0]
    d[:, 20:] = 0.6  # a hundred units nearer: something came in
    weight = gate(kernels, d, ONES, colors())
    assert (weight[:, :17] == 1).all() and (weight[:, 21:] == 0).all()


def test_a_steady_offset_does_not_count(kernels):
    d = flat(0.5)[0] + np.float32(1.5 * SIGMA)  # within the noise of one pixel, not of many
    assert (gate(kernels, d, ONES, colors()) == 0).all()


def test_another_image_does_not_count_also_without_measurement(kernels):
    assert (gate(kernels, 0 * ONES, 0 * ONES, colors(140)) == 0).all()
    assert (gate(kernels, 0 * ONES, 0 * ONES, colors()) == 1).all()


def test_fusion_is_a_running_mean(kernels):
    # three frames said 0.5, this one says 0.502: the mean of four is 0.5005
    chosen, warped = flat(0.502), flat(0.5)
    planes, d, m, left = run(
        kernels, kernels.fuse, chosen[0], ONES, chosen, warped, 3 * ONES, SIGMA, 20.0)
    assert np.allclose(planes[0], 0.5005) and np.allclose(d, 0.5005)
    assert (left == 4).all() and (m == 1).all()


def test_another_plane_starts_anew_and_outliers_do_not_count(kernels):
    chosen, warped = flat(0.6), flat(0.5)
    d = chosen[0].copy()
    d[5, 5] = 0.7  # far off the plane of its neighbours
    planes, data, m, left = run(
        kernels, kernels.fuse, d, ONES, chosen, warped, 3 * ONES, SIGMA, 20.0)
    assert np.allclose(planes, chosen) and np.allclose(data, 0.6)
    assert m[5, 5] == 0 and left[5, 5] == 0 and left[6, 6] == 1


def test_the_frame_count_is_limited(kernels):
    *_, left = run(kernels, kernels.fuse, flat(0.5)[0], ONES, flat(0.5), flat(0.5), 50 * ONES,
                   SIGMA, 8.0)
    assert (left == 8).all()


def test_variants_agree(variants):
    rng = np.random.default_rng(0)
    warped = flat(0.5) + (SIGMA * rng.standard_normal((3, *SHAPE))).astype(np.float32)
    d = (0.5 + 2 * SIGMA * rng.standard_normal(SHAPE)).astype(np.float32)
    m, n = (rng.random(SHAPE).astype(np.float32) * (rng.random(SHAPE) > 0.3) for _ in range(2))
    m, n = m.astype(np.float32), n.astype(np.float32)
    color, other = rng.integers(90, 110, (2, 3, *SHAPE)).astype(np.uint8)
    args = (d, m, color, warped, n, other, SIGMA)
    assert np.allclose(*(run(k, k.consistency_gate, *args) for k in variants), atol=1e-4)
    chosen = np.roll(warped, 1, axis=2).copy()
    args = (d, m, chosen, warped, n, SIGMA, 20.0)
    for one, two in zip(*(run(k, k.fuse, *args) for k in variants)):
        assert np.allclose(one, two, atol=1e-6)
