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
"""Planes fitted in shiftable windows: CPU kernels."""

from __future__ import annotations

import math

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.jit.options import FUSED, INLINE, U
from graph_depth_refiner.core.jit.simd import (
    choose_run,
    LANES,
    least_run,
    less_run,
    load_run,
    spread_run,
    store_run,
)
from graph_depth_refiner.core.plane_fit import (
    CELL,
    CLOSE,
    FAR,
    FLAT,
    GUIDE_SHARE,
    LEAST_AGREE,
    LEAST_PIXELS,
    LEAST_SPREAD,
    MISFIT_CAP,
    MISFIT_SHARE,
    NO_PLANE,
    RIDGE,
    USED_SHARE,
)

_SUMS = 11  # weight, x, y, xx, xy, yy, d, xd, yd, dd, guide
_FIT = 6  # d, ux, uy, variance, mean guide, weight
_NO_PLANE = np.float32(NO_PLANE)
_MIDDLE = np.float32(0.5 * (CELL - 1))


@njit(parallel=True, **FUSED)
def _integral(d, m, guide, sums):
    """Integrate the moments of cells: sums is _SUMS (rows + 1) (columns + 1), zero-edged."""
    height, width = d.shape
    rows, columns = sums.shape[1] - 1, sums.shape[2] - 1
    for row in prange(rows):
        first = np.int64(row) * CELL
        column_sums = np.zeros((_SUMS, columns * CELL))
        for y in range(first, min(first + CELL, height)):
            _add_row(d[y], m[y], guide[y], float(y), column_sums)
        total = np.zeros(_SUMS)
        for column in range(columns):
            for c in range(_SUMS):  # inside, as each has to wait for the one before it
                for x in range(column * CELL, column * CELL + CELL):
                    total[c] += column_sums[c, x]
                sums[c, row + 1, column + 1] = total[c]
    for c in prange(_SUMS):
        for row in range(1, rows):
            for column in range(columns + 1):
                sums[c, row + 1, column] += sums[c, row, column]


@njit(**INLINE)
def _add_row(d, m, guide, y, sums):
    """Add the moments of a row of pixels to those of their columns; d is 0 where m is."""
    s0, sx, sy, sxx, sxy, syy = sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]
    sd, sxd, syd, sdd, shade = sums[6], sums[7], sums[8], sums[9], sums[10]
    for k in range(U(d.size)):
        x, weight, value = float(k), float(m[k]), float(d[k])
        weight_x, weight_d = weight * x, weight * value
        s0[k] += weight
        sx[k] += weight_x
        sy[k] += weight * y
        sxx[k] += weight_x * x
        sxy[k] += weight_x * y
        syy[k] += weight * y * y
        sd[k] += weight_d
        sxd[k] += weight_d * x
        syd[k] += weight_d * y
        sdd[k] += weight_d * value
        shade[k] += weight * guide[k]


@njit(parallel=True, **FUSED)
def _fit(sums, radius, least, margin, fits):
    """Fit a plane to the window of every cell: fits is _FIT rows columns, with a margin."""
    rows, columns = sums.shape[1] - 1, sums.shape[2] - 1
    for row in prange(rows):
        y = np.int64(row)
        window = np.empty((_SUMS, columns))
        for c in range(_SUMS):
            _sum_windows(sums[c, max(0, y - radius)], sums[c, min(rows, y + radius + 1)], radius,
                         window[c])
        to = y + margin
        _fit_row(window, CELL * y + 0.5 * (CELL - 1), least, U(margin), fits[0, to],
                 fits[1, to], fits[2, to], fits[3, to], fits[4, to], fits[5, to])


@njit(**INLINE)
def _sum_windows(above, below, radius, window):
    """Take the sums of the windows of a row of cells from the integral above and below it."""
    columns = window.size
    inner = max(0, columns - radius)  # from here on a window ends at the border
    for column in range(U(inner)):
        right = column + U(radius + 1)
        window[column] = below[right] - above[right]
    window[inner:] = below[columns] - above[columns]
    for column in range(U(radius), U(columns)):
        left = column - U(radius)
        window[column] -= below[left] - above[left]


