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
The energy of the paper and its rivals, and their gradients: pure functions.

Everything is in noise units: planes z = (d, ux, uy), 3 H W; data d with weight m, H W;
graph w and its transpose, O H W. With r_ij = d_j - d_i - <u_i, j - i> the energy is

  sum_i m_i |d_i - data_i| + lambda (residual term + alpha slope term)

  planar         sum_i |w_ij r_ij|_2 over j        sum_ij w_ij |u_j - u_i|_2
  nltgv          sum_ij w_ij |r_ij|                sum_ij w_ij |u_j - u_i|_1
  neighbourhood  sum_i |w_ij r_ij|_2 over j        sum_i |w_ij (u_j - u_i)|_2 over j

with every norm smoothed at 0 as problem.SMOOTHING says.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn.functional import pad

from graph_depth_refiner.core.problem import offsets, SMOOTHING, window_of


def energy(z, w, d, m, lam: float, alpha: float, regulariser: str) -> torch.Tensor:
    """Return the energy of the planes."""
    data = (m * norm((z[0] - d).square())).sum()
    residual, slope = torch.zeros_like(d), torch.zeros_like(d)  # H W
    for o, dy, dx, there in neighbours(z, w):
        rise = there[0] - z[0] - z[1] * dx - z[2] * dy
        turn = there[1:] - z[1:]  # 2 H W
        if regulariser == 'nltgv':
            residual = residual + w[o] * norm(rise.square())
            slope = slope + w[o] * norm(turn.square()).sum(dim=0)
        else:
            residual = residual + (w[o] * rise).square()
            square = turn.square().sum(dim=0)
            slope = slope + (w[o] * norm(square) if regulariser == 'planar'
                             else w[o].square() * square)
    if regulariser != 'nltgv':
        residual = norm(residual)
    if regulariser == 'neighbourhood':
        slope = norm(slope)
    return data + lam * (residual.sum() + alpha * slope.sum())


def gradient(z, w, back, d, m, lam: float, alpha: float, regulariser: str) -> torch.Tensor:
    """Return the gradient, 3 H W; `back` is the transpose of w."""
    if regulariser == 'nltgv':
        rise, turn = _nltgv(z, w, back)
    else:
        rise, turn = _planar(z, w, back, regulariser)
    e = z[0] - d
    data = m * e * inverse(e.square())
    return torch.stack((data + lam * rise[0], *(lam * (rise[1:] + alpha * turn))))


def norm(square: torch.Tensor) -> torch.Tensor:
    """Return the smoothed norm of which the square is given."""
    return square / (torch.sqrt(square + SMOOTHING ** 2) + SMOOTHING)


def inverse(square: torch.Tensor) -> torch.Tensor:
    """Return what turns a vector into the gradient of its smoothed norm."""
    return torch.rsqrt(square + SMOOTHING ** 2)


def neighbours(values, w) -> Iterator[tuple[int, int, int, torch.Tensor]]:
    """Go over the offsets: number, dy, dx and the values (C H W) of the neighbours."""
    window = window_of(len(w))
    r = window // 2
    height, width = values.shape[-2:]
    padded = pad(values, (r, r, r, r))  # C H+2r W+2r
    for o, (dy, dx) in enumerate(offsets(window)):
        yield o, dy, dx, padded[:, r + dy:r + dy + height, r + dx:r + dx + width]


def _planar(z, w, back, regulariser):
    rises, turns = torch.zeros_like(z[0]), torch.zeros_like(z[0])  # H W
    for o, dy, dx, there in neighbours(z, w):
        rises = rises + (w[o] * (there[0] - z[0] - z[1] * dx - z[2] * dy)).square()
        if regulariser == 'neighbourhood':
            turns = turns + w[o].square() * (there[1:] - z[1:]).square().sum(dim=0)
    rises, turns = inverse(rises), inverse(turns)
    rise, turn = torch.zeros_like(z), torch.zeros_like(z[1:])
    for o, dy, dx, there in neighbours(torch.cat((z, rises[None], turns[None])), w):
        out = w[o].square() * (there[0] - z[0] - z[1] * dx - z[2] * dy) * rises
        come = back[o].square() * (z[0] - there[0] + there[1] * dx + there[2] * dy) * there[3]
        rise = rise + torch.stack((come - out, -dx * out, -dy * out))
        difference = z[1:] - there[1:3]  # 2 H W
        if regulariser == 'neighbourhood':
            factor = w[o].square() * turns + back[o].square() * there[4]
        else:
            factor = (w[o] + back[o]) * inverse(difference.square().sum(dim=0))
        turn = turn + factor * difference
    return rise, turn


def _nltgv(z, w, back):
    rise, turn = torch.zeros_like(z), torch.zeros_like(z[1:])
    for o, dy, dx, there in neighbours(z, w):
        out = there[0] - z[0] - z[1] * dx - z[2] * dy
        come = z[0] - there[0] + there[1] * dx + there[2] * dy
        out = w[o] * out * inverse(out.square())
        come = back[o] * come * inverse(come.square())
        rise = rise + torch.stack((come - out, -dx * out, -dy * out))
        difference = z[1:] - there[1:]
        turn = turn + (w[o] + back[o]) * difference * inverse(difference.square())
    return rise, turn
