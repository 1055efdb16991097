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
"""A joint weighted median of similar pixels: the reference, on any torch device."""

from __future__ import annotations

import torch

from graph_depth_refiner.core.inpainting import HALF
from graph_depth_refiner.core.joint_median import PLANE_SIDE, SIDE
from graph_depth_refiner.core.neighbours_torch import inside


def joint_weighted_median(z: torch.Tensor, color: torch.Tensor, stride: int, limit: float,
                          share: float, sigma: float) -> torch.Tensor:
    """Return the map z, H W, with pixels replaced that similar ones around them contradict."""
    all_values, all_weights = [], []
    reach = range(-(SIDE // 2), SIDE // 2 + 1)
    for dy, dx in ((a * stride, b * stride) for a in reach for b in reach):
        value, weight = z.clone(), torch.zeros_like(z)
        inside(value, dy, dx).copy_(inside(z, -dy, -dx))
        color_distance = (inside(color, dy, dx) - inside(color, -dy, -dx)).square().sum(dim=0)
        inside(weight, dy, dx).copy_(torch.exp(-color_distance / (2 * len(color) * sigma ** 2)))
        all_values.append(value)
        all_weights.append(weight)
    values, weights = torch.stack(all_values), torch.stack(all_weights)  # N H W each
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
    at = (reached >= HALF * reached[-1]).to(torch.uint8).argmax(dim=0, keepdim=True)
    return torch.gather(ordered, 0, at)[0]


def joint_plane_median(planes: torch.Tensor, weight: torch.Tensor, color: torch.Tensor,
                       stride: int, sigma: float) -> torch.Tensor:
    """Return planes, 3 H W, with those of a weight, H W, below 1 replaced by the joint median."""
    all_planes, all_weights = [], []
    reach = range(-(PLANE_SIDE // 2), PLANE_SIDE // 2 + 1)
    for dy, dx in ((a * stride, b * stride) for a in reach for b in reach):
        there, votes = planes.clone(), torch.zeros_like(weight)
        moved = inside(planes, -dy, -dx).clone()
        moved[0] -= moved[1] * dx + moved[2] * dy
        inside(there, dy, dx).copy_(moved)
        color_distance = (inside(color, dy, dx) - inside(color, -dy, -dx)).square().sum(dim=0)
        inside(votes, dy, dx).copy_(
            torch.exp(-color_distance / (2 * len(color) * sigma ** 2)) * inside(weight, -dy, -dx))
        all_planes.append(there)
        all_weights.append(votes)
    candidates, weights = torch.stack(all_planes), torch.stack(all_weights)  # N 3 H W, N H W
    order = torch.sort(candidates[:, 0], dim=0, stable=True).indices
    reached = torch.cumsum(torch.gather(weights, 0, order), dim=0)
    first = (reached >= HALF * reached[-1]).to(torch.uint8).argmax(dim=0, keepdim=True)
    at = torch.gather(order, 0, first)[:, None].expand(1, 3, -1, -1)
    return torch.where(weight < 1, torch.gather(candidates, 0, at)[0], planes)
