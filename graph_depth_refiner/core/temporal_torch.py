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
"""Consistency gate and running mean: the reference, on any torch device."""

from __future__ import annotations

import torch

from graph_depth_refiner.core import temporal as stage
from graph_depth_refiner.core.patch_graph_torch import box


def consistency_gate(d: torch.Tensor, m: torch.Tensor, color: torch.Tensor,
                     warped: torch.Tensor, frame_count: torch.Tensor,
                     warped_color: torch.Tensor, sigma: float) -> torch.Tensor:
    """Return the weight of the warped planes, H W in [0, 1]."""
    both = (m > 0) & (frame_count > 0)
    residual = torch.where(both, ((d - warped[0]) / sigma).clamp(-stage.CLIP, stage.CLIP), 0)
    color_distance = (color.to(d.dtype) - warped_color.to(d.dtype)).abs().mean(dim=0) / 255
    share = _mean(both.to(d.dtype), stage.RADIUS).clamp(min=1e-6)
    history_weight = _falling(_mean(residual, stage.RADIUS).abs() / share, stage.BIAS) \
        * _falling(_mean(residual.abs(), stage.RADIUS) / share, stage.MISFIT) \
        * _falling(_mean(color_distance, stage.IMAGE_RADIUS), stage.IMAGE)
    return torch.where(frame_count > 0, history_weight, 0)


def fuse(d: torch.Tensor, m: torch.Tensor, chosen: torch.Tensor, warped: torch.Tensor,
         frame_count: torch.Tensor, sigma: float, limit: float
         ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return planes 3 H W to start from, data d and m, and the frames they count for, H W."""
    same = ((warped[0] - chosen[0]).abs() < stage.SAME * sigma) & (
        (warped[1:] - chosen[1:]).abs().sum(dim=0) * stage.SAME_SLOPE < sigma)
    n = torch.where(same, frame_count.clamp(max=limit), 0)  # H W
    old = torch.where(n > 0, warped, chosen)
    planes = old + (chosen - old) / (1 + n)
    kept = torch.where((d - chosen[0]).abs() <= stage.OUTLIER * sigma, m, 0)
    total = kept + n
    data = torch.where(
        total > 0, (kept * d + n * warped[0]) / torch.where(total > 0, total, 1), planes[0])
    return planes, data, torch.maximum(kept, n.clamp(max=1)), total.clamp(max=limit)


def _mean(values: torch.Tensor, radius: int) -> torch.Tensor:
    """Return the mean, H W, of the square around every pixel; the image is mirrored beyond."""
    rows, columns = (_mirrored(side, radius) for side in values.shape)
    side = 2 * radius + 1
    return box(box(values[rows][:, columns], side, 0), side, 1) / side ** 2


def _mirrored(side: int, radius: int) -> list[int]:
    """Return the places from -reach to side + reach - 1, those outside mirrored at the edge."""
    places = (place % (2 * side) for place in range(-radius, side + radius))
    return [min(place, 2 * side - 1 - place) for place in places]


def _falling(value: torch.Tensor, limits: tuple[float, float]) -> torch.Tensor:
    """Return 1 below the first limit, 0 beyond the second, linear between."""
    return ((limits[1] - value) / (limits[1] - limits[0])).clamp(0, 1)