@njit(**INLINE)
def _fit_row(window, row, least, margin, fit_d, fit_x, fit_y, fit_variance, fit_guide, fit_weight):
    """Fit planes, as of the middle of their cells, to the sums of a row of windows."""
    w0, wx, wy, wxx, wxy, wyy = (
        window[0], window[1], window[2], window[3], window[4], window[5])
    wd, wxd, wyd, wdd, shade = window[6], window[7], window[8], window[9], window[10]
    for column in range(U(w0.size)):
        s0 = w0[column]
        scale = 1.0 / max(s0, least)
        x, y, d = wx[column] * scale, wy[column] * scale, wd[column] * scale
        xx, xy, yy = (wxx[column] * scale - x * x, wxy[column] * scale - x * y,
                      wyy[column] * scale - y * y)
        xd, yd, dd = (wxd[column] * scale - x * d, wyd[column] * scale - y * d,
                      wdd[column] * scale - d * d)
        axx, ayy = xx + RIDGE, yy + RIDGE
        determinant = 1.0 / (axx * ayy - xy * xy)
        ux = (xd * ayy - yd * xy) * determinant
        uy = (yd * axx - xd * xy) * determinant
        variance = dd - 2 * (ux * xd + uy * yd) + ux * ux * xx + 2 * ux * uy * xy \
            + uy * uy * yy
        # three parameters are taken from the data
        variance = max(variance, 0.0) * s0 / (max(s0, least) - USED_SHARE * least)
        spread = xx + yy - math.sqrt((xx - yy) * (xx - yy) + 4 * xy * xy)
        found = s0 >= least and spread >= 2 * LEAST_SPREAD
        right, low = CELL * float(column) + 0.5 * (CELL - 1) - x, row - y
        to = column + margin
        fit_d[to] = d + ux * right + uy * low if found else 0.0
        fit_x[to] = ux if found else 0.0
        fit_y[to] = uy if found else 0.0
        fit_variance[to] = variance if found else _NO_PLANE
        fit_guide[to] = shade[column] * scale if found else 0.0
        fit_weight[to] = s0 if found else 0.0


@njit(parallel=True, **FUSED)
def _select(d, m, guide, fits, window_radii, less, noise, shade, planes, cost):
    """Give every pixel the best of nine windows of each radius around it, the widest first."""
    height, width = d.shape
    room = fits.shape[3]
    for row in prange(height):
        y = np.int64(row)
        pixels, best = np.zeros((3, room), np.float32), np.empty((4, room), np.float32)
        for side in range(CELL):  # pixels at the same place of their cells
            count = (width - side + CELL - 1) // CELL
            for c in range(count):
                x = CELL * c + side
                pixels[0, c] = d[y, x]
                pixels[1, c] = np.float32(MISFIT_SHARE) * m[y, x]
                pixels[2, c] = guide[y, x]
            for first in range(0, count, LANES):
                _choose_window(
                    pixels, U(first), fits, y, side, window_radii, less, noise, shade, best)
            for c in range(count):
                x = CELL * c + side
                cost[y, x] = best[0, c]
                planes[0, y, x] = best[1, c]
                planes[1, y, x] = best[2, c]
                planes[2, y, x] = best[3, c]


@njit(**INLINE)
def _choose_window(pixels, first, fits, y, side, window_radii, less, noise, shade, best):
    """Choose a window for a run of cells: cost, d, ux and uy of the best go to `best`."""
    margin = window_radii[0]
    value, weight, grey = (
        load_run(pixels[0], first), load_run(pixels[1], first), load_run(pixels[2], first))
    cap, shades = spread_run(np.float32(MISFIT_CAP) * noise), spread_run(shade)
    none, zero = spread_run(_NO_PLANE), spread_run(np.float32(0))
    best_cost, best_d, best_x, best_y = none, zero, zero, zero
    for k in range(window_radii.size):
        least, least_d, least_x, least_y = none, zero, zero, zero
        for dy in range(-window_radii[k], window_radii[k] + 1, window_radii[k]):
            row = y // CELL + dy
            below = spread_run(np.float32(y - CELL * row) - _MIDDLE)
            fit = fits[k, :, U(row + margin)]
            for dx in range(-window_radii[k], window_radii[k] + 1, window_radii[k]):
                right = spread_run(np.float32(side - CELL * dx) - _MIDDLE)
                at = first + U(dx + margin)
                ux, uy = load_run(fit[1], at), load_run(fit[2], at)
                plane = load_run(fit[0], at) + ux * right + uy * below
                off, color_distance = value - plane, grey - load_run(fit[4], at)
                total = load_run(fit[3], at) + weight * least_run(off * off, cap) \
                    + shades * color_distance * color_distance
                better = less_run(total, least)
                least = choose_run(better, total, least)
                least_d = choose_run(better, plane, least_d)
                least_x = choose_run(better, ux, least_x)
                least_y = choose_run(better, uy, least_y)
        bonus = spread_run(less if k > 0 else np.float32(1))
        better = less_run(least, best_cost * bonus)
        best_cost = choose_run(better, least, best_cost)
        best_d = choose_run(better, least_d, best_d)
        best_x = choose_run(better, least_x, best_x)
        best_y = choose_run(better, least_y, best_y)
    store_run(best[0], first, best_cost)
    store_run(best[1], first, best_d)
    store_run(best[2], first, best_x)
    store_run(best[3], first, best_y)


@njit(inline='always')
def _agrees(other, weight, value, plane, px, py, close):
    """Tell whether a neighbour is close to a measurement and not to its plane."""
    predicted = plane[0] + plane[1] * px + plane[2] * py
    return weight > 0 and abs(other - value) < close and abs(other - predicted) > close


