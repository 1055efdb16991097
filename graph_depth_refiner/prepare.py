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
A better start on any torch device, the plain twin of graph_depth_refiner.fused.prepare.

Everything is in noise units: a vote of similar pixels, slopes of planes in closed form, and
graph weights that know of depth.
"""

from __future__ import annotations

import torch

from graph_depth_refiner.graph import inside
from graph_depth_refiner.prepare_rules import LEAST_SPREAD, LEAST_WEIGHT, RIDGE, VOTERS
from graph_depth_refiner.problem import offsets, window_of


def outvote(z: torch.Tensor, color: torch.Tensor, stride: int, limit: float, share: float,
            sigma: float) -> torch.Tensor:
    """
    Return the map with pixels replaced that similar pixels around them contradict.

    Of the voters, a square of pixels `stride` apart weighted by colour, fewer than `share`
    are within `limit` of the pixel; it takes their weighted median if that is not either.
    """
    values, weights = [], []
    reach = range(-(VOTERS // 2), VOTERS // 2 + 1)
    for dy, dx in ((a * stride, b * stride) for a in reach for b in reach):
        value, weight = z.clone(), torch.zeros_like(z)
        inside(value, dy, dx).copy_(inside(z, -dy, -dx))
        unlike = (inside(color, dy, dx) - inside(color, -dy, -dx)).square().sum(dim=0)
        inside(weight, dy, dx).copy_(torch.exp(-unlike / (2 * len(color) * sigma ** 2)))
        values.append(value)
        weights.append(weight)
    values, weights = torch.stack(values), torch.stack(weights)  # V H W each
    total = weights.sum(dim=0)
    below = (weights * (values - z < -limit)).sum(dim=0)
    above = (weights * (values - z > limit)).sum(dim=0)
    contradicted = (total - below - above < share * total) & (
        2 * torch.maximum(below, above) >= total)
    return torch.where(contradicted, weighted_median(values, weights), z)


def weighted_median(values: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the first value, in their order, by which half of the weight is reached."""
    ordered, order = torch.sort(values, dim=0, stable=True)
    reached = torch.cumsum(torch.gather(weights, 0, order), dim=0)
    at = (2 * reached >= reached[-1]).to(torch.uint8).argmax(dim=0, keepdim=True)
    return torch.gather(ordered, 0, at)[0]


def fit_slopes(z: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return the slopes, 2 H W, of the least-squares plane through every pixel of the map."""
    xx, xy, yy, xz, yz = z.new_zeros((5, *z.shape))
    for o, (dy, dx) in enumerate(offsets(window_of(len(w)))):
        weight = inside(w[o], dy, dx)
        rise = weight * (inside(z, -dy, -dx) - inside(z, dy, dx))
        for total, part in ((xx, dx * dx * weight), (xy, dx * dy * weight),
                            (yy, dy * dy * weight), (xz, dx * rise), (yz, dy * rise)):
            inside(total, dy, dx).add_(part)
    spread = xx + yy
    p, q = xx + RIDGE * spread, yy + RIDGE * spread
    slopes = torch.stack([q * xz - xy * yz, p * yz - xy * xz]) / (p * q - xy * xy)
    return torch.where(spread > LEAST_SPREAD, slopes, 0)  # 2 H W


def depth_aware(w: torch.Tensor, x: torch.Tensor, sigma: float) -> torch.Tensor:
    """Return the weights times how well the planes x of two pixels predict each other."""
    aware = torch.zeros_like(w)
    for o, (dy, dx) in enumerate(offsets(window_of(len(w)))):
        here, there = inside(x, dy, dx), inside(x, -dy, -dx)  # 3 h w each
        rise = there[0] - here[0]
        forth = rise - here[1] * dx - here[2] * dy
        back = rise - there[1] * dx - there[2] * dy
        error = torch.maximum(forth.square(), back.square())
        weight = inside(w[o], dy, dx) * torch.exp(-error / (2 * sigma ** 2))
        inside(aware[o], dy, dx).copy_(torch.where(weight >= LEAST_WEIGHT, weight, 0))
    return aware


def give_way(w: torch.Tensor, x: torch.Tensor, half: float) -> torch.Tensor:
    """Return the weights of every pixel scaled down by how its slopes differ around it."""
    turn, total = w.new_zeros(w.shape[1:]), w.sum(dim=0)  # H W
    for o, (dy, dx) in enumerate(offsets(window_of(len(w)))):
        differ = (inside(x, -dy, -dx)[1:] - inside(x, dy, dx)[1:]).square().sum(dim=0).sqrt()
        inside(turn, dy, dx).add_(inside(w[o], dy, dx) * differ)
    mean = turn / total.clamp(min=LEAST_WEIGHT)
    return w / (1 + (mean / half).square())
