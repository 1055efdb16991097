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
"""Planes fitted in shiftable windows: the reference, on any torch device."""

from __future__ import annotations

import torch
from torch.nn.functional import pad

from graph_depth_refiner.core import plane_fit as stage
from graph_depth_refiner.core.neighbours_torch import neighbour

_CENTRE = 0.5 * (stage.CELL - 1)  # of a cell, in pixels from its first one


def fit_planes(d: torch.Tensor, m: torch.Tensor, guide: torch.Tensor, sigma: float,
               window_radii: tuple[int, ...], wide_window_bonus: float, color_sigma: float
               ) -> tuple[torch.Tensor, torch.Tensor]:
    """Return planes 3 H W and their cost H W from the measurement alone."""
    sums = _integral(d, m, guide)  # 11 rows+1 columns+1
    least = stage.LEAST_PIXELS * sums[0, -1, -1] / (m != 0).sum().clamp(min=1)
    shade = stage.GUIDE_SHARE * sigma ** 2 / color_sigma ** 2
    planes, cost = d.new_zeros((3, *d.shape)), torch.full_like(d, stage.NO_PLANE)
    for k, radius in enumerate(window_radii):
        fits = _fit(sums, radius, least).to(d.dtype)
        found, price = _shiftable_windows(d, m, guide, fits, radius, sigma, shade)
        better = price < cost * (1 / wide_window_bonus if k else 1)
        planes, cost = torch.where(better, found, planes), torch.where(better, price, cost)
    radius = max(window_radii)
    while radius < sums.shape[1] + sums.shape[2] - 2:  # for what is inside a large hole
        radius *= 2
        planes, cost = _fill(planes, cost, _fit(sums, radius, least).to(d.dtype))
    planes, cost = _refit_thin_structures(d, m, sigma, planes, cost)
    value = torch.where((planes[0] <= 0) & (m > 0), d, planes[0])
    return torch.stack((value, planes[1], planes[2])), cost


def _integral(d: torch.Tensor, m: torch.Tensor, guide: torch.Tensor) -> torch.Tensor:
    """Integrate the moments of all pixels up to each corner of a cell, in float64."""
    height, width = d.shape
    value = d.double()
    y = torch.arange(height, dtype=value.dtype, device=d.device)[:, None].expand_as(value)
    x = torch.arange(width, dtype=value.dtype, device=d.device).expand_as(value)
    terms = torch.stack((
        torch.ones_like(value), x, y, x * x, x * y, y * y, value, value * x, value * y,
        value * value, guide.double())) * m  # 11 H W
    terms = pad(terms, (1, -width % stage.CELL, 1, -height % stage.CELL))
    return terms.cumsum(1).cumsum(2)[:, ::stage.CELL, ::stage.CELL]


def _fit(sums: torch.Tensor, radius: int, least: torch.Tensor) -> torch.Tensor:
    """Fit a plane to the window of every cell: d, ux, uy, variance and mean guide."""
    rows, columns = sums.shape[1] - 1, sums.shape[2] - 1
    row, column = (torch.arange(side, device=sums.device) for side in (rows, columns))
    top, bottom = (row - radius).clamp(min=0), (row + radius + 1).clamp(max=rows)
    left, right = (column - radius).clamp(min=0), (column + radius + 1).clamp(max=columns)
    band = sums[:, bottom] - sums[:, top]  # 11 rows columns+1
    s = band[:, :, right] - band[:, :, left]  # 11 rows columns
    known = s[0] >= least
    weight = torch.where(known, s[0], 1)
    x, y, xx, xy, yy, d, xd, yd, dd, mean = s[1:] / weight
    xx, xy, yy = xx - x * x, xy - x * y, yy - y * y
    xd, yd, dd = xd - x * d, yd - y * d, dd - d * d
    known = known & (xx + yy - torch.hypot(xx - yy, 2 * xy) >= 2 * stage.LEAST_SPREAD)
    determinant = (xx + stage.RIDGE) * (yy + stage.RIDGE) - xy * xy
    ux = (xd * (yy + stage.RIDGE) - yd * xy) / determinant
    uy = (yd * (xx + stage.RIDGE) - xd * xy) / determinant
    variance = dd - 2 * (ux * xd + uy * yd) + ux * ux * xx + 2 * ux * uy * xy + uy * uy * yy
    # three parameters are taken from the data
    freedom = torch.where(known, weight - stage.USED_SHARE * least, 1)
    variance = variance.clamp(min=0) * weight / freedom
    middle_x, middle_y = stage.CELL * column + _CENTRE, stage.CELL * row[:, None] + _CENTRE
    value = d + ux * (middle_x - x) + uy * (middle_y - y)
    fits = torch.stack((value, ux, uy, variance, mean))
    nothing = fits.new_tensor((0, 0, 0, stage.NO_PLANE, 0))[:, None, None]
    return torch.where(known, fits, nothing)  # 5 rows columns


