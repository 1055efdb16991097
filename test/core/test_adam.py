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
"""ADAM: all variants take the same steps, and a step never waits for a device."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from graph_depth_refiner.config import preset
from graph_depth_refiner.core import adam_torch
from graph_depth_refiner.core.energy import REGULARISERS, SMOOTHING
from graph_depth_refiner.core.kernels import Kernels, select
from graph_depth_refiner.core.types import Terms
from graph_depth_refiner.lab.benchmarks import reference

DEVICES = ['cpu'] + ['cuda'] * torch.cuda.is_available()
UNIT = 0.005
FIRST_RATE, LAST_RATE, SLOPE_RATE = 0.3, 0.01, 0.05  # noise units


def scene(shape=(48, 64)):
    """Return guide, planes, data and weight: two planes with noise and a hole."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:shape[0], :shape[1]].astype(np.float32)
    left = x < shape[1] // 2
    truth = np.where(left, 0.4 + 0.001 * x, 0.7 - 0.002 * y)
    guide = np.where(left, 0.3, 0.6) + 0.02 * rng.standard_normal(shape)
    d = truth + UNIT * rng.standard_normal(shape)
    m = np.ones(shape)
    m[10:20, 30:45] = 0
    planes = np.stack((np.where(m > 0, d, 0.5), 0 * d, 0 * d))
    return [values.astype(np.float32) for values in (guide, planes, d * m, m)]


def after(k: Kernels, steps: int, terms: Terms, dtype=None):
    """Return the planes after so many steps."""
    guide, *arrays = scene()
    w = select('cpu', 'fused').build_graph(guide, preset('realtime'))
    x, w, d, m = (k.array(values) for values in (arrays[0], w, *arrays[1:]))
    if dtype is not None:
        x, w, d, m = (values.to(dtype) for values in (x, w, d, m))
    state = k.adam.init(x, w, d, m, UNIT, terms)
    for number in range(steps):
        rate = FIRST_RATE * (LAST_RATE / FIRST_RATE) ** (number / (steps - 1))
        k.adam.step(state, rate, SLOPE_RATE * rate)
    return k.numpy(k.adam.planes(state))


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Return the difference of inverse depth, relative to its size."""
    return float(np.linalg.norm(a[0] - b[0]) / np.linalg.norm(b[0]))


@pytest.mark.parametrize('device', DEVICES)
@pytest.mark.parametrize('backend', ['fused', 'torch'])
@pytest.mark.parametrize('regulariser', REGULARISERS)
def test_agreement_after_fifty_steps(device, backend, regulariser):
    """To 1e-4 relative of plain torch in float64 on the CPU."""
    if backend == 'fused':
        device = 'cpu'
    terms = Terms(7.5, 5.5, regulariser)
    exact = after(select('cpu', 'torch'), 50, terms, torch.float64)
    assert difference(after(select(device, backend), 50, terms), exact) < 1e-4


def test_step_that_is_not_finite_is_undone(kernels):
    """An overflowing step leaves the planes as they were, and so do all after it."""
    guide, *arrays = scene()
    start, d, m = map(kernels.array, arrays)
    w = kernels.build_graph(kernels.array(guide), preset('realtime'))
    state = kernels.adam.init(start, w, d, m, UNIT, Terms(7.5, 5.5))
    kernels.adam.step(state, 0.1, 0.01)
    good = kernels.numpy(kernels.adam.planes(state)).copy()
    for rate in (math.inf, 0.1):
        kernels.adam.step(state, rate, 0.01)
        assert not kernels.adam.finite(state)
        assert kernels.adam.taken(state) == 1
        assert (kernels.numpy(kernels.adam.planes(state)) == good).all()


@pytest.mark.parametrize('good', [12, 6])
@pytest.mark.parametrize('shape', [(100, 40), (500, 17), (3, 5)])
def test_steps_that_go_down_the_rows_together_are_single_ones(shape, good):
    """Also where strips of rows meet, and up to the first that is not finite."""
    pytest.importorskip('numba')
    stages = select('cpu', 'fused')
    rng = np.random.default_rng(0)
    start, w, d, m = (
        rng.random((*some, *shape), np.float32) for some in ((3,), (8,), (), ()))
    rates = [0.3 * 0.9 ** k for k in range(12)]
    together, singly = (
        stages.adam.init(start, w, d, m, UNIT, Terms(7.5, 5.5)) for _ in range(2))
    for rate in rates[:good]:
        stages.adam.step(singly, rate, 0.01 * rate)
    stages.adam.steps(together, [*rates[:good], *[math.nan] * (12 - good)], 0.01)
    assert stages.adam.taken(together) == good
    assert stages.adam.finite(together) is (good == 12)
    assert (stages.adam.planes(together) == stages.adam.planes(singly)).all()
    if good == 12:
        assert (together.second == singly.second).all()


@pytest.mark.parametrize('regulariser', REGULARISERS)
def test_a_step_never_reads_back(regulariser):
    """Fake tensors have shapes but no values: whatever asks for one raises."""
    with FakeTensorMode():
        x, d, m = torch.ones(3, 9, 11), torch.ones(9, 11), torch.ones(9, 11)
        w = torch.ones(24, 9, 11)
        state = adam_torch.init(x, w, d, m, UNIT, Terms(7.5, 5.5, regulariser))
        before = state.z
        for _ in range(2):
            adam_torch.step(state, FIRST_RATE, SLOPE_RATE)
        assert state.z is before  # updated in its own memory
        assert state.z.shape == (3, 9, 11)
        with pytest.raises(DataDependentOutputException):
            bool(adam_torch.finite(state))


def test_the_reference_minimises_the_same_energy():
    """The plain lists of neighbours give the energy of the graph, up to the smoothing."""
    guide, x, d, m = scene((20, 30))
    config = preset('paper')
    stages = select('cpu', 'fused')
    state = stages.adam.init(
        x, stages.build_graph(guide, config), d, m, UNIT,
        Terms(config.energy.reg_lambda, config.energy.reg_alpha))
    tensors = [torch.from_numpy(values) for values in (x, d, m)]
    plain = reference.Solver(
        reference.Lists(torch.from_numpy(guide), config), *tensors, UNIT, config)
    expected = plain.energy().item()
    # each norm is smaller by at most the smoothing; the weights of a pixel's edges sum to 1
    norms = d.size * (1 + config.energy.reg_lambda * (1 + config.energy.reg_alpha))
    assert 0 < expected - stages.adam.energy(state) / UNIT < 0.5 * SMOOTHING * norms
    plain.step()
    assert plain.energy().item() != expected
