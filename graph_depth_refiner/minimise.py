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
"""Drive a minimiser: how many steps, of what size, and when to stop."""

from __future__ import annotations

from dataclasses import dataclass
import math
import time
from typing import Any

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.frame import Status
from graph_depth_refiner.problem import Memory, Terms


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the minimisation ended."""

    x: Any  # 3 H W
    status: Status
    iterations: int
    energy: float
    memory: Memory | None


def minimise(
        backend: Any, x: Any, w: Any, d: Any, m: Any, unit: float, config: RefinerConfig,
        memory: Memory | None = None, deadline: float = math.inf) -> Solution:
    """Lower the energy of the planes x, 3 H W; deadline as of time.perf_counter."""
    solver = backend.solver
    state = solver.init(
        x, w, d, m, unit, Terms(config.reg_lambda, config.reg_alpha, config.regulariser), memory)
    status = Status.REFINED
    for k in range(config.iterations):
        if time.perf_counter() > deadline:
            status = Status.BUDGET
            break
        rate = config.learning_rate * config.rate_decay ** (k / max(1, config.iterations - 1))
        solver.step(state, rate, rate * config.slope_rate)
    if not solver.finite(state):
        status = Status.DIVERGED
    return Solution(
        solver.planes(state), status, solver.taken(state), solver.energy(state), solver.memory(state))
