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
"""Weights of edges that cross depth jumps or lie on curved surfaces."""

import numpy as np
import pytest
from scenes import ramp, run

from graph_depth_refiner.config import RefinerConfig

SHAPE = (18, 26)
CONFIG = RefinerConfig().with_values(**{'graph.window': 5})
CENTRE = (9, 13)


def graph(k, image):
    """Return the graph of a grey image."""
    return k.build_graph(k.array(image), CONFIG)


def test_depth_cuts_an_edge_between_equal_colours(kernels):
    # two planes 3 units apart, sigma 1: the edge fades by exp(-9 / 2), to about 1 %; within
    # one plane every prediction is exact and the edge stays
    k = kernels
    x = np.zeros((3, *SHAPE), np.float32)
    x[0] = ramp(SHAPE, 30.0, 0.05, -0.2)
    x[1], x[2] = 0.05, -0.2
    x[0, :, CENTRE[1]:] += 3
    before = graph(k, np.zeros(SHAPE))
    after = k.numpy(k.gate_depth_edges(before, k.array(x), 1.0))
    ratio = after[:, CENTRE[0], CENTRE[1]] / k.numpy(before)[:, CENTRE[0], CENTRE[1]]
    dx = np.array([x for y in range(-2, 3) for x in range(-2, 3) if (y, x) != (0, 0)])
    np.testing.assert_allclose(ratio[dx >= 0], 1, rtol=1e-4)
    np.testing.assert_allclose(ratio[dx < 0], np.exp(-4.5), rtol=1e-3)


def test_the_worse_of_both_predictions_counts(kernels):
    # d is flat; only the pixel at the centre believes in a slope of 1 along x: its neighbour
    # at dx = 1 is mispredicted by 1 unit from the centre and exactly the other way round
    k = kernels
    x = np.zeros((3, *SHAPE), np.float32)
    x[1][CENTRE] = 1
    before = graph(k, np.zeros(SHAPE))
    after = k.numpy(k.gate_depth_edges(before, k.array(x), 1.0))
    y, x = CENTRE
    for edge in ((12, y, x), (11, y, x + 1)):  # offsets (0, 1) and (0, -1) of a 5x5 window
        assert after[edge] / k.numpy(before)[edge] == pytest.approx(np.exp(-0.5), rel=1e-4)


def test_the_regulariser_gives_way_where_slopes_differ(kernels):
    # slopes grow by 0.5 units a pixel along x; over a 5x5 window of equal weights that
    # sum to 1 their mean difference is (10 * 0.5 + 10 * 1.0) / 24 = 0.625, half of 1.25,
    # so 1 / (1 + 0.25) of the weight is left
    k = kernels
    x = np.zeros((3, *SHAPE), np.float32)
    x[1] = 0.5 * np.arange(SHAPE[1])
    w = k.array(np.full((24, *SHAPE), 1 / 24, np.float32))
    ratio = k.numpy(k.relax_at_curvature(w, k.array(x), 1.25)) * 24
    np.testing.assert_allclose(ratio[:, CENTRE[0], CENTRE[1]], 0.8, rtol=1e-5)
    x[1] = 0.5
    assert k.numpy(k.relax_at_curvature(w, k.array(x), 1.25))[:, CENTRE[0], CENTRE[1]] \
        == pytest.approx(1 / 24)


def test_a_pixel_that_fits_no_neighbour_loses_all_edges(kernels):
    # 12 units off with sigma 1: exp(-72) is no weight, and must not become one when scaled
    k = kernels
    x = np.zeros((3, *SHAPE), np.float32)
    x[0][CENTRE] = 12
    aware = k.gate_depth_edges(graph(k, np.zeros(SHAPE)), k.array(x), 1.0)
    k.normalise(aware)
    found = k.numpy(aware)
    assert np.isfinite(found).all() and (found[:, CENTRE[0], CENTRE[1]] == 0).all()
    np.testing.assert_allclose(found.sum(axis=0)[CENTRE[0], CENTRE[1] + 1], 1, rtol=1e-5)


def test_variants_agree(variants):
    rng = np.random.default_rng(7)
    x = rng.random((3, *SHAPE), np.float32)
    w = variants[0].numpy(graph(variants[0], 0.2 * rng.random(SHAPE, np.float32)))
    for name in ('gate_depth_edges', 'relax_at_curvature'):
        one, other = (run(k, getattr(k, name), w, x, 0.5) for k in variants)
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
