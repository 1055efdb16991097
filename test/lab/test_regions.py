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
"""Regions of exact views, and scores by region."""

import numpy as np
import pytest

from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.lab.benchmarks.stream_scores import flying_percent, Scores
from graph_depth_refiner.lab.synthetic.regions import find_regions
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream, View

SHAPE = (96, 128)
NO = np.zeros(SHAPE, bool)


def step():
    """Return a wall at 3 m, a board at 2 m from column 64 on, nothing in the upper left."""
    depth = np.full(SHAPE, 3, np.float32)
    depth[:, 64:] = 2
    depth[:20, :20] = np.inf
    normals = np.zeros((*SHAPE, 3), np.float32)
    normals[..., 2] = -1
    normals[:20, :20] = np.nan
    return depth, normals


def test_every_pixel_with_a_surface_is_in_one_region():
    view = SyntheticStream(0, (160, 120), room='clutter').view(3)
    masks = find_regions(view.depth, view.normals, view.thin)
    np.testing.assert_array_equal(
        np.sum(list(masks.values()), axis=0), np.isfinite(view.depth))
    assert all(mask.any() for mask in masks.values())


def test_edges_are_bands_along_jumps_and_the_rest_of_a_wall_is_plane():
    regions = find_regions(*step())
    # the jump is seen by columns 63 and 64; a pixel more on each side at this width
    np.testing.assert_array_equal(np.flatnonzero(regions['edge'][60]), [62, 63, 64, 65])
    assert regions['plane'][60, :62].all() and regions['plane'][60, 66:].all()
    assert regions['edge'][5, 20] and not regions['edge'][5, 19]  # nothing has no region


def test_round_things_creases_and_small_faces_are_no_planes():
    depth, normals = np.full(SHAPE, 2, np.float32), np.zeros((*SHAPE, 3), np.float32)
    normals[..., 2] = -1
    angle = np.linspace(-0.5, 0.5, 60, dtype=np.float32)
    normals[:, :60, 0], normals[:, :60, 2] = np.sin(angle), -np.cos(angle)
    normals[40:48, 90:98] = (0.6, 0, -0.8)  # 64 px; a plane needs 1 % of 12288
    regions = find_regions(depth, normals)
    assert regions['curved'][20, 5:55].all()
    assert regions['curved'][42:46, 92:96].all()
    assert regions['plane'][20, 70:85].all()


def test_scores_by_region_are_the_derived_numbers():
    depth, normals = step()
    came = np.where(np.isfinite(depth), depth, 0).astype(np.float32)
    came[60:, :30] = 0  # a hole in the wall
    frame = Frame(np.zeros(SHAPE, np.uint8), came, Intrinsics(100, 100, 63.5, 47.5))
    view = View(frame, depth, normals, NO, NO, NO)
    # 2 % too far on the wall, exact on the board, a quarter of the opening filled, the hole left
    # open (the nearest value is the wall's), normals off by 10 degrees
    estimate = np.where(depth == 3, 3.06, depth)
    estimate[60:, :30] = np.nan
    estimate[:20, :20] = np.nan
    estimate[:10, :10] = 3
    turned = np.array([np.sin(np.radians(10)), 0, -np.cos(np.radians(10))])
    scores = Scores()
    for index in range(6):
        scores.add(index, view, estimate, np.broadcast_to(turned, normals.shape), 1.0, {}, 0.0)
    record = scores.record('some')
    regions = record['regions']
    on_wall = (find_regions(depth, normals)['plane'] & (came > 0) & (depth == 3)).sum()
    on_board = (find_regions(depth, normals)['plane'] & (depth == 2)).sum()
    assert regions['plane']['depth_error_percent'] == pytest.approx(
        2 * on_wall / (on_wall + on_board), rel=1e-3)
    assert regions['hole']['depth_error_percent'] == pytest.approx(2, rel=1e-3)
    assert regions['hole']['share_percent'] == pytest.approx(100 * 36 * 30 / (96 * 128))
    assert regions['plane']['normal_error_deg'] == pytest.approx(10, abs=1e-3)
    assert regions['thin']['depth_error_percent'] is None
    assert record['invented_percent'] == 25
    # all with a surface but the hole, 36 x 30 px
    exists = 96 * 128 - 400
    assert record['completeness_percent'] == pytest.approx(100 * (exists - 1080) / exists)


def test_what_lies_between_the_sides_of_an_edge_flies_unless_it_belongs_there():
    depth, normals = step()
    depth[:20, :20] = 3  # nothing is missing
    depth[70:, 63] = 2.5  # a thing between both sides
    came = depth.copy()
    came[20:40, 64] = 2.6  # of the way from 2 to 3 m
    came[40:60, 64] = 2.9  # on the wrong side, but no flying pixel
    came[60:70, 64] = 0
    frame = Frame(np.zeros(SHAPE, np.uint8), came, Intrinsics(100, 100, 63.5, 47.5))
    view = View(frame, depth, normals, NO, NO, NO)
    # 8 columns at the board's edge, but what was not measured and the thing, which has 30 px of
    # the wall 4 px away from it
    beside = 8 * 96 - 10 - 26 + 30
    assert flying_percent(view, came) == pytest.approx(100 * 20 / beside)
    assert flying_percent(view, np.where(came == np.float32(2.6), 2, came)) == 0
    assert flying_percent(view, np.where(came == np.float32(2.6), np.nan, came)) == 0


def test_a_single_error_counts_up_to_ten_percent():
    depth, normals = step()
    came = np.where(np.isfinite(depth), depth, 0).astype(np.float32)
    frame = Frame(np.zeros(SHAPE, np.uint8), came, Intrinsics(100, 100, 63.5, 47.5))
    scores = Scores()
    for index in range(6):
        scores.add(index, View(frame, depth, normals, NO, NO, NO), 2 * depth, normals, 1.0, {}, 0)
    assert scores.record('some')['regions']['plane']['depth_error_percent'] == 10
