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
"""Where the minimisation begins, and the graph that suits it."""

from __future__ import annotations

import numpy as np
import pytest
from scenes import ramp

from graph_depth_refiner.config import preset, RefinerConfig
from graph_depth_refiner.core.downsampling import Level
from graph_depth_refiner.core.initialise import gate_edges, initialise
from graph_depth_refiner.core.patch_graph import offsets, window_of

SHAPE = (24, 40)
SIGMA = 1e-3
ONES = np.ones(SHAPE, np.float32)


def level_of(k, d):
    return Level(k.array(d), k.array((d > 0).astype(np.float32)), k.array(SIGMA * ONES), SIGMA,
                 SIGMA)


def begun(k, d, config):
    """Return the graph of a flat image, the planes, and the level."""
    weights = k.build_graph(k.array(0 * ONES), config)
    level = level_of(k, d)
    return weights, initialise(k, level, weights, config), level


@pytest.mark.parametrize('values, sloped', [
    ({}, True), ({'planes.start': False, 'edges.passes': 0}, False),
    ({'planes.start': False, 'edges.passes': 0, 'planes.slopes': True}, True)])
def test_planes_as_configured(kernels, values, sloped):
    d = ramp(SHAPE)
    planes = kernels.numpy(begun(kernels, d, RefinerConfig().with_values(**values))[1])
    inner = np.s_[7:-7, 7:-7]
    assert planes[0][inner] == pytest.approx(d[inner], abs=1e-6)
    expected = (2e-3, -1e-3) if sloped else (0, 0)
    for slope, one in zip(planes[1:], expected):
        assert slope[inner] == pytest.approx(one, rel=0.05, abs=1e-9)


def crossing(k, w):
    """Return the weights of the edges from column 20 to column 21 of the same row."""
    w = k.numpy(w)
    return w[list(offsets(window_of(len(w)))).index((0, 1))][4:-4, 20]


@pytest.mark.parametrize('values', [
    {}, {'planes.start': False}, {'planes.start': False, 'edges.passes': 2}])
def test_edges_across_a_jump_are_cut_and_the_graph_that_came_is_kept(kernels, values):
    d = ramp(SHAPE)
    d[:, 21:] += 0.1
    config = RefinerConfig().with_values(**values)
    weights, planes, level = begun(kernels, d, config)
    before = kernels.numpy(weights).copy()
    gated, _ = gate_edges(kernels, weights, planes, level, config)
    assert (crossing(kernels, weights) > 0.1).all() and (crossing(kernels, gated) == 0).all()
    assert (kernels.numpy(weights) == before).all()


def test_without_passes_the_graph_is_left_to_the_image(kernels):
    config = preset('paper')
    weights, planes, level = begun(kernels, ramp(SHAPE), config)
    assert gate_edges(kernels, weights, planes, level, config)[0] is weights


def test_a_symmetric_graph_is_a_copy(kernels):
    config = preset('paper', **{'graph.symmetric': True, 'graph.normalise': True})
    rng = np.random.default_rng(0)
    weights = kernels.build_graph(
        kernels.array(rng.random(SHAPE).astype(np.float32)), config)
    before = kernels.numpy(weights).copy()
    level = level_of(kernels, ramp(SHAPE))
    planes = initialise(kernels, level, weights, config)
    gated = kernels.numpy(gate_edges(kernels, weights, planes, level, config)[0])
    assert (kernels.numpy(weights) == before).all()
    ways = list(offsets(window_of(len(gated))))
    there, back = gated[ways.index((0, 1))], gated[ways.index((0, -1))]
    assert (there[:, :-1] == back[:, 1:]).all() and (gated <= before).all()


def test_the_graph_relaxes_where_it_bends(kernels):
    x = np.abs(np.arange(SHAPE[1], dtype=np.float32) - 20)
    d = (0.5 + 4e-3 * x) * ONES  # a crease
    # the slopes differ by 8 units from one side to the other: at half a unit little is left
    config = RefinerConfig().with_values(**{'energy.reg_curved': 0.5, 'edges.sigma': 1e6})
    weights, planes, level = begun(kernels, d, config)
    gated = gate_edges(kernels, weights, planes, level, config)[0]
    total = kernels.numpy(gated).sum(axis=0)
    assert (total[4:-4, 20] < 0.1 * total[4:-4, 8]).all()
