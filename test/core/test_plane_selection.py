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
"""Selected planes: edges where the image has them."""

from __future__ import annotations

import numpy as np
import pytest
from scenes import ramp_planes, run

SHAPE = (30, 40)
SIGMA, COLOR_SIGMA = 1e-3, 0.04


def two_walls(edge=20):
    """Return planes of a near and a far wall that meet at a column, and their colours."""
    x = np.zeros((3, *SHAPE), np.float32)
    x[0] = np.where(np.arange(SHAPE[1]) < edge, 0.5, 1.0)
    color = np.zeros((1, *SHAPE), np.uint8)
    color[0] = np.where(np.arange(SHAPE[1]) < edge, 60, 200)
    return x, color


def select(k, d, m, color, start, warped=None, frame_count=None):
    frame_count = np.zeros(SHAPE, np.float32) if frame_count is None else frame_count
    warped = start if warped is None else warped
    return run(k, k.select_planes, d, m, color, start, warped, frame_count, color, SIGMA,
               COLOR_SIGMA)


def test_an_edge_moves_to_where_the_image_has_it(kernels):
    truth, color = two_walls(20)
    start, _ = two_walls(22)  # two columns on the wrong side
    d, m = truth[0].copy(), np.ones(SHAPE, np.float32)
    d[:, 19:22] = 0.75  # and measurements that mix the walls
    chosen = select(kernels, d, m, color, start)
    assert np.allclose(chosen[0], truth[0])


def test_a_hole_takes_the_plane_of_pixels_of_its_colour(kernels):
    truth, color = two_walls()
    start = truth.copy()
    start[0, 10:13, 17:20] = 1.0  # wrong, and not measured
    m = np.ones(SHAPE, np.float32)
    m[10:13, 17:20] = 0
    assert np.allclose(select(kernels, truth[0], m, color, start)[0], truth[0])


def test_warped_planes_decide_where_nothing_is_measured(kernels):
    truth, color = two_walls()
    start = truth.copy()
    start[0, :, 14:26] = 0.7  # nothing of it is true
    d, m = np.zeros(SHAPE, np.float32), np.zeros(SHAPE, np.float32)
    chosen = select(kernels, d, m, color, start, truth, np.full(SHAPE, 5, np.float32))
    assert np.allclose(chosen[0], truth[0])


def test_one_plane_stays_itself(kernels):
    start = ramp_planes(SHAPE, 0.5, 1e-3, 2e-3)
    color = np.random.default_rng(0).integers(0, 255, (3, *SHAPE)).astype(np.uint8)
    chosen = select(kernels, start[0], np.ones(SHAPE, np.float32), color, start)
    assert (chosen == start).all()


@pytest.mark.parametrize('slopes', [True, False])
def test_variants_agree(variants, slopes):
    rng = np.random.default_rng(1)
    start, color = two_walls()
    start += (SIGMA * rng.standard_normal(start.shape)).astype(np.float32)
    warped = np.roll(start, 2, axis=2).copy()
    d = (start[0] + 2 * SIGMA * rng.standard_normal(SHAPE)).astype(np.float32)
    m = rng.random(SHAPE).astype(np.float32) * (rng.random(SHAPE) > 0.2)
    frame_count = (5 * rng.random(SHAPE) * (rng.random(SHAPE) > 0.5)).astype(np.float32)
    color = (color + rng.integers(0, 20, (3, *SHAPE))).astype(np.uint8)
    args = (d, m.astype(np.float32), color, start, warped, frame_count, color[::-1].copy(), SIGMA,
            COLOR_SIGMA, slopes)
    one, other = (run(k, k.select_planes, *args) for k in variants)
    assert (np.abs(one - other).max(0) < 1e-6).mean() > 0.995  # costs may be equal
