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
"""The driver of the minimisers on scenes whose minimum is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graph_depth_refiner.config import preset
from graph_depth_refiner.core.downsampling import Level
from graph_depth_refiner.core.kernels import Kernels, select
from graph_depth_refiner.core.minimise import data_weight, HEAVIEST, minimise
from graph_depth_refiner.core.pyramid import coarser, finer
from graph_depth_refiner.core.types import Problem
from graph_depth_refiner.frame import Status

UNIT = 0.01
SHAPE = (24, 40)


def noisy_plane(seed: int = 0):
    """Return planes to start from, data, its weight and the true inverse depth."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:SHAPE[0], :SHAPE[1]].astype(np.float32)
    truth = 0.5 + 0.002 * x - 0.001 * y
    m = (rng.random(SHAPE) > 0.2).astype(np.float32)
    d = ((truth + UNIT * rng.standard_normal(SHAPE)) * m).astype(np.float32)
    start = np.stack((np.where(m > 0, d, np.median(d[m > 0])), 0 * d, 0 * d))  # 3 H W
    return start.astype(np.float32), d, m, truth


def solve(k: Kernels, config, scale: float = 1.0, guide=None, memory=None, **more):
    """Minimise on the noisy plane, all of it scaled."""
    start, d, m, _ = noisy_plane()
    guide = np.zeros(SHAPE, np.float32) if guide is None else guide
    w = k.build_graph(k.array(guide), config)
    problem = Problem(k.array(scale * start), w, k.array(scale * d), k.array(m), scale * UNIT,
                      guide=k.array(guide), memory=memory)
    return minimise(k, problem, config, **more)


def test_converged_finds_the_plane(kernels):
    """In a flat image all is one plane: u and d are known to far below the noise."""
    config = preset('realtime', **{'solver.mode': 'converged', 'solver.max_iterations': 3000})
    solution = solve(kernels, config)
    truth = noisy_plane()[3]
    planes = kernels.numpy(solution.x)
    assert solution.status is Status.CONVERGED
    assert np.abs(planes[0] - truth).mean() < 0.3 * UNIT
    np.testing.assert_allclose(planes[1].mean(), 0.002, atol=1e-4)
    np.testing.assert_allclose(planes[2].mean(), -0.001, atol=1e-4)


@pytest.mark.parametrize('solver', ['adam', 'irls'])
def test_scaled_scene_gives_the_scaled_result(kernels, solver):
    """All steps are in noise units, so a scene in other units changes nothing else."""
    config = preset('realtime', **{'solver.iterations': 20, 'solver.method': solver})
    to_numpy = kernels.numpy
    one = to_numpy(solve(kernels, config).x)
    for scale in (1 / 128, 128.0):  # exact in binary
        other = solve(kernels, config, scale)
        np.testing.assert_allclose(to_numpy(other.x) / scale, one, atol=1e-3 * UNIT)


@pytest.mark.parametrize('settings', [
    {'solver.method': 'adam'}, {'solver.method': 'irls'},
    {'solver.method': 'adam', 'solver.levels': 2}])
def test_energy_falls(kernels, settings):
    """Every way lowers the energy of the start."""
    before = solve(kernels, preset('realtime', **{'solver.iterations': 0}))
    after = solve(kernels, preset('realtime', **{'solver.iterations': 30}, **settings))
    assert after.status is Status.REFINED
    assert after.iterations == 30
    assert after.energy < 0.8 * before.energy


def test_time_budget_stops_between_steps():
    """A deadline in the past allows no step, and says so."""
    solution = solve(select('cpu', 'fused'), preset('realtime', **{'solver.iterations': 5}),
                     deadline=-math.inf)
    assert solution.status is Status.BUDGET
    assert solution.iterations == 0


def test_converged_says_when_it_ran_out_of_steps():
    """Some hundred steps are not enough."""
    config = preset('realtime', **{'solver.mode': 'converged', 'solver.max_iterations': 400})
    assert solve(select('cpu', 'fused'), config).status is Status.NOT_CONVERGED


def test_memory_goes_on_where_it_stopped():
    """Two calls of five steps with the second moment carried count ten."""
    config = preset('realtime', **{'solver.iterations': 5})
    first = solve(select('cpu', 'fused'), config)
    second = solve(select('cpu', 'fused'), config, memory=first.memory)
    assert first.memory.count == 5
    assert second.memory.count == 10


def test_levels_sample_as_the_paper_says():
    """Nearest neighbours both ways; a side that does not divide is rounded down."""
    values = np.arange(15.0).reshape(3, 5)
    small = coarser(values, 2)
    assert small.tolist() == [[0, 2]]
    large = finer(small, 2, values)
    assert large.tolist() == [[0, 0, 2, 2, 2]] * 3


@pytest.mark.parametrize('number', [4, 5])
def test_many_steps_are_single_ones(kernels, number):
    """A deadline makes the steps come one by one; without one they are taken at once."""
    config = preset('realtime', **{'solver.iterations': number})
    once, singly = (solve(kernels, config, **more) for more in ({}, {'deadline': 1e30}))
    assert (np.asarray(once.x) == np.asarray(singly.x)).all()
    assert (np.asarray(once.memory.second) == np.asarray(singly.memory.second)).all()
    assert once.iterations == singly.iterations == once.memory.count == number


def test_bytes_do_not_depend_on_the_threads():
    """Strips of rows are cut differently, sums are not."""
    numba = pytest.importorskip('numba')
    config = preset('realtime', **{'solver.iterations': 5})
    threads = numba.get_num_threads()
    many = solve(select('cpu', 'fused'), config)
    numba.set_num_threads(1)
    one = solve(select('cpu', 'fused'), config)
    numba.set_num_threads(threads)
    assert (many.x == one.x).all()
    assert many.energy == one.energy


def test_data_weighs_by_its_precision(kernels):
    """Against the typical pixel, and not without end; unknown pixels and doubtful ones less."""
    frames = np.array([[0, 0.5, 1, 9, 9, 9]], np.float32)
    sigma = np.array([[0, 1, 1, 0.5, 2, 0.01]], np.float32) * np.float32(UNIT)
    level = Level(*map(kernels.array, (frames, frames, sigma)), UNIT, UNIT)
    assert kernels.numpy(data_weight(level))[0] == pytest.approx([0, 0.5, 1, 2, 0.5, HEAVIEST])
