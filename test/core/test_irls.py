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
"""Iteratively re-weighted least squares: the right system, and a monotone descent."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graph_depth_refiner.config import preset
from graph_depth_refiner.core import energy_torch as energy
from graph_depth_refiner.core import irls_torch as irls
from graph_depth_refiner.core.energy import REGULARISERS
from graph_depth_refiner.core.kernels import select
from graph_depth_refiner.core.types import Terms

UNIT = 0.01


def random_problem(shape=(12, 20), seed=0):
    """Return planes, graph, data and weights with holes, as numpy."""
    rng = np.random.default_rng(seed)
    x = 2 * UNIT * rng.standard_normal((3, *shape)).astype(np.float32)
    d = 2 * UNIT * rng.standard_normal(shape).astype(np.float32)
    m = (rng.random(shape) > 0.3).astype(np.float32)
    stages = select('cpu', 'fused')
    config = preset('realtime', **{'graph.neighbours': 6})
    w = stages.build_graph(0.2 * rng.random(shape, dtype=np.float32), config)
    return x, w, d, m


def in_float64(*arrays):
    """Return the arrays as tensors."""
    return [torch.from_numpy(array).double() for array in arrays]


@pytest.mark.parametrize('regulariser', REGULARISERS)
def test_parabolas_touch_the_energy(regulariser):
    """At the planes where it was set up the system has the gradient of the energy."""
    state = irls.init(*in_float64(*random_problem()), UNIT, Terms(7.5, 5.5, regulariser))
    system = irls.weigh(state)
    found = system.apply(state.z)
    found[0] -= system.data * state.d
    exact = energy.gradient(
        state.z, state.w, state.back, state.d, state.m, 7.5, 5.5, regulariser)
    torch.testing.assert_close(found, exact, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('regulariser', REGULARISERS)
def test_diagonal_is_that_of_the_system(regulariser):
    """Unit vectors pick it out."""
    state = irls.init(*in_float64(*random_problem((4, 5))), UNIT, Terms(7.5, 5.5, regulariser))
    system = irls.weigh(state)
    scale = system.inverse_diagonal().flatten()
    for k in range(len(scale)):
        unit = torch.zeros_like(state.z)
        unit.view(-1)[k] = 1
        assert float(system.apply(unit).flatten()[k] * scale[k]) == pytest.approx(1)


@pytest.mark.parametrize('regulariser', REGULARISERS)
def test_energy_never_rises(regulariser):
    """Parabolas lie above the norms, so lowering their sum lowers the energy."""
    state = irls.init(*in_float64(*random_problem()), UNIT, Terms(7.5, 5.5, regulariser))
    energies = [irls.energy(state)]
    for _ in range(6):
        irls.step(state, 10)
        energies.append(irls.energy(state))
    assert (np.diff(energies) <= 0).all()
    assert energies[-1] < 0.1 * energies[0]


@pytest.mark.parametrize('regulariser', REGULARISERS)
@pytest.mark.parametrize('shape', [(12, 20), (37, 50), (5, 3)])
def test_variants_agree(variants, regulariser, shape):
    """Two re-weightings of ten steps agree with float64 to float32 rounding."""
    problem = (*random_problem(shape), UNIT, Terms(7.5, 5.5, regulariser))
    fused = variants[0].irls
    state = fused.init(*problem)
    exact = irls.init(*in_float64(*problem[:4]), *problem[4:])
    for _ in range(2):
        fused.step(state, 10)
        irls.step(exact, 10)
    expected = irls.planes(exact).numpy()
    np.testing.assert_allclose(
        fused.planes(state), expected, atol=2e-3 * np.abs(expected).max())
    assert fused.energy(state) == pytest.approx(irls.energy(exact), rel=1e-3)
    assert fused.taken(state) == 20


@pytest.mark.filterwarnings('ignore:overflow')
def test_step_that_is_not_finite_is_undone(kernels):
    """Data beyond the range of float32 squares overflow; the planes stay."""
    x, w, d, m = random_problem()
    d[3, 4], m[3, 4] = 1e38, 1
    arrays = [kernels.array(values) for values in (x, w, d, m)]
    state = kernels.irls.init(*arrays, UNIT, Terms(7.5, 5.5))
    kernels.irls.step(state, 5)
    assert not kernels.irls.finite(state)
    np.testing.assert_allclose(kernels.numpy(kernels.irls.planes(state)), x, rtol=1e-6)
