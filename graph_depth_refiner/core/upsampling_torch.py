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
"""From planes of the solved resolution to planes of every pixel: any torch device."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import avg_pool2d

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import upsampling as stage
from graph_depth_refiner.core.filters_torch import close, dilate
from graph_depth_refiner.core.flying import WIDTH
from graph_depth_refiner.core.kernels import Number
from graph_depth_refiner.core.neighbours_torch import neighbour
from graph_depth_refiner.core.noise import NoiseModel
from graph_depth_refiner.core.noise_torch import known_sigma


def upsample_planes(planes: torch.Tensor, frames: torch.Tensor, d: torch.Tensor,
                    behind: torch.Tensor, noise: NoiseModel, unit: Number, scale: int
                    ) -> torch.Tensor:
    """Return planes 3 h w at every pixel of a `scale` times larger image, 3 H W."""
    sigma = known_sigma(noise, d, behind, unit)
    rows, columns = planes.shape[1:]
    (v, row, own_row), (u, column, own_column) = (
        _places(side, small, scale, d) for side, small in zip(d.shape, (rows, columns)))
    v, row, own_row = v[:, None], row[:, None], own_row[:, None]

    def plane(at: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the planes, 3 H W, of some cells, and their inverse depth at the pixels."""
        found = planes[:, at[0], at[1]]
        return found, found[0] + found[1] * (u - at[1]) + found[2] * (v - at[0])

    known = d > 0
    own, predicted = plane((own_row, own_column))
    value = torch.where(known, d, torch.where(own[0] > 0, predicted, own[0]))
    sums, total = torch.zeros_like(own), torch.zeros_like(d)
    for down in (0, 1):
        for right in (0, 1):
            at = (row + down).clamp(0, rows - 1), (column + right).clamp(0, columns - 1)
            found, there = plane(at)
            near = (1 - (row + down - v).abs()) * (1 - (column + right - u).abs()) + stage.NEAR
            error = (there - value) / (WIDTH * sigma)
            a = near * (1 - error.square()).clamp(min=0).square()
            a = torch.where((found[0] > 0) & ((frames[at] > 0) | ~known), a, 0)
            sums = sums + a * torch.stack((there, found[1], found[2]))
            total = total + a
    above = below = explained = torch.zeros_like(known)
    close = WIDTH * sigma
    reach = range(-stage.SIDES, stage.SIDES + 1)
    for down, right in ((a, b) for a in reach for b in reach):
        at = own_row + down, own_column + right
        inside = (at[0] >= 0) & (at[0] < rows) & (at[1] >= 0) & (at[1] < columns)
        at = at[0].clamp(0, rows - 1), at[1].clamp(0, columns - 1)
        off = plane(at)[1] - value
        inside = inside & (frames[at] > 0)
        above, below = above | (inside & (off > close)), below | (inside & (off < -close))
        explained = explained | (inside & (off.abs() <= close))
    flying = known & ~explained & above & below & (own[0] > 0)
    side = torch.where(flying, predicted, value)
    blended = total > stage.LEAST
    fit, ux, uy = sums / torch.where(blended, total, 1)
    residual = value - fit
    expected = stage.KEPT * sigma
    beyond = known & (residual.abs() > expected)
    kept = residual * (1 - expected.square() / torch.where(beyond, residual, 1).square())
    fit = fit + torch.where(beyond, kept, 0)
    slopes = torch.where(blended, torch.stack((ux, uy)), own[1:]) / scale
    return torch.cat((torch.where(blended, fit, side)[None], slopes))


def _places(side: int, small: int, scale: int, like: torch.Tensor
            ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return where pixels lie among cells, the cell before that place, and their own cell."""
    pixels = torch.arange(side, device=like.device)
    place = (pixels.to(like.dtype) + 0.5) / scale - 0.5
    return place, place.floor().long(), (pixels // scale).clamp(max=small - 1)


def fillable(d: torch.Tensor, measured: torch.Tensor, sigma: torch.Tensor, config: RefinerConfig,
             same: Callable | None = None) -> torch.Tensor:
    """Return which pixels, H W, may have a value: 1 or 0; `same` does what `same_surface` does."""
    holes, mask = config.holes, measured.to(d.dtype)
    if holes.fill == 'none':
        return mask
    there = d > 0
    narrow = close(mask, holes.history_width)
    near = dilate(mask, 2 * stage.RIMS[0] + 1, 0.0)
    for rim in stage.RIMS[1:]:
        wider = dilate(mask, 2 * rim + 1, 0.0)
        fits = (wider * there * (1 - narrow)).sum() <= stage.FILLED_SHARE * d.numel()
        near = torch.where(fits, wider, near)
    known = there * torch.maximum(narrow, near)
    surface = (same or same_surface)(d, known, max(2 * holes.max_width + 1, stage.AROUND), sigma)
    return torch.maximum(known, close(known, holes.max_width) * surface)


def same_surface(d: torch.Tensor, known: torch.Tensor, side: int, sigma: Number) -> torch.Tensor:
    """Return where, H W, all that is there in a square, or both sides of a gap, is one surface."""
    limit = stage.ONE_SURFACE * sigma
    nearest = dilate(d, side, -torch.inf)
    farthest_negative = dilate(torch.where(d > 0, -d, -torch.inf), side, -torch.inf)
    step = (stage.STEP * nearest).clamp(min=limit)
    around = 2 * stage.GAP_REACH + 1
    count = around ** 2 * avg_pool2d(known[None], around, 1, stage.GAP_REACH)[0]
    agree = torch.zeros_like(known, dtype=torch.bool)
    for dy, dx in ((0, 1), (1, 0)):
        one, other = neighbour(d * known, -dy, -dx), neighbour(d * known, dy, dx)
        both = (one > 0) & (other > 0)
        close_by = (stage.STEP * torch.maximum(one, other)).clamp(min=limit)
        agree = agree | (both & ((one - other).abs() <= close_by))
    return (nearest + farthest_negative <= step) | (agree & (count > stage.GAP_KNOWN - 0.5))


def keep_planes(planes: torch.Tensor, kept: torch.Tensor) -> None:
    """Clear, in place, planes 3 H W of pixels that may have no value, H W of 1 and 0."""
    planes *= kept
