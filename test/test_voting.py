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
"""The vote sets edges where the image has them, and its twins agree."""

from __future__ import annotations

import numpy as np
import pytest

from graph_depth_refiner.core import plane_selection_numba as fused
from graph_depth_refiner.core import plane_selection_torch as plain

SHAPE = (30, 40)
SIGMA, LIKENESS = 1e-3, 0.04
twins = pytest.mark.parametrize('voting', [plain, fused], ids=['plain', 'fused'])


def two_walls(edge=20):
    """Return planes of a near and a far wall that meet at a column, and their colours."""
    x = np.zeros((3, *SHAPE), np.float32)
    x[0] = np.where(np.arange(SHAPE[1]) < edge, 0.5, 1.0)
    color = np.zeros((1, *SHAPE), np.uint8)
    color[0] = np.where(np.arange(SHAPE[1]) < edge, 60, 200)
    return x, color


def elect(voting, d, m, color, start, warped=None, frame_count=None):
    frame_count = np.zeros(SHAPE, np.float32) if frame_count is None else frame_count
    warped = start if warped is None else warped
    return voting.select_planes(d, m, color, start, warped, frame_count, color, SIGMA, LIKENESS)


@twins
def test_an_edge_moves_to_where_the_image_has_it(voting):
    truth, color = two_walls(20)
    start, _ = two_walls(22)  # two columns on the wrong side
    d, m = truth[0].copy(), np.ones(SHAPE, np.float32)
    d[:, 19:22] = 0.75  # and measurements that mix the walls
    chosen = elect(voting, d, m, color, start)
    assert np.allclose(chosen[0], truth[0])


@twins
def test_a_hole_takes_the_plane_of_its_look_alikes(voting):
    truth, color = two_walls()
    start = truth.copy()
    start[0, 10:13, 17:20] = 1.0  # wrong, and not measured
    m = np.ones(SHAPE, np.float32)
    m[10:13, 17:20] = 0
    assert np.allclose(elect(voting, truth[0], m, color, start)[0], truth[0])


@twins
def test_carried_planes_vote_where_nothing_is_measured(voting):
    truth, color = two_walls()
    start = truth.copy()
    start[0, :, 14:26] = 0.7  # nothing of it is true
    d, m = np.zeros(SHAPE, np.float32), np.zeros(SHAPE, np.float32)
    chosen = elect(voting, d, m, color, start, truth, np.full(SHAPE, 5, np.float32))
    assert np.allclose(chosen[0], truth[0])


@twins
def test_one_plane_stays_itself(voting):
    y, x = np.mgrid[:SHAPE[0], :SHAPE[1]].astype(np.float32)
    start = np.stack([0.5 + 1e-3 * x + 2e-3 * y, np.full(SHAPE, 1e-3, np.float32),
                      np.full(SHAPE, 2e-3, np.float32)])
    color = np.random.default_rng(0).integers(0, 255, (3, *SHAPE)).astype(np.uint8)
    chosen = elect(voting, start[0], np.ones(SHAPE, np.float32), color, start)
    assert (chosen == start).all()


@pytest.mark.parametrize('slopes', [True, False])
def test_twins_agree(slopes):
    rng = np.random.default_rng(1)
    start, color = two_walls()
    start += (SIGMA * rng.standard_normal(start.shape)).astype(np.float32)
    warped = np.roll(start, 2, axis=2).copy()
    d = (start[0] + 2 * SIGMA * rng.standard_normal(SHAPE)).astype(np.float32)
    m = rng.random(SHAPE).astype(np.float32) * (rng.random(SHAPE) > 0.2)
    frame_count = (5 * rng.random(SHAPE) * (rng.random(SHAPE) > 0.5)).astype(np.float32)
    color = (color + rng.integers(0, 20, (3, *SHAPE))).astype(np.uint8)
    args = (d, m.astype(np.float32), color, start, warped, frame_count, color[::-1].copy(), SIGMA,
            LIKENESS, slopes)
    one, other = plain.select_planes(*args), fused.select_planes(*args)
    assert (np.abs(one - other).max(0) < 1e-6).mean() > 0.995  # votes may be equal