def _cells(like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return row, H 1, and column, W, of every pixel."""
    height, width = like.shape[-2:]
    return (torch.arange(height, device=like.device)[:, None],
            torch.arange(width, device=like.device))


def _fill(planes: torch.Tensor, cost: torch.Tensor, fits: torch.Tensor
          ) -> tuple[torch.Tensor, torch.Tensor]:
    """Give pixels without a plane that of the window around them, if that has one."""
    y, x = _cells(cost)
    value, ux, uy, variance, _ = fits[:, y // stage.CELL, x // stage.CELL]  # H W each
    value = value + ux * (x % stage.CELL - _CENTRE) + uy * (y % stage.CELL - _CENTRE)
    missing = (cost >= stage.NO_PLANE) & (variance < stage.NO_PLANE)
    return (torch.where(missing, torch.stack((value, ux, uy)), planes),
            torch.where(missing, variance, cost))


def _shiftable_windows(d, m, guide, fits, radius, sigma, shade):
    """Return for every pixel the cheapest of the nine windows `radius` cells apart."""
    y, x = _cells(d)
    rows, columns = fits.shape[1:]
    planes, cost = d.new_zeros((3, *d.shape)), torch.full_like(d, stage.NO_PLANE)
    for dy in (-radius, 0, radius):
        for dx in (-radius, 0, radius):
            r, c = y // stage.CELL + dy, x // stage.CELL + dx
            inside = (r >= 0) & (r < rows) & (c >= 0) & (c < columns)
            value, ux, uy, variance, mean = fits[
                :, r.clamp(0, rows - 1), c.clamp(0, columns - 1)]  # H W each
            right, low = x - stage.CELL * c - _CENTRE, y - stage.CELL * r - _CENTRE
            value = value + ux * right + uy * low
            misfit = (d - value).square().clamp(max=stage.MISFIT_CAP * sigma ** 2)
            total = variance + stage.MISFIT_SHARE * m * misfit + shade * (guide - mean).square()
            better = inside & (total < cost)
            planes = torch.where(better, torch.stack((value, ux, uy)), planes)
            cost = torch.where(better, total, cost)
    return planes, cost


def _refit_thin_structures(d, m, sigma, planes, cost):
    """Refit where a few neighbours agree with a measurement and not with its plane."""
    far, close = stage.FAR * sigma, stage.CLOSE * sigma
    count = torch.zeros_like(d)
    sums = torch.zeros((9, *d.shape), dtype=torch.float64, device=d.device)
    for dy in range(-2, 3):
        for dx in range(-2, 3):
            value, weight = neighbour(d, dy, dx), neighbour(m, dy, dx)
            predicted = planes[0] + planes[1] * dx + planes[2] * dy
            agrees = (weight > 0) & ((value - d).abs() < close) & (
                (value - predicted).abs() > close)
            w, off = torch.where(agrees, weight, 0).double(), (value - d).double()
            count += agrees
            sums += torch.stack((w, w * dx, w * dy, w * off, w * dx * dx, w * dx * dy,
                                 w * dy * dy, w * dx * off, w * dy * off))
    # the pixel itself is among those that agree
    refit = (m > 0) & ((d - planes[0]).abs() > far) & (count > stage.LEAST_AGREE)
    ax, ay, ad, xx, xy, yy, xd, yd = sums[1:] / torch.where(refit, sums[0], 1)
    xx, xy, yy = xx - ax * ax + stage.FLAT, xy - ax * ay, yy - ay * ay + stage.FLAT
    xd, yd = xd - ax * ad, yd - ay * ad
    determinant = xx * yy - xy * xy
    ux, uy = (xd * yy - yd * xy) / determinant, (yd * xx - xd * xy) / determinant
    found = torch.stack((d + ad - ux * ax - uy * ay, ux, uy)).to(d.dtype)
    return torch.where(refit, found, planes), torch.where(refit, sigma ** 2, cost)
