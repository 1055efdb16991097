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
"""Votes, slopes and the depth-aware graph on analytic scenes, plain and fused."""

import numpy as np
import pytest

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import kernels

BOTH = pytest.mark.parametrize('backend', ['torch', 'fused'])
SHAPE = (18, 26)
CONFIG = RefinerConfig().with_values(**{'graph.window': 5})
CENTRE = (9, 13)


def stages(backend):
    """Return the stages of a backend on the CPU."""
    return kernels.select('cpu', backend)


def graph(k, image):
    """Return the graph of a grey image."""
    return k.build_graph(k.array(image), CONFIG)


def slanted():
    """Return the map 30 + 0.05 x - 0.2 y."""
    y, x = np.mgrid[:SHAPE[0], :SHAPE[1]]
    return (30 + 0.05 * x - 0.2 * y).astype(np.float32)


@BOTH
def test_slopes_of_a_plane_are_exact(backend):
    k = stages(backend)
    slopes = k.numpy(k.fit_slopes(k.array(slanted()), graph(k, np.zeros(SHAPE))))
    # up to the ridge, at the borders too
    np.testing.assert_allclose(slopes[0], 0.05, rtol=2e-3, atol=1e-5)
    np.testing.assert_allclose(slopes[1], -0.2, rtol=2e-3, atol=1e-5)


@BOTH
def test_a_pixel_without_edges_faces_the_camera(backend):
    k = stages(backend)
    weights = k.array(np.zeros((24, *SHAPE)))
    assert (k.numpy(k.fit_slopes(k.array(slanted()), weights)) == 0).all()


@BOTH
def test_depth_cuts_an_edge_between_equal_colours(backend):
    # two planes 3 units apart, sigma 1: the edge fades by exp(-9 / 2), to about 1 %; within
    # one plane every prediction is exact and the edge stays
    k = stages(backend)
    x = np.zeros((3, *SHAPE), np.float32)
    x[0] = slanted()
    x[1], x[2] = 0.05, -0.2
    x[0, :, CENTRE[1]:] += 3
    before = graph(k, np.zeros(SHAPE))
    after = k.numpy(k.gate_depth_edges(before, k.array(x), 1.0))
    ratio = after[:, CENTRE[0], CENTRE[1]] / k.numpy(before)[:, CENTRE[0], CENTRE[1]]
    dx = np.array([x for y in range(-2, 3) for x in range(-2, 3) if (y, x) != (0, 0)])
    np.testing.assert_allclose(ratio[dx >= 0], 1, rtol=1e-4)
    np.testing.assert_allclose(ratio[dx < 0], np.exp(-4.5), rtol=1e-3)


@BOTH
def test_the_worse_of_both_predictions_counts(backend):
    # d is flat; only the pixel at the centre believes in a slope of 1 along x: its neighbour
    # at dx = 1 is mispredicted by 1 unit from the centre and exactly the other way round
    k = stages(backend)
    x = np.zeros((3, *SHAPE), np.float32)
    x[1][CENTRE] = 1
    before = graph(k, np.zeros(SHAPE))
    after = k.numpy(k.gate_depth_edges(before, k.array(x), 1.0))
    y, x = CENTRE
    for edge in ((12, y, x), (11, y, x + 1)):  # offsets (0, 1) and (0, -1) of a 5x5 window
        assert after[edge] / k.numpy(before)[edge] == pytest.approx(np.exp(-0.5), rel=1e-4)


@BOTH
def test_the_regulariser_gives_way_where_slopes_differ(backend):
    # slopes grow by 0.5 units a pixel along x; over a 5x5 window of equal weights that
    # sum to 1 their mean difference is (10 * 0.5 + 10 * 1.0) / 24 = 0.625, half of 1.25,
    # so 1 / (1 + 0.25) of the weight is left
    k = stages(backend)
    x = np.zeros((3, *SHAPE), np.float32)
    x[1] = 0.5 * np.arange(SHAPE[1])
    w = k.array(np.full((24, *SHAPE), 1 / 24, np.float32))
    ratio = k.numpy(k.relax_at_curvature(w, k.array(x), 1.25)) * 24
    np.testing.assert_allclose(ratio[:, CENTRE[0], CENTRE[1]], 0.8, rtol=1e-5)
    x[1] = 0.5
    assert k.numpy(k.relax_at_curvature(w, k.array(x), 1.25))[:, CENTRE[0], CENTRE[1]] \
        == pytest.approx(1 / 24)


