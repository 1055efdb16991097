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
"""The energies of `energy.py` and their gradients, in noise units: pure functions of tensors."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn.functional import pad

from graph_depth_refiner.core.energy import SLOPE_SMOOTHING, SMOOTHING
from graph_depth_refiner.core.patch_graph import offsets, window_of


def energy(z, w, d, m, lam: float, alpha: float, regulariser: str, every: int = 1
           ) -> torch.Tensor:
    """Return the energy of the planes, by every n-th row."""
    data = m * norm((z[0] - d).square())
    residual, slope = torch.zeros_like(d), torch.zeros_like(d)  # H W
    for o, dy, dx, other in neighbours(z, w):
        r = other[0] - z[0] - z[1] * dx - z[2] * dy
        slope_change = other[1:] - z[1:]  # 2 H W
        if regulariser == 'nltgv':
            residual = residual + w[o] * norm(r.square())
            slope = slope + w[o] * norm(slope_change.square(), SLOPE_SMOOTHING).sum(dim=0)
        else:
            residual = residual + (w[o] * r).square()
            square = slope_change.square().sum(dim=0)
            slope = slope + (w[o] * norm(square, SLOPE_SMOOTHING) if regulariser == 'planar'
                             else w[o].square() * square)
    if regulariser != 'nltgv':
        residual = norm(residual)
    if regulariser == 'neighbourhood':
        slope = norm(slope, SLOPE_SMOOTHING)
    rows = slice(every // 2, None, every)
    data, residual, slope = (part[rows].sum() for part in (data, residual, slope))
    return (data + lam * (residual + alpha * slope)) * (len(d) / len(d[rows]))


def gradient(z, w, back, d, m, lam: float, alpha: float, regulariser: str) -> torch.Tensor:
    """Return the gradient, 3 H W; `back` is the transpose of w."""
    if regulariser == 'nltgv':
        residual_part, slope_part = _nltgv_gradient(z, w, back)
    else:
        residual_part, slope_part = _planar_gradient(z, w, back, regulariser)
    e = z[0] - d
    data = m * e * inverse(e.square())
    slopes = lam * (residual_part[1:] + alpha * slope_part)  # 2 H W
    return torch.stack((data + lam * residual_part[0], *slopes))


def norm(square: torch.Tensor, smoothing: float = SMOOTHING) -> torch.Tensor:
    """Return the smoothed norm of which the square is given."""
    return square / (torch.sqrt(square + smoothing ** 2) + smoothing)


def inverse(square: torch.Tensor, smoothing: float = SMOOTHING) -> torch.Tensor:
    """Return the factor from a vector to the gradient of its smoothed norm."""
    return torch.rsqrt(square + smoothing ** 2)


def neighbours(values, w) -> Iterator[tuple[int, int, int, torch.Tensor]]:
    """Go over the offsets: number, dy, dx and the values (C H W) of the neighbours."""
    window = window_of(len(w))
    r = window // 2
    height, width = values.shape[-2:]
    padded = pad(values, (r, r, r, r))  # C H+2r W+2r
    for o, (dy, dx) in enumerate(offsets(window)):
        yield o, dy, dx, padded[:, r + dy:r + dy + height, r + dx:r + dx + width]


def _planar_gradient(z, w, back, regulariser):
    """Return the gradients of the residual term, 3 H W, and of the slope term, 2 H W."""
    residual_norm, slope_norm = torch.zeros_like(z[0]), torch.zeros_like(z[0])  # H W
    for o, dy, dx, other in neighbours(z, w):
        r = other[0] - z[0] - z[1] * dx - z[2] * dy
        residual_norm = residual_norm + (w[o] * r).square()
        if regulariser == 'neighbourhood':
            slope_norm = slope_norm + w[o].square() * (other[1:] - z[1:]).square().sum(dim=0)
    residual_norm, slope_norm = inverse(residual_norm), inverse(slope_norm, SLOPE_SMOOTHING)
    residual_part, slope_part = torch.zeros_like(z), torch.zeros_like(z[1:])
    for o, dy, dx, other in neighbours(torch.cat((z, residual_norm[None], slope_norm[None])), w):
        outgoing = w[o].square() * (other[0] - z[0] - z[1] * dx - z[2] * dy) * residual_norm
        incoming = back[o].square() * (z[0] - other[0] + other[1] * dx + other[2] * dy) * other[3]
        residual_part = residual_part + torch.stack(
            (incoming - outgoing, -dx * outgoing, -dy * outgoing))
        difference = z[1:] - other[1:3]  # 2 H W
        if regulariser == 'neighbourhood':
            factor = w[o].square() * slope_norm + back[o].square() * other[4]
        else:
            factor = (w[o] + back[o]) * inverse(
                difference.square().sum(dim=0), SLOPE_SMOOTHING)
        slope_part = slope_part + factor * difference
    return residual_part, slope_part


def _nltgv_gradient(z, w, back):
    """Return the gradients of the residual term, 3 H W, and of the slope term, 2 H W."""
    residual_part, slope_part = torch.zeros_like(z), torch.zeros_like(z[1:])
    for o, dy, dx, other in neighbours(z, w):
        outgoing = other[0] - z[0] - z[1] * dx - z[2] * dy
        incoming = z[0] - other[0] + other[1] * dx + other[2] * dy
        outgoing = w[o] * outgoing * inverse(outgoing.square())
        incoming = back[o] * incoming * inverse(incoming.square())
        residual_part = residual_part + torch.stack(
            (incoming - outgoing, -dx * outgoing, -dy * outgoing))
        difference = z[1:] - other[1:]
        slope_part = slope_part + (w[o] + back[o]) * difference * inverse(
            difference.square(), SLOPE_SMOOTHING)
    return residual_part, slope_part
