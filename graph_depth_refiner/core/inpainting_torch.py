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
"""Filling of holes in a map in noise units: the reference, on any torch device."""

from __future__ import annotations

import torch

from graph_depth_refiner.core import inpainting as stage


def fill_background(z: torch.Tensor, reliable: torch.Tensor) -> torch.Tensor:
    """Fill holes with the smaller of the reliable values left and right; 0 where none is."""
    values = _seen(z, _reach(reliable)[:2])  # 2 H W
    smaller = torch.where(values.isnan(), torch.inf, values).amin(dim=0)
    return torch.where(reliable, z, torch.where(smaller.isinf(), 0, smaller))


def fill_occluded(z: torch.Tensor, reliable: torch.Tensor, color: torch.Tensor) -> torch.Tensor:
    """Fill occlusions with the background, other holes from around; 0 where nothing is seen."""
    reach = _reach(reliable)  # 8 H W
    left, right = reach[:2]
    values = _seen(z, reach)
    first, last = _rim_slopes(z, reliable)  # H 1 each
    filled = _from_around(values, reach, color)
    step = values[1] - values[0]  # NaN, and so no occlusion, where one is missing
    hidden = (step > stage.OCCLUSION_STEP) & (
        left + right - 1 <= stage.OCCLUSION_GAP * step + stage.OCCLUSION_SLACK)
    filled = torch.where(hidden, values[0], filled)
    filled = torch.where((left == 0) & (right > 0), values[1] - right * first, filled)
    filled = torch.where((left > 0) & (right == 0), values[0] + left * last, filled)
    return torch.where(reliable, z, filled)


def _reach(reliable: torch.Tensor) -> torch.Tensor:
    """Return how many steps away the next reliable pixel is in each direction, 0 if none is."""
    return torch.stack([_reach_one(reliable, dy, dx) for dy, dx in stage.STEPS.tolist()])  # 8 H W


def _reach_one(reliable: torch.Tensor, dy: int, dx: int) -> torch.Tensor:
    if dy == 0:
        return _reach_one(reliable.T, dx, 0).T
    if dy > 0:
        return _reach_one(reliable.flip(0), -dy, dx).flip(0)
    height, width = reliable.shape
    y = torch.arange(height, device=reliable.device)[:, None]
    x = torch.arange(width, device=reliable.device)
    # sheared, so that every line of pixels in the direction is a column
    lines = torch.arange(-height, width + height, device=reliable.device) - dx * y
    in_image = (lines >= 0) & (lines < width)
    sheared = reliable.gather(1, lines.clamp(0, width - 1)) & in_image  # H W+2H
    last = torch.where(sheared, y, -1).cummax(dim=0).values
    above = torch.cat((torch.full_like(last[:1], -1), last[:-1]))
    reach = torch.where(above >= 0, y - above, 0)
    return reach.gather(1, (x + dx * y + height).expand(height, width))


def _seen(z: torch.Tensor, reach: torch.Tensor) -> torch.Tensor:
    """Return the value of the next reliable pixel in each direction, NaN where none is."""
    y, x = _ends(reach)
    return torch.where(reach > 0, z[y, x], torch.nan)  # K H W


def _ends(reach: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return row and column of the next reliable pixel in each direction, K H W each."""
    y = torch.arange(reach.shape[1], device=reach.device)[:, None]
    x = torch.arange(reach.shape[2], device=reach.device)
    dy, dx = torch.from_numpy(stage.STEPS[:len(reach)].T).to(reach.device)[:, :, None, None]
    return y + reach * dy, x + reach * dx


def _from_around(values: torch.Tensor, reach: torch.Tensor, color: torch.Tensor) -> torch.Tensor:
    """Return the weighted median of what is seen around, interpolated on one surface."""
    opposite = [direction ^ 1 for direction in range(len(reach))]
    other, away = values[opposite], reach[opposite]
    slopes = torch.from_numpy(stage.SAME_SURFACE_SLOPES).to(values)[:, None, None]
    together = (values - other).abs() <= stage.SAME_SURFACE_STEP + slopes * (reach + away)
    between = (values * away + other * reach) / (reach + away).clamp(min=1)
    y, x = _ends(reach)
    color_distance = (color[:, y, x] - color[:, None]).abs().sum(dim=0)  # 8 H W
    lengths = values.new_tensor([(dy * dy + dx * dx) ** 0.5 for dy, dx in stage.STEPS.tolist()])
    distance = reach * lengths[:, None, None]
    weights = stage.NEGLIGIBLE + torch.exp(
        -color_distance / stage.COLOR_FADE - distance / stage.DISTANCE_FADE)
    values = torch.where(together, between, values).nan_to_num()
    weights = torch.where(reach > 0, torch.where(together, 1, stage.ONE_SIDED) * weights, 0)
    median = weighted_median(values, weights)
    mean = (values * weights).sum(dim=0) / weights.sum(dim=0).clamp(min=stage.NEGLIGIBLE)
    apart = mean - median
    return torch.where(apart.abs() > stage.UNDECIDED, median + stage.TOWARDS_MEAN * apart, median)


def weighted_median(values: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the first value, in their order, by which half of the weight is reached; or 0."""
    order = torch.where(weights > 0, values, torch.inf).sort(dim=0, stable=True).indices
    reached = weights.gather(0, order).cumsum(dim=0)
    at = (reached >= stage.HALF * reached[-1]).to(torch.uint8).argmax(dim=0, keepdim=True)
    median = values.gather(0, order).gather(0, at)[0]
    return torch.where(reached[-1] > 0, median, 0)


def _rim_slopes(z: torch.Tensor, reliable: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the slopes along x at the first and the last reliable pixel of every row, H 1."""
    first = reliable.to(torch.uint8).argmax(dim=1)
    last = reliable.shape[1] - 1 - reliable.flip(1).to(torch.uint8).argmax(dim=1)
    return _rim_slope(z, reliable, first, 1), _rim_slope(z, reliable, last, -1)


def _rim_slope(z: torch.Tensor, reliable: torch.Tensor, ends: torch.Tensor, inward: int
               ) -> torch.Tensor:
    height, width = z.shape
    row = torch.arange(height, device=z.device)
    run = torch.arange(1, stage.RIM_SPAN + 1, device=z.device)
    around = torch.arange(-stage.RIM_ROWS, stage.RIM_ROWS + 1, device=z.device)
    y = row[:, None, None] + around[:, None]  # H rows 1
    x = ends[:, None, None] + inward * run  # H 1 span
    in_image = (y >= 0) & (y < height) & (x >= 0) & (x < width)  # H rows span
    y, x = y.clamp(0, height - 1), x.clamp(0, width - 1)
    step = z[y, x] - z[row, ends][:, None, None]
    same = in_image & reliable[y, x] & (
        step.abs() <= stage.RIM_STEP + float(stage.SAME_SURFACE_SLOPES[0]) * run)
    rise = torch.where(same, inward * run * step, 0).sum(dim=(1, 2))
    return (rise / ((same * run * run).sum(dim=(1, 2)) + stage.RIM_CAUTION))[:, None]
