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

Nothing here waits for the device: energies and whether steps were finite are tensors. A step
that would not be finite is not taken, nor any after it.
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
    unit: torch.Tensor | float
    terms: Terms
    count: torch.Tensor | int  # of ADAM, which may run on from frame to frame


def init(x, w, d, m, unit, terms: Terms, memory: Memory | None = None) -> State:
    """Begin at the planes x; the memory of the frame before keeps the step sizes."""
    second = torch.zeros_like(x) if memory is None else memory.second.clone()
    return State(
        x / unit, torch.zeros_like(x), second,
        torch.ones((), dtype=torch.bool, device=x.device),
        torch.zeros((), dtype=torch.int64, device=x.device),
        w, transpose(w), d / unit, m, unit, terms, 0 if memory is None else memory.count)


def step(state: State, rate: float, slope_rate: float) -> None:
    """Take one ADAM step of about `rate` units in d, unless it would not be finite."""
    steps(state, [rate], slope_rate / rate)


def steps(state: State, rates: list[float], slope_share: float) -> None:
    """Take the steps one after the other."""
    for numbers in rate_table(state.count, rates, slope_share, state.z):
        adam(state, numbers)
    state.count = state.count + len(rates)


def rate_table(count: torch.Tensor | int, rates: list[float], slope_share: float,
               like: torch.Tensor) -> torch.Tensor:
    """
    Return what differs from step to step, N 3, on the device of `like`.

    The rates of values and of slopes, both freed of the bias of the first moment, and the
    factor that frees the second of its own; `count` steps were taken before.
    """
    rate = torch.empty(len(rates), dtype=torch.float64, device=like.device)
    for place, one in enumerate(rates):
        rate[place].fill_(one)  # there: a list would be copied, and waited for
    number = torch.arange(1, len(rates) + 1, dtype=torch.float64, device=like.device) + count
    rate = rate / (1 - torch.pow(BETA1, number))
    return torch.stack(
        (rate, slope_share * rate, 1 / (1 - torch.pow(BETA2, number))), dim=1).to(like.dtype)


def adam(state: State, numbers: torch.Tensor) -> None:
    """Update the planes and the moments in place, by a row of `rate_table`."""
    z, first, second, fine, terms = (
        state.z, state.first, state.second, state.fine, state.terms)
    g = gradient(z, state.w, state.back, state.d, state.m, terms.lam, terms.alpha,
                 terms.regulariser)  # 3 H W
    one = BETA1 * first + (1 - BETA1) * g
    two = BETA2 * second + (1 - BETA2) * g.square()
    rates = torch.stack((numbers[0], numbers[1], numbers[1]))
    new = z - rates[:, None, None] * one / (torch.sqrt(two * numbers[2]) + EPSILON)
    fine.logical_and_(torch.isfinite(new).all())
    state.taken.add_(fine)
    z.copy_(torch.where(fine, new, z))
    first.copy_(one)
    second.copy_(torch.where(fine, two, second))


def finite(state: State) -> torch.Tensor:
    """Tell whether all steps so far were finite."""
    return state.fine


def taken(state: State) -> torch.Tensor:
    """Return how many steps were taken."""
    return state.taken


def energy(state: State, x: torch.Tensor | None = None, every: int = 1) -> torch.Tensor:
    """Return the energy in the scale of the input, of other planes x if given; see `_energy`."""
    terms = state.terms
    z = state.z if x is None else x / state.unit
    return state.unit * _energy(
        z, state.w, state.d, state.m, terms.lam, terms.alpha, terms.regulariser, every)


def planes(state: State) -> torch.Tensor:
    """Return the planes in the scale of the input."""
    return state.z * state.unit  # 3 H W


def memory(state: State) -> Memory:
    """Return what the next frame's minimisation may go on with."""
    return Memory(state.second, state.count)
