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
"""Drive a minimiser: at which scales, how many steps, of what size, and when to stop."""

from __future__ import annotations

from dataclasses import dataclass
import math
import time

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.downsampling import Level
from graph_depth_refiner.core.kernels import Array, Kernels
from graph_depth_refiner.core.problem import Memory, Terms
from graph_depth_refiner.core.pyramid import coarser, finer
from graph_depth_refiner.frame import Status

# Converged mode begins with this learning rate, looks at the energy once in so many steps,
# halves the rate when the energy fell by less than this share, and heeds the tolerance once
# the rate is this small; rates in noise units.
FIRST_RATE = 10.0
CHECK_STEPS = 50
PLATEAU = 3e-3
LAST_RATE = 3e-3
# An energy is no higher as long as it is so by less than this share of the noise per pixel.
ROUNDING = 1e-3
HEAVIEST = 4.0  # times the weight of the typical pixel, at most


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be minimised, and from where; arrays of the kernels."""

    planes: Array  # 3 H W, to begin with
    weights: Array  # O H W, the graph
    d: Array  # H W, the data
    m: Array  # H W, its weight, 0 where there is none
    unit: float  # standard deviation of the data, which everything is measured in
    guide: Array | None = None  # H W or C H W; for the graphs of coarser levels
    measured: Array | None = None  # H W, 0 where unknown: what the result must not be worse than

    @classmethod
    def of(cls, k: Kernels, planes: Array, weights: Array, level: Level, raw: Level,
           guide: Array) -> Problem:
        """Weigh the data of a level by its precision; 1 is that of the typical pixel."""
        precision = (level.fused_unit / level.sigma.clip(1e-3 * level.fused_unit)).clip(0, HEAVIEST)
        weight = level.frames.clip(0, 1) * precision
        return cls(planes, weights, level.d, weight, level.fused_unit, guide, raw.d)


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the minimisation ended."""

    planes: Array  # 3 H W
    status: Status
    iterations: int
    energy: float
    memory: Memory | None


def minimise(k: Kernels, problem: Problem, config: RefinerConfig, memory: Memory | None = None,
             deadline: float = math.inf) -> Solution:
    """
    Lower the energy of planes to at most that of the measurement itself.

    The memory is ADAM's of the frame before; the deadline is as of time.perf_counter.
    """
    x = problem.planes
    if problem.guide is not None and config.solver.levels > 1:
        x = _start_from_below(k, problem, config, deadline)
    terms = Terms(config.energy.reg_lambda, config.energy.reg_alpha, config.energy.regulariser)
    known = problem.d if problem.measured is None else problem.measured
    valid = problem.m > 0 if problem.measured is None else known > 0
    raw = x + 0  # a copy in numpy and torch alike
    raw[0] = k.where(valid, known, x[0])
    start = (x, problem.weights, problem.d, problem.m, problem.unit, terms)
    if config.solver.method == 'irls':
        return _irls(k.irls, start, raw, config, deadline)
    return _adam(k.adam, (*start, memory), raw, config, deadline)


def _start_from_below(k: Kernels, problem: Problem, config: RefinerConfig, deadline: float
                      ) -> Array:
    """Solve the next coarser level and return its planes at this one."""
    ratio, x = config.solver.level_ratio, problem.planes
    small = coarser(problem.guide, ratio)
    if min(small.shape[-2:]) <= config.graph.window:
        return x
    below = config.with_values(
        **{'solver.levels': config.solver.levels - 1,
           'energy.reg_lambda': config.energy.reg_lambda_coarse or config.energy.reg_lambda})
    start = coarser(x, ratio)  # 3 h w
    start[1:] *= ratio  # slopes are per pixel
    solution = minimise(
        k, Problem(start, k.build_graph(small, below), coarser(problem.d, ratio),
                   coarser(problem.m, ratio), problem.unit, small), below, None, deadline)
    planes = finer(solution.planes, ratio, x)  # 3 H W
    planes[1:] /= ratio
    return planes


def _adam(solver, problem, raw, config, deadline) -> Solution:
    state = solver.init(*problem)
    run = _settle if config.solver.mode == 'converged' else _fixed_steps
    status = run(solver, state, config, deadline)
    return _solution(solver, state, raw, status, solver.memory(state))


def _fixed_steps(solver, state, config, deadline) -> Status:
    """Take the steps of realtime mode; nothing here waits for the device."""
    last = max(1, config.solver.iterations - 1)
    rates = [config.solver.learning_rate * config.solver.rate_decay ** (k / last)
             for k in range(config.solver.iterations)]
    if deadline == math.inf:
        solver.steps(state, rates, config.solver.slope_rate)
        return Status.REFINED
    for rate in rates:
        if time.perf_counter() > deadline:
            return Status.BUDGET
        solver.step(state, rate, rate * config.solver.slope_rate)
    return Status.REFINED


def _settle(solver, state, config, deadline) -> Status:
    """Take smaller and smaller steps until the energy changes no more."""
    rate, energy = FIRST_RATE, solver.energy(state)
    for k in range(config.solver.max_iterations):
        if time.perf_counter() > deadline:
            return Status.BUDGET
        solver.step(state, rate, rate * config.solver.slope_rate)
        if (k + 1) % CHECK_STEPS == 0:
            before, energy = energy, solver.energy(state)
            if not before - energy > PLATEAU * before:
                rate /= 2
            if rate < LAST_RATE and (
                    abs(before - energy) <= config.solver.tolerance * before):
                return Status.CONVERGED
    return Status.NOT_CONVERGED


def _irls(solver, problem, raw, config, deadline) -> Solution:
    """Re-weigh and solve: for the steps of realtime mode, or until the energy settles."""
    converged = config.solver.mode == 'converged'
    state = solver.init(*problem)
    inner = config.solver.cg_iterations
    energy = solver.energy(state) if converged else math.inf
    status = Status.NOT_CONVERGED if converged else Status.REFINED
    for _ in range(
            (config.solver.max_iterations if converged else config.solver.iterations) // inner):
        if time.perf_counter() > deadline:
            status = Status.BUDGET
            break
        solver.step(state, inner)
        if converged:
            before, energy = energy, solver.energy(state)
            if abs(before - energy) <= config.solver.tolerance * before:
                status = Status.CONVERGED
                break
    return _solution(solver, state, raw, status, None)


def _solution(solver, state, raw, status, memory) -> Solution:
    """Return where the solver stands, or the raw planes, 3 H W, if those are better."""
    energy = solver.energy(state)
    if not solver.finite(state):  # the step was not taken, but the moments have seen it
        status, memory = Status.DIVERGED, None
    worst = solver.energy(state, raw)
    slack = ROUNDING * state.unit * raw.shape[1] * raw.shape[2]
    if not energy <= worst + slack:
        return Solution(raw, Status.WORSE, 0, worst, None)
    return Solution(solver.planes(state), status, solver.taken(state), energy, memory)
