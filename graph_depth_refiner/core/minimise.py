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

from dataclasses import replace
import math
import time
from typing import Any

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.downsampling import Level
from graph_depth_refiner.core.kernels import Kernels
from graph_depth_refiner.core.pyramid import coarser, finer
from graph_depth_refiner.core.types import Problem, Solution, Terms
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
# Fitted planes are no minimum of the energy. Without a history theirs is up to 1.2 times that of
# the measurement (0.4 to 0.7 with one); beyond this they do not fit the data.
FITTED = 1.5
SAMPLED_ROWS = 30  # rows, or more, whose energy tells which planes are better
HEAVIEST = 4.0  # times the weight of the typical pixel, at most


def data_weight(level: Level) -> Any:
    """Return the weight of the data of a level, H W: its precision, 1 for the typical pixel."""
    least = 1e-3 * level.fused_unit  # unknown pixels have no deviation
    precision = (level.fused_unit / level.sigma.clip(least)).clip(0, HEAVIEST)
    return level.frames.clip(0, 1) * precision


def minimise(k: Kernels, problem: Problem, config: RefinerConfig, deadline: float = math.inf
             ) -> Solution:
    """
    Lower the energy of the planes to about that of the measurement itself, or below.

    If it ends much higher, the measurement is returned instead. The deadline is as of
    time.perf_counter. Without a graph the planes are the solution.
    """
    if problem.w is None:
        return Solution(problem.x, Status.REFINED, 0, 0.0, problem.memory)
    if problem.guide is not None and config.solver.levels > 1:
        problem = replace(problem, x=_solve_coarser(k, problem, config, deadline))
    x, measured = problem.x, problem.measured
    known, valid = (problem.d, problem.m > 0) if measured is None else (measured, measured > 0)
    raw = x + 0  # a copy in numpy and torch alike
    raw[0] = k.where(valid, known, x[0])
    terms = Terms(config.energy.reg_lambda, config.energy.reg_alpha, config.energy.regulariser)
    start = (x, problem.w, problem.d, problem.m, problem.unit, terms)
    if config.solver.method == 'irls':
        state = k.irls.init(*start)
        status = _reweighted_steps(k.irls, state, config, deadline)
        return _solution(k, k.irls, state, x, raw, status, None)
    state = k.adam.init(*start, problem.memory)
    steps = _steps_until_settled if config.solver.mode == 'converged' else _fixed_steps
    status = steps(k.adam, state, config, deadline)
    return _solution(k, k.adam, state, x, raw, status, k.adam.memory(state))


def _solve_coarser(k: Kernels, problem: Problem, config: RefinerConfig, deadline: float) -> Any:
    """Solve the next coarser level and return its planes at this one."""
    ratio = config.solver.level_ratio
    guide = coarser(problem.guide, ratio)
    if min(guide.shape[-2:]) <= config.graph.window:
        return problem.x
    below = config.with_values(
        **{'solver.levels': config.solver.levels - 1,
           'energy.reg_lambda': config.energy.reg_lambda_coarse or config.energy.reg_lambda})
    start = coarser(problem.x, ratio)  # 3 h w
    start[1:] *= ratio  # slopes are per pixel
    solution = minimise(
        k, Problem(start, k.build_graph(guide, below), coarser(problem.d, ratio),
                   coarser(problem.m, ratio), problem.unit, guide=guide), below, deadline)
    planes = finer(solution.x, ratio, problem.x)  # 3 H W
    planes[1:] /= ratio
    return planes


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


def _steps_until_settled(solver, state, config, deadline) -> Status:
    """Take smaller and smaller steps until the energy changes no more."""
    rate, energy = FIRST_RATE, float(solver.energy(state))
    for k in range(config.solver.max_iterations):
        if time.perf_counter() > deadline:
            return Status.BUDGET
        solver.step(state, rate, rate * config.solver.slope_rate)
        if (k + 1) % CHECK_STEPS == 0:
            before, energy = energy, float(solver.energy(state))
            if not before - energy > PLATEAU * before:
                rate /= 2
            if rate < LAST_RATE and (
                    abs(before - energy) <= config.solver.tolerance * before):
                return Status.CONVERGED
    return Status.NOT_CONVERGED


def _reweighted_steps(solver, state, config, deadline) -> Status:
    """Re-weigh and solve: for the steps of realtime mode, or until the energy settles."""
    converged = config.solver.mode == 'converged'
    inner = config.solver.cg_iterations
    energy = float(solver.energy(state)) if converged else math.inf
    for _ in range(
            (config.solver.max_iterations if converged else config.solver.iterations) // inner):
        if time.perf_counter() > deadline:
            return Status.BUDGET
        solver.step(state, inner)
        if converged:
            before, energy = energy, float(solver.energy(state))
            if abs(before - energy) <= config.solver.tolerance * before:
                return Status.CONVERGED
    return Status.NOT_CONVERGED if converged else Status.REFINED


def _solution(k, solver, state, start, raw, status, memory) -> Solution:
    """
    Return where the solver stands, or what it started from or the raw planes if that is better.

    All are planes, 3 H W. Steps that end no higher than the measurement stand. ADAM's first
    steps without a memory may go uphill; where too few of them follow, or none, the lower one
    of start and end is the result, and the stream goes on.
    """
    every = max(1, raw.shape[1] // SAMPLED_ROWS)
    energy, worst = solver.energy(state, None, every), solver.energy(state, raw, every)
    highest = worst + ROUNDING * state.unit * raw.shape[1] * raw.shape[2]

    end = solver.planes(state), solver.taken(state), energy

    def lower() -> tuple:
        begun = solver.energy(state, start, every)
        best = k.either(energy <= begun, lambda: end, lambda: (start, 0, begun))
        worse = best[-1] > FITTED * highest
        return *k.either(worse, lambda: (raw, 0, worst), lambda: best), worse
    x, taken, energy, worse = k.either(energy <= highest, lambda: (*end, False), lower)
    return Solution(x, status, taken, energy, memory, solver.finite(state), worse)
