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
"""
ADAM on the energy, in plain torch on any device.

Nothing in `step` waits for the device: rates travel to it, nothing travels back. A step
that would not be finite is not taken, nor any after it; `finite` tells, when asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from graph_depth_refiner.core.adam import BETA1, BETA2, EPSILON
from graph_depth_refiner.core.energy_torch import energy as _energy
from graph_depth_refiner.core.energy_torch import gradient
from graph_depth_refiner.core.patch_graph_torch import transpose
from graph_depth_refiner.core.types import Memory, Terms


@dataclass
class State:
    """Where the minimisation stands, in noise units."""

    z: torch.Tensor  # 3 H W
    first: torch.Tensor  # 3 H W
    second: torch.Tensor  # 3 H W
    fine: torch.Tensor  # whether all steps were finite
    taken: torch.Tensor  # how many were taken
    w: torch.Tensor  # O H W
    back: torch.Tensor  # O H W, its transpose
    d: torch.Tensor  # H W
    m: torch.Tensor  # H W
    unit: float
    terms: Terms
    count: int  # of ADAM, which may run on from frame to frame


def init(x, w, d, m, unit: float, terms: Terms, memory: Memory | None = None) -> State:
    """Begin at the planes x; the memory of the frame before keeps the step sizes."""
    second = torch.zeros_like(x) if memory is None else memory.second.clone()
    return State(
        x / unit, torch.zeros_like(x), second,
        torch.ones((), dtype=torch.bool, device=x.device),
        torch.zeros((), dtype=torch.int64, device=x.device),
        w, transpose(w), d / unit, m, unit, terms, 0 if memory is None else memory.count)


def step(state: State, rate: float, slope_rate: float, update=None) -> None:
    """Take one ADAM step of about `rate` units in d, unless it would not be finite."""
    state.count += 1
    one = 1 / (1 - BETA1 ** state.count)
    two = 1 / (1 - BETA2 ** state.count)
    terms = state.terms
    numbers = torch.tensor(
        (rate * one, slope_rate * one, slope_rate * one, two, terms.lam, terms.alpha),
        dtype=state.z.dtype)
    if state.z.is_cuda:
        numbers = numbers.pin_memory().to(state.z.device, non_blocking=True)
    (update or adam)(
        state.z, state.first, state.second, state.fine, state.taken, state.w, state.back,
        state.d, state.m, numbers, terms.regulariser)


def steps(state: State, rates: list[float], slope_share: float, update=None) -> None:
    """Take the steps one after the other."""
    for rate in rates:
        step(state, rate, rate * slope_share, update)


def adam(
        z, first, second, fine, taken, w, back, d, m, numbers, regulariser: str) -> None:
    """
    Update the planes and the moments in place.

    What may change from step to step are numbers of a tensor, so that none of them is
    compiled in: three rates, the bias of the second moment, lambda and alpha.
    """
    g = gradient(z, w, back, d, m, numbers[4], numbers[5], regulariser)  # 3 H W
    one = BETA1 * first + (1 - BETA1) * g
    two = BETA2 * second + (1 - BETA2) * g.square()
    new = z - numbers[:3, None, None] * one / (torch.sqrt(two * numbers[3]) + EPSILON)
    fine.logical_and_(torch.isfinite(new).all())
    taken.add_(fine)
    z.copy_(torch.where(fine, new, z))
    first.copy_(one)
    second.copy_(torch.where(fine, two, second))


def finite(state: State) -> bool:
    """Tell whether all steps so far were finite; waits for the device."""
    return bool(state.fine)


def taken(state: State) -> int:
    """Return how many steps were taken; waits for the device."""
    return int(state.taken)


def energy(state: State, x: torch.Tensor | None = None) -> float:
    """Return the energy in the scale of the input, of other planes x if given; waits."""
    terms = state.terms
    z = state.z if x is None else x / state.unit
    return state.unit * float(_energy(
        z, state.w, state.d, state.m, terms.lam, terms.alpha, terms.regulariser))


def planes(state: State) -> torch.Tensor:
    """Return the planes in the scale of the input."""
    return state.z * state.unit  # 3 H W


def memory(state: State) -> Memory:
    """Return what the next frame's minimisation may go on with."""
    return Memory(state.second, state.count)