@BOTH
def test_a_pixel_that_fits_no_neighbour_loses_all_edges(backend):
    # 12 units off with sigma 1: exp(-72) is no weight, and must not become one when scaled
    k = stages(backend)
    x = np.zeros((3, *SHAPE), np.float32)
    x[0][CENTRE] = 12
    aware = k.gate_depth_edges(graph(k, np.zeros(SHAPE)), k.array(x), 1.0)
    k.normalise(aware)
    found = k.numpy(aware)
    assert np.isfinite(found).all() and (found[:, CENTRE[0], CENTRE[1]] == 0).all()
    np.testing.assert_allclose(found.sum(axis=0)[CENTRE[0], CENTRE[1] + 1], 1, rtol=1e-5)


@BOTH
def test_symmetrised_weights_are_the_smaller_ones(backend):
    k = stages(backend)
    image = np.random.default_rng(0).random(SHAPE).astype(np.float32) * 0.1
    weights = graph(k, image)
    before = k.numpy(weights).copy()
    k.symmetrise(weights)
    after = k.numpy(weights)
    for o, (dy, dx) in enumerate(
            (y, x) for y in range(-2, 3) for x in range(-2, 3) if (y, x) != (0, 0)):
        y, x = CENTRE
        both = before[o, y, x], before[23 - o, y + dy, x + dx]
        assert after[o, y, x] == after[23 - o, y + dy, x + dx] == min(both)


@BOTH
def test_an_outlier_is_outvoted(backend):
    k = stages(backend)
    z = slanted()
    z[CENTRE] += 20
    voted = k.numpy(k.joint_weighted_median(
        k.array(z), k.array(np.zeros((3, *SHAPE))), 3, 1.0, 0.5, 0.05))
    # the median of a plane over a symmetric square is its value in the middle
    assert voted[CENTRE] == pytest.approx(slanted()[CENTRE], abs=0.25)


@BOTH
def test_a_thing_of_its_own_colour_is_not_outvoted(backend):
    k = stages(backend)
    z, color = np.full(SHAPE, 10, np.float32), np.zeros((3, *SHAPE), np.float32)
    z[:, 12:14] = 30
    color[:, :, 12:14] = 0.8
    voted = k.numpy(k.joint_weighted_median(k.array(z), k.array(color), 3, 1.0, 0.5, 0.05))
    np.testing.assert_array_equal(voted, z)


@BOTH
def test_a_minority_of_the_share_is_enough_to_stay(backend):
    # a column of the background's colour: 5 of 25 voters agree with it, a share of 0.2
    k = stages(backend)
    z = np.full((31, 31), 10, np.float32)
    z[:, 15] = 30
    color = k.array(np.zeros((3, 31, 31)))
    for share, expected in ((0.19, 30), (0.21, 10)):
        voted = k.numpy(k.joint_weighted_median(k.array(z), color, 3, 1.0, share, 0.05))
        assert voted[15, 15] == expected


def test_the_twins_agree():
    rng = np.random.default_rng(7)
    z = slanted() + 8 * (rng.random(SHAPE) < 0.3).astype(np.float32)
    color = 0.2 * rng.random((3, *SHAPE)).astype(np.float32)
    found = []
    for k in (stages('torch'), stages('fused')):
        weights = graph(k, color[0])
        voted = k.joint_weighted_median(k.array(z), k.array(color), 2, 1.0, 0.5, 0.05)
        x = k.array(np.zeros((3, *SHAPE), np.float32))
        x[0] = voted
        x[1:] = k.fit_slopes(voted, weights)
        found.append([k.numpy(part) for part in (
            voted, x[1:], k.gate_depth_edges(weights, x, 1.0))])
    for plain, fused in zip(*found, strict=True):
        np.testing.assert_allclose(plain, fused, rtol=1e-3, atol=1e-5)
