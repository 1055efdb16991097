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
Iteratively re-weighted least squares (IRLS) with preconditioned conjugate gradients, in torch.

Every norm is bounded from above by a parabola that touches it at the present planes; the
sum of the parabolas is lowered by a few steps of conjugate gradients, and again.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from graph_depth_refiner.core.energy import SLOPE_SMOOTHING
from graph_depth_refiner.core.energy_torch import energy as _energy
from graph_depth_refiner.core.energy_torch import inverse, neighbours
from graph_depth_refiner.core.patch_graph_torch import transpose
from graph_depth_refiner.core.types import Terms


@dataclass
class State:
    """Where the minimisation stands, in noise units."""

    z: torch.Tensor  # 3 H W
    w: torch.Tensor  # O H W
    back: torch.Tensor  # O H W, its transpose
    d: torch.Tensor  # H W
    m: torch.Tensor  # H W
    unit: float
    terms: Terms
    fine: bool = True
    taken: int = 0


@dataclass
class System:
    """The parabolas at some planes: what the squares are weighted with."""

    data: torch.Tensor  # H W
    residual_weight: torch.Tensor  # O H W
    back: torch.Tensor  # O H W, its transpose
    slope_weight: torch.Tensor  # O 2 H W, both directions of an edge together

    def apply(self, p: torch.Tensor) -> torch.Tensor:
        """Return the gradient of the squares at p, 3 H W, apart from the data's values."""
        out = torch.stack((self.data * p[0], torch.zeros_like(p[1]), torch.zeros_like(p[2])))
        for o, dy, dx, other in neighbours(p, self.residual_weight):
            outgoing = self.residual_weight[o] * (other[0] - p[0] - p[1] * dx - p[2] * dy)
            incoming = self.back[o] * (p[0] - other[0] + other[1] * dx + other[2] * dy)
            out += torch.stack((incoming - outgoing, -dx * outgoing, -dy * outgoing))
            out[1:] += self.slope_weight[o] * (p[1:] - other[1:])
        return out

    def inverse_diagonal(self) -> torch.Tensor:
        """Return the preconditioner, 3 H W; 0 where there is nothing to solve."""
        out = torch.stack((self.data, *self.slope_weight.sum(dim=0)))
        for o, dy, dx, _ in neighbours(out, self.residual_weight):
            out[0] += self.residual_weight[o] + self.back[o]
            out[1] += self.residual_weight[o] * dx * dx
            out[2] += self.residual_weight[o] * dy * dy
        return torch.where(out > 0, 1 / out, 0)


def init(x, w, d, m, unit: float, terms: Terms) -> State:
    """Begin at the planes x."""
    return State(x / unit, w, transpose(w), d / unit, m, unit, terms)


def step(state: State, inner: int) -> None:
    """Re-weigh once and take `inner` steps of conjugate gradients, unless not finite."""
    if not state.fine:
        return
    z = conjugate_gradients(weigh(state), state.d, state.z, inner)
    state.fine = bool(torch.isfinite(z).all())
    if state.fine:
        state.z = z
        state.taken += inner


def weigh(state: State) -> System:
    """Set up the least-squares system whose gradient here is that of the energy."""
    z, w, terms = state.z, state.w, state.terms
    residual_weight, slope_weight = torch.empty_like(w), w.new_empty((len(w), 2, *z.shape[1:]))
    residual_norm, slope_norm = torch.zeros_like(z[0]), torch.zeros_like(z[0])
    for o, dy, dx, other in neighbours(z, w):
        residual = (other[0] - z[0] - z[1] * dx - z[2] * dy).square()
        difference = (other[1:] - z[1:]).square()  # 2 H W
        residual_norm += w[o].square() * residual
        slope_norm += w[o].square() * difference.sum(dim=0)
        if terms.regulariser == 'nltgv':
            residual_weight[o] = w[o] * inverse(residual)
            slope_weight[o] = (w[o] + state.back[o]) * inverse(difference, SLOPE_SMOOTHING)
        else:
            slope_weight[o] = (w[o] + state.back[o]) * inverse(
                difference.sum(dim=0), SLOPE_SMOOTHING)
    if terms.regulariser != 'nltgv':
        residual_weight = w.square() * inverse(residual_norm)
    if terms.regulariser == 'neighbourhood':
        share = w.square() * inverse(slope_norm, SLOPE_SMOOTHING)  # O H W
        slope_weight = (share + transpose(share))[:, None].expand_as(slope_weight)
    residual_weight = terms.lam * residual_weight
    slope_weight = terms.lam * terms.alpha * slope_weight
    data = state.m * inverse((z[0] - state.d).square())
    return System(data, residual_weight, transpose(residual_weight), slope_weight)


def conjugate_gradients(system: System, d, z, steps: int) -> torch.Tensor:
    """Return the planes improved by so many steps."""
    scale = system.inverse_diagonal()
    rest = -system.apply(z)
    rest[0] += system.data * d
    p = scale * rest
    now = (rest * p).sum()
    for _ in range(steps):
        image = system.apply(p)
        curvature = (p * image).sum()
        length = torch.where(curvature > 0, now / curvature, 0)  # 0 once it is solved
        z = z + length * p
        rest = rest - length * image
        before, now = now, (rest * scale * rest).sum()
        p = scale * rest + torch.where(before > 0, now / before, 0) * p
    return z


def finite(state: State) -> bool:
    """Tell whether all steps so far were finite."""
    return state.fine


def taken(state: State) -> int:
    """Return how many steps of conjugate gradients were taken."""
    return state.taken


def energy(state: State, x: torch.Tensor | None = None, every: int = 1) -> float:
    """Return the energy in the scale of the input, of other planes x if given; see `_energy`."""
    terms = state.terms
    z = state.z if x is None else x / state.unit
    return state.unit * float(_energy(
        z, state.w, state.d, state.m, terms.lam, terms.alpha, terms.regulariser, every))


def planes(state: State) -> torch.Tensor:
    """Return the planes in the scale of the input."""
    return state.z * state.unit  # 3 H W
