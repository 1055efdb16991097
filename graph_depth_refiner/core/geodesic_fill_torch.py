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
"""Planes of holes by geodesic distance in the image: the reference, on any torch device."""

from __future__ import annotations

import torch

from graph_depth_refiner.core import geodesic_fill as stage

# Between pixels that no path leads through; more than any path costs.
BARRIER = 1 << 31


def geodesic_fill(d: torch.Tensor, m: torch.Tensor, color: torch.Tensor, sigma,
                  planes: torch.Tensor) -> None:
    """Give pixels of holes the plane of the measured pixel nearest in the image, in place."""
    height, width = d.shape
    fits = (m > 0) & ((d - planes[0]).abs() < stage.FIT_LIMIT * sigma)
    sources = _geodesic_sources(m <= 0, fits, color)  # H W
    y = torch.arange(height, device=d.device)[:, None]
    x = torch.arange(width, device=d.device)
    value, ux, uy = planes.flatten(1)[:, sources]  # H W each
    change = ux * (x - sources % width) + uy * (y - sources // width)
    value = value + stage.SLOPE_SHARE * change
    other = (m <= 0) & (value > 0) & ((value - planes[0]).abs() > stage.APART * sigma)
    planes.copy_(torch.where(other, torch.stack((value, ux, uy)), planes))


def _geodesic_sources(holes: torch.Tensor, fits: torch.Tensor, color: torch.Tensor
                      ) -> torch.Tensor:
    """Return for each pixel, H W, the number of the nearest pixel that fits; its own if none."""
    cost = torch.where(fits, 0, stage.UNREACHED)  # H W int64
    sources = torch.arange(holes.numel(), device=holes.device).view_as(holes)
    arrays = [holes, cost, sources, color.long()]
    for _ in range(2 * stage.ROUNDS):  # back and forth: turned around, back is forth
        _sweep(*arrays)
        arrays = [one.flip((-2, -1)) for one in arrays]
    return arrays[2]


def _sweep(holes: torch.Tensor, cost: torch.Tensor, sources: torch.Tensor, color: torch.Tensor
           ) -> None:
    """Go down the rows, finding cheaper paths to the pixels of holes, in place."""
    width = holes.shape[1]
    lane = torch.arange(width, device=holes.device)
    for y in range(len(holes)):
        best, begin = cost[y], sources[y]  # W each
        for (dy, dx), price in zip(stage.PREVIOUS[1:], stage.STEP_COSTS[1:]):
            if y + dy < 0:
                continue
            there, here = slice(max(0, dx), width + min(0, dx)), slice(
                max(0, -dx), width + min(0, -dx))
            change = (color[:, y, here] - color[:, y + dy, there]).square().sum(dim=0)
            total = torch.full_like(best, stage.UNREACHED)
            total[here] = cost[y + dy, there] + price + change
            other = torch.zeros_like(begin)
            other[here] = sources[y + dy, there]
            better = holes[y] & (total < best)
            best, begin = torch.where(better, total, best), torch.where(better, other, begin)
        step = torch.zeros_like(best)
        step[1:] = stage.STEP_COSTS[0] + (
            color[:, y, 1:] - color[:, y, :-1]).square().sum(dim=0)
        best, first = along_row(best, best < cost[y], torch.where(holes[y], step, BARRIER), lane)
        cost[y], sources[y] = best, begin[first]


def along_row(best: torch.Tensor, from_above: torch.Tensor, step: torch.Tensor,
              lane: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """
    Return the cheapest path to every pixel, W, along the row, and the pixel where it enters it.

    As pixel by pixel: c[x] = min(best[x], c[x - 1] + step[x]), which is the smallest of
    best[j] - s[j] for j up to x, plus s[x], with s the sum of steps. Of equally cheap paths
    the one so far stays, then that along the row, then that from above: told apart by a
    number below a whole step of the cost, which also says j.
    """
    width = len(lane)
    sums = step.cumsum(dim=0)
    tag = torch.where(from_above, width + lane, width - 1 - lane)
    least = ((best - sums) * (2 * width) + tag).cummin(dim=0).values
    tag = least % (2 * width)
    first = torch.where(tag < width, width - 1 - tag, tag - width)
    return (least - tag).div(2 * width, rounding_mode='floor') + sums, first
