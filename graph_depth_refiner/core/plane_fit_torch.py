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
"""Plane start: for every pixel the best of the planes fitted in windows around it."""

from __future__ import annotations

import numpy as np

from graph_depth_refiner.core.plane_fit import (
    CELL,
    CLOSE,
    FAR,
    FLAT,
    LEAST_AGREE,
    LEAST_PIXELS,
    LEAST_SPREAD,
    NONE,
    OWN_CAP,
    OWN_SHARE,
    RIDGE,
    SHADE_SHARE,
    SPENT,
)


def fit_planes(d: np.ndarray, m: np.ndarray, guide: np.ndarray, sigma: float,
                 window_radii: tuple[int, ...], wide_window_bonus: float,
                 color_sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return planes 3 H W and their cost H W from the measurement alone."""
    sums = _integral(d, m, guide)  # 11 rows+1 columns+1
    least = LEAST_PIXELS * sums[0, -1, -1] / max(1, np.count_nonzero(m))
    shade = SHADE_SHARE * sigma ** 2 / color_sigma ** 2
    planes, cost = np.zeros((3, *d.shape), np.float32), np.full(d.shape, NONE, np.float32)
    for k, radius in enumerate(window_radii):
        found, its = _shiftable_windows(d, m, guide, _fit(sums, radius, least), radius, sigma, shade)
        better = its < cost * np.float32(1 / wide_window_bonus if k else 1)
        planes, cost = np.where(better, found, planes), np.where(better, its, cost)
    radius = max(window_radii)
    while cost.max() >= NONE and radius < sums.shape[1] + sums.shape[2]:  # in a large hole
        radius *= 2
        fill(planes, cost, _fit(sums, radius, least))
    _refit_thin_structures(d, m, sigma, planes, cost)
    return planes.astype(np.float32), cost.astype(np.float32)


def fill(planes: np.ndarray, cost: np.ndarray, fits: np.ndarray) -> None:
    """Give pixels without a plane that of the window around them, if that has one."""
    y, x = np.nonzero(cost >= NONE)
    fit = fits[:, y // CELL, x // CELL]  # 6 N
    here = fit[3] < NONE
    y, x, fit = y[here], x[here], fit[:, here]
    centre = 0.5 * (CELL - 1)
    planes[1:, y, x] = fit[1:3]
    planes[0, y, x] = fit[0] + fit[1] * (x % CELL - centre) + fit[2] * (y % CELL - centre)
    cost[y, x] = fit[3]


def _integral(d: np.ndarray, m: np.ndarray, guide: np.ndarray) -> np.ndarray:
    """Integrate the moments of all pixels up to each corner of a cell."""
    height, width = d.shape
    y, x = np.mgrid[:height, :width].astype(float)
    one, value = m.astype(float), d.astype(float)
    terms = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y, value, value * x, value * y,
                      value * value, guide]) * one  # 11 H W
    terms = np.pad(terms, ((0, 0), (1, -height % CELL), (1, -width % CELL)))
    return terms.cumsum(1).cumsum(2)[:, ::CELL, ::CELL]


def _fit(sums: np.ndarray, radius: int, least: float) -> np.ndarray:
    """Fit a plane to the window of every cell: d, ux, uy, variance, mean guide, weight."""
    rows, columns = sums.shape[1] - 1, sums.shape[2] - 1
    row, column = np.arange(rows), np.arange(columns)
    top, bottom = np.maximum(row - radius, 0), np.minimum(row + radius + 1, rows)
    left, right = np.maximum(column - radius, 0), np.minimum(column + radius + 1, columns)
    s = (sums[:, bottom][:, :, right] - sums[:, top][:, :, right]
         - sums[:, bottom][:, :, left] + sums[:, top][:, :, left])  # 11 rows columns
    known = s[0] >= least
    weight = np.where(known, s[0], 1)
    x, y, xx, xy, yy, d, xd, yd, dd, mean = s[1:] / weight
    xx, xy, yy = xx - x * x, xy - x * y, yy - y * y
    xd, yd, dd = xd - x * d, yd - y * d, dd - d * d
    known &= xx + yy - np.hypot(xx - yy, 2 * xy) >= 2 * LEAST_SPREAD
    determinant = (xx + RIDGE) * (yy + RIDGE) - xy * xy
    ux = (xd * (yy + RIDGE) - yd * xy) / determinant
    uy = (yd * (xx + RIDGE) - xd * xy) / determinant
    variance = dd - 2 * (ux * xd + uy * yd) + ux * ux * xx + 2 * ux * uy * xy + uy * uy * yy
    variance = np.maximum(variance, 0) * weight / (weight - np.where(known, SPENT * least, 0))
    centre = 0.5 * (CELL - 1)
    here = (d + ux * (CELL * column + centre - x)
            + uy * ((CELL * row + centre)[:, None] - y))
    variance = np.where(known, variance, NONE)
    return np.stack([here, ux, uy, variance, mean, s[0]]).astype(np.float32)


def _shiftable_windows(d, m, guide, fits, radius, sigma, shade):
    """Return for every pixel the cheapest of the nine windows `reach` cells apart."""
    height, width = d.shape
    y, x = np.arange(height)[:, None], np.arange(width)
    centre = np.float32(0.5 * (CELL - 1))
    planes, cost = np.zeros((3, *d.shape), np.float32), np.full(d.shape, NONE, np.float32)
    for dy in (-radius, 0, radius):
        for dx in (-radius, 0, radius):
            r, c = y // CELL + dy, x // CELL + dx
            inside = (r >= 0) & (r < fits.shape[1]) & (c >= 0) & (c < fits.shape[2])
            fit = fits[:, np.clip(r, 0, fits.shape[1] - 1), np.clip(c, 0, fits.shape[2] - 1)]
            plane = fit[0] + fit[1] * (x - CELL * c - centre) + fit[2] * (y - CELL * r - centre)
            own = OWN_SHARE * m * np.minimum((d - plane) ** 2, OWN_CAP * sigma ** 2)
            total = np.where(inside, fit[3] + own + shade * (guide - fit[4]) ** 2, NONE)
            better = total < cost
            planes = np.where(better, np.stack([plane, fit[1], fit[2]]), planes)
            cost = np.where(better, total, cost)
    return planes, cost


def _refit_thin_structures(d, m, sigma, planes, cost):
    """Refit where a few neighbours agree with a measurement and not with its plane."""
    y, x = np.nonzero((m > 0) & (np.abs(d - planes[0]) > FAR * sigma))
    value, plane = d[y, x].astype(float), planes[:, y, x]  # N, 3 N
    sums = np.zeros((10, y.size))  # count, then moments of the agreeing ones
    for dy in range(-2, 3):
        for dx in range(-2, 3):
            v, u = y + dy, x + dx
            inside = (v >= 0) & (v < d.shape[0]) & (u >= 0) & (u < d.shape[1])
            v, u = np.clip(v, 0, d.shape[0] - 1), np.clip(u, 0, d.shape[1] - 1)
            off = d[v, u] - value
            there = plane[0] + plane[1] * dx + plane[2] * dy
            agrees = inside & (m[v, u] > 0) & (np.abs(off) < CLOSE * sigma) & (
                np.abs(d[v, u] - there) > CLOSE * sigma)
            w = np.where(agrees, m[v, u], 0)
            one = np.ones_like(off)
            sums += np.stack([agrees * one, w, w * dx, w * dy, w * off, w * dx * dx,
                              w * dx * dy, w * dy * dy, w * dx * off, w * dy * off])
    enough = sums[0] > LEAST_AGREE  # the pixel itself is among them
    y, x, value, (_, s, *moments) = y[enough], x[enough], value[enough], sums[:, enough]
    ax, ay, ad, xx, xy, yy, xd, yd = (one / s for one in moments)
    xx, xy, yy = xx - ax * ax + FLAT, xy - ax * ay, yy - ay * ay + FLAT
    xd, yd = xd - ax * ad, yd - ay * ad
    determinant = xx * yy - xy * xy
    ux, uy = (xd * yy - yd * xy) / determinant, (yd * xx - xd * xy) / determinant
    planes[:, y, x] = np.stack([value + ad - ux * ax - uy * ay, ux, uy])
    cost[y, x] = sigma ** 2