@njit(nogil=True, cache=True)
def _agreeing(d, m, y, x, plane, close):
    """Count the neighbours that agree."""
    height, width = d.shape
    count = 0
    for v in range(max(0, y - 2), min(height, y + 3)):
        for u in range(max(0, x - 2), min(width, x + 3)):
            count += _agrees(d[v, u], m[v, u], d[y, x], plane, u - x, v - y, close)
    return count


@njit(parallel=True, nogil=True, cache=True)
def _refit_thin_structures(d, m, sigma, planes, cost):
    """Refit where a few neighbours agree with a measurement and not with its plane."""
    height, width = d.shape
    far, close = np.float32(FAR) * sigma, np.float32(CLOSE) * sigma
    start = planes.copy()
    for row in prange(height):
        y = np.int64(row)  # prange counts unsigned
        for x in range(width):
            value = d[y, x]
            if m[y, x] <= 0 or abs(value - start[0, y, x]) <= far:
                continue
            near = start[0, y, x], start[1, y, x], start[2, y, x]
            if _agreeing(d, m, y, x, near, close) <= LEAST_AGREE:  # the pixel itself is one
                continue
            s, sx, sy, sd, sxx, sxy, syy, sxd, syd = 0., 0., 0., 0., 0., 0., 0., 0., 0.
            for v in range(max(0, y - 2), min(height, y + 3)):
                for u in range(max(0, x - 2), min(width, x + 3)):
                    px, py = u - x, v - y
                    if _agrees(d[v, u], m[v, u], value, near, px, py, close):
                        w, off = float(m[v, u]), float(d[v, u] - value)
                        s += w
                        sx += w * px
                        sy += w * py
                        sd += w * off
                        sxx += w * px * px
                        sxy += w * px * py
                        syy += w * py * py
                        sxd += w * px * off
                        syd += w * py * off
            ax, ay, ad = sx / s, sy / s, sd / s
            xx, xy, yy = sxx / s - ax * ax + FLAT, sxy / s - ax * ay, syy / s - ay * ay + FLAT
            xd, yd = sxd / s - ax * ad, syd / s - ay * ad
            determinant = xx * yy - xy * xy
            ux, uy = (xd * yy - yd * xy) / determinant, (yd * xx - xd * xy) / determinant
            planes[0, y, x] = value + ad - ux * ax - uy * ay
            planes[1, y, x] = ux
            planes[2, y, x] = uy
            cost[y, x] = np.float32(sigma * sigma)


def fit_planes(d: np.ndarray, m: np.ndarray, guide: np.ndarray, sigma: float,
               window_radii: tuple[int, ...], wide_window_bonus: float,
               color_sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return planes 3 H W and their cost H W from the measurement alone."""
    height, width = d.shape
    rows, columns = -(-height // CELL), -(-width // CELL)
    sums = np.empty((_SUMS, rows + 1, columns + 1))
    sums[:, 0] = 0
    sums[:, :, 0] = 0
    _integral(d, m, guide, sums)
    typical = sums[0, -1, -1] / max(1, np.count_nonzero(m))
    margin = window_radii[0]  # the widest; beyond the image there are no planes
    padded = np.zeros(
        (len(window_radii), _FIT, rows + 2 * margin, columns + 2 * margin + LANES), np.float32)
    padded[:, 3] = _NO_PLANE
    for k, radius in enumerate(window_radii):
        _fit(sums, radius, LEAST_PIXELS * typical, margin, padded[k])
    planes = np.empty((3, height, width), np.float32)
    cost = np.empty((height, width), np.float32)
    noise = sigma * sigma
    _select(d, m, guide, padded, np.array(window_radii), np.float32(1 / wide_window_bonus),
            np.float32(noise), np.float32(GUIDE_SHARE * noise / color_sigma ** 2), planes, cost)
    radius = margin
    while cost.max() >= _NO_PLANE and radius < rows + columns:  # inside a large hole
        radius *= 2
        _fit(sums, radius, LEAST_PIXELS * typical, margin, padded[0])
        _fill(planes, cost, padded[0, :, margin:margin + rows, margin:margin + columns])
    _refit_thin_structures(d, m, np.float32(sigma), planes, cost)
    np.copyto(planes[0], d, where=(planes[0] <= 0) & (m > 0))
    return planes, cost


def _fill(planes: np.ndarray, cost: np.ndarray, fits: np.ndarray) -> None:
    """Give pixels without a plane that of the window around them, if that has one."""
    y, x = np.nonzero(cost >= NO_PLANE)
    fit = fits[:, y // CELL, x // CELL]  # 6 N
    found = fit[3] < NO_PLANE
    y, x, fit = y[found], x[found], fit[:, found]
    centre = 0.5 * (CELL - 1)
    planes[1:, y, x] = fit[1:3]
    planes[0, y, x] = fit[0] + fit[1] * (x % CELL - centre) + fit[2] * (y % CELL - centre)
    cost[y, x] = fit[3]
