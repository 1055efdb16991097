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
"""Plane start in fused kernels; the readable twin is `graph_depth_refiner.planes`."""

from __future__ import annotations

import math

from numba import njit, prange
import numpy as np

from graph_depth_refiner.fused.rows import FUSED, U
from graph_depth_refiner.planes import fill
from graph_depth_refiner.planes_rules import (
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

_SUMS = 11  # weight, x, y, xx, xy, yy, d, xd, yd, dd, guide
_FIT = 6  # d, ux, uy, variance, mean guide, weight
_NONE = np.float32(NONE)
_BLOCK = 64
TILE = 128  # cells that are chosen for together
_MIDDLE = np.float32(0.5 * (CELL - 1))
_OWN, _WEIGHT, _GREY, _BEST, _BEST_D, _BEST_X, _BEST_Y, _HERE, _HERE_D, _HERE_X, _HERE_Y = (
    U(k * TILE) for k in range(11))
_SCRATCH = 11 * TILE


@njit(parallel=True, nogil=True, cache=True)
def _integral(d, m, guide, sums):
    """Integrate the moments of cells: sums is (rows + 1) (columns + 1) _SUMS, zero-edged."""
    height, width = d.shape
    rows, columns = sums.shape[0] - 1, sums.shape[1] - 1
    for row in prange(rows):
        total = np.zeros(_SUMS)
        for column in range(columns):
            for y in range(CELL * row, min(CELL * row + CELL, height)):
                for x in range(CELL * column, min(CELL * column + CELL, width)):
                    weight = float(m[y, x])
                    if weight > 0.0:
                        value = float(d[y, x])
                        total[0] += weight
                        total[1] += weight * x
                        total[2] += weight * y
                        total[3] += weight * x * x
                        total[4] += weight * x * y
                        total[5] += weight * y * y
                        total[6] += weight * value
                        total[7] += weight * value * x
                        total[8] += weight * value * y
                        total[9] += weight * value * value
                        total[10] += weight * guide[y, x]
            for c in range(_SUMS):
                sums[row + 1, column + 1, c] = total[c]
    blocks = (columns + _BLOCK) // _BLOCK
    for block in prange(blocks):
        first = block * _BLOCK
        last = min(first + _BLOCK, columns + 1)
        for row in range(1, rows):
            for column in range(first, last):
                for c in range(_SUMS):
                    sums[row + 1, column, c] += sums[row, column, c]


@njit(parallel=True, nogil=True, cache=True)
def _fit(sums, reach, least, fits):
    """Fit a plane to the window of every cell: fits is _FIT rows columns."""
    rows, columns = sums.shape[0] - 1, sums.shape[1] - 1
    for row in prange(rows):
        s = np.empty(_SUMS)
        top, bottom = max(0, row - reach), min(rows, row + reach + 1)
        for column in range(columns):
            left, right = max(0, column - reach), min(columns, column + reach + 1)
            for c in range(_SUMS):
                s[c] = (sums[bottom, right, c] - sums[top, right, c]
                        - sums[bottom, left, c] + sums[top, left, c])
            scale = 1.0 / s[0] if s[0] >= least else 0.0
            x, y, d = s[1] * scale, s[2] * scale, s[6] * scale
            xx, xy, yy = s[3] * scale - x * x, s[4] * scale - x * y, s[5] * scale - y * y
            if xx + yy - math.sqrt((xx - yy) ** 2 + 4 * xy * xy) < 2 * LEAST_SPREAD:
                fits[0, row, column] = fits[1, row, column] = fits[2, row, column] = 0.0
                fits[3, row, column] = _NONE
                fits[4, row, column] = fits[5, row, column] = 0.0
                continue
            xd, yd, dd = s[7] * scale - x * d, s[8] * scale - y * d, s[9] * scale - d * d
            axx, ayy = xx + RIDGE, yy + RIDGE
            determinant = axx * ayy - xy * xy
            ux = (xd * ayy - yd * xy) / determinant
            uy = (yd * axx - xd * xy) / determinant
            variance = dd - 2 * (ux * xd + uy * yd) + ux * ux * xx + 2 * ux * uy * xy \
                + uy * uy * yy
            middle = 0.5 * (CELL - 1)
            fits[0, row, column] = (d + ux * (CELL * column + middle - x)
                                    + uy * (CELL * row + middle - y))
            fits[1, row, column] = ux
            fits[2, row, column] = uy
            # three parameters are taken from the data
            fits[3, row, column] = max(variance, 0.0) * s[0] / (s[0] - SPENT * least)
            fits[4, row, column] = s[10] * scale
            fits[5, row, column] = s[0]


@njit(parallel=True, **FUSED)
def _select(d, m, guide, fits, reaches, less, noise, shade, planes, cost):
    """Give every pixel the best of nine windows of each reach around it, the widest first."""
    for y in prange(d.shape[0]):
        t = np.empty(_SCRATCH, np.float32)
        for side in range(CELL):  # pixels at the same place of their cells
            for first in range(0, (d.shape[1] - side + CELL - 1) // CELL, TILE):
                _select_tile(d, m, guide, fits, reaches, less, noise, shade, np.int64(y), side,
                             first, t, planes, cost)


@njit(**FUSED)
def _select_tile(d, m, guide, fits, reaches, less, noise, shade, y, side, first, t, planes, cost):
    """Choose for a run of cells; all that is looked at more than once is in the scratch t."""
    count = U(min(TILE, (d.shape[1] - side + CELL - 1) // CELL - first))
    start = U(CELL * first + side)
    values, weights, greys = d[y], m[y], guide[y]
    for c in range(count):
        x = start + U(CELL) * c
        t[_OWN + c] = values[x]
        t[_WEIGHT + c] = np.float32(OWN_SHARE) * weights[x]
        t[_GREY + c] = greys[x]
        t[_BEST + c] = _NONE
        t[_BEST_D + c] = t[_BEST_X + c] = t[_BEST_Y + c] = np.float32(0)
    for k in range(reaches.size):
        for c in range(count):
            t[_HERE + c] = _NONE
            t[_HERE_D + c] = t[_HERE_X + c] = t[_HERE_Y + c] = np.float32(0)
        for dy in range(-reaches[k], reaches[k] + 1, reaches[k]):
            r = y // CELL + dy
            if 0 <= r < fits.shape[2]:
                for dx in range(-reaches[k], reaches[k] + 1, reaches[k]):
                    _compare(fits[k], r, dx, y - CELL * r, side, first, np.int64(count), noise,
                             shade, t)
        patient = less if k > 0 else np.float32(1)
        for c in range(count):
            better = t[_HERE + c] < t[_BEST + c] * patient
            t[_BEST + c] = t[_HERE + c] if better else t[_BEST + c]
            t[_BEST_D + c] = t[_HERE_D + c] if better else t[_BEST_D + c]
            t[_BEST_X + c] = t[_HERE_X + c] if better else t[_BEST_X + c]
            t[_BEST_Y + c] = t[_HERE_Y + c] if better else t[_BEST_Y + c]
    for c in range(count):
        x = start + U(CELL) * c
        cost[y, x] = t[_BEST + c]
        planes[0, y, x] = t[_BEST_D + c]
        planes[1, y, x] = t[_BEST_X + c]
        planes[2, y, x] = t[_BEST_Y + c]


@njit(**{**FUSED, 'forceinline': True})
def _compare(fits, r, dx, down, side, first, count, noise, shade, t):
    """Let the windows of a run of cells, moved by dx, stand against the best so far."""
    cap = np.float32(OWN_CAP) * noise
    right = np.float32(side - CELL * dx) - _MIDDLE
    below = np.float32(down) - _MIDDLE
    skip = max(0, -dx - first)
    end = min(count, fits.shape[2] - dx - first)
    at = U(first + dx + skip)
    value, ux, uy = fits[0, r], fits[1, r], fits[2, r]
    variance, mean = fits[3, r], fits[4, r]
    for i in range(U(max(0, end - skip))):
        c, f = U(skip) + i, at + i
        plane = value[f] + ux[f] * right + uy[f] * below
        off = t[_OWN + c] - plane
        unlike = t[_GREY + c] - mean[f]
        total = variance[f] + t[_WEIGHT + c] * min(off * off, cap) + shade * unlike * unlike
        better = total < t[_HERE + c]
        t[_HERE + c] = total if better else t[_HERE + c]
        t[_HERE_D + c] = plane if better else t[_HERE_D + c]
        t[_HERE_X + c] = ux[f] if better else t[_HERE_X + c]
        t[_HERE_Y + c] = uy[f] if better else t[_HERE_Y + c]


@njit(parallel=True, nogil=True, cache=True)
def _rescue(d, m, sigma, planes, cost):
    """Refit where a few neighbours agree with a measurement and not with its plane."""
    height, width = d.shape
    far, close = np.float32(FAR) * sigma, np.float32(CLOSE) * sigma
    start = planes.copy()
    for y in prange(height):
        for x in range(width):
            value = d[y, x]
            if m[y, x] <= 0 or abs(value - start[0, y, x]) <= far:
                continue
            count = 0
            s, sx, sy, sd, sxx, sxy, syy, sxd, syd = 0., 0., 0., 0., 0., 0., 0., 0., 0.
            for v in range(max(0, y - 2), min(height, y + 3)):
                for u in range(max(0, x - 2), min(width, x + 3)):
                    other = d[v, u]
                    px, py = u - x, v - y
                    plane = start[0, y, x] + start[1, y, x] * px + start[2, y, x] * py
                    if m[v, u] > 0 and abs(other - value) < close and abs(other - plane) > close:
                        count += 1
                        w, off = float(m[v, u]), float(other - value)
                        s += w
                        sx += w * px
                        sy += w * py
                        sd += w * off
                        sxx += w * px * px
                        sxy += w * px * py
                        syy += w * py * py
                        sxd += w * px * off
                        syd += w * py * off
            if count <= LEAST_AGREE:  # the pixel itself is among them
                continue
            ax, ay, ad = sx / s, sy / s, sd / s
            xx, xy, yy = sxx / s - ax * ax + FLAT, sxy / s - ax * ay, syy / s - ay * ay + FLAT
            xd, yd = sxd / s - ax * ad, syd / s - ay * ad
            determinant = xx * yy - xy * xy
            ux, uy = (xd * yy - yd * xy) / determinant, (yd * xx - xd * xy) / determinant
            planes[0, y, x] = value + ad - ux * ax - uy * ay
            planes[1, y, x] = ux
            planes[2, y, x] = uy
            cost[y, x] = np.float32(sigma * sigma)


def start_planes(d: np.ndarray, m: np.ndarray, guide: np.ndarray, sigma: float,
                 reaches: tuple[int, ...], patience: float,
                 likeness: float) -> tuple[np.ndarray, np.ndarray]:
    """Return planes 3 H W and their cost H W from the measurement alone."""
    height, width = d.shape
    rows, columns = -(-height // CELL), -(-width // CELL)
    sums = np.empty((rows + 1, columns + 1, _SUMS))
    sums[0] = 0
    sums[:, 0] = 0
    _integral(d, m, guide, sums)
    typical = sums[-1, -1, 0] / max(1, np.count_nonzero(m))
    fits = np.empty((len(reaches), _FIT, rows, columns), np.float32)
    for k, reach in enumerate(reaches):
        _fit(sums, reach, LEAST_PIXELS * typical, fits[k])
    planes = np.empty((3, height, width), np.float32)
    cost = np.empty((height, width), np.float32)
    noise = sigma * sigma
    _select(d, m, guide, fits, np.array(reaches), np.float32(1 / patience), np.float32(noise),
            np.float32(SHADE_SHARE * noise / likeness ** 2), planes, cost)
    reach = max(reaches)
    while cost.max() >= _NONE and reach < rows + columns:  # inside a large hole
        reach *= 2
        _fit(sums, reach, LEAST_PIXELS * typical, fits[0])
        fill(planes, cost, fits[0])
    _rescue(d, m, np.float32(sigma), planes, cost)
    return planes, cost
