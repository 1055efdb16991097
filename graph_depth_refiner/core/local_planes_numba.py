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
"""Planes by weighted least squares around every pixel: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.jit.options import FUSED, INLINE, ONE, U, ZERO
from graph_depth_refiner.core.jit.simd import (
    abs_run,
    choose_run,
    inverse_run,
    LANES,
    less_run,
    load_run,
    spread_run,
    store_run,
)
from graph_depth_refiner.core.local_planes import FADE, RADIUS, REACH, RIDGE, TURN, WIDTH

_RIDGE = np.float32(RIDGE)
_NOTHING = np.float32(1e-12)
_TURN = np.float32(TURN)
_STEPS = np.arange(-RADIUS, RADIUS + 1)
_TABLE = np.exp(-0.5 * (_STEPS[:, None] ** 2 + _STEPS ** 2) / (FADE * RADIUS) ** 2).astype(
    np.float32)


def first_slopes(d: np.ndarray, weight: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """Return slopes, 2 H W: of both sides where they agree, else of the flatter side."""
    (z, w), wide = _padded(d, weight, REACH)
    turn = np.zeros((len(d), wide), np.float32)
    turn[:, :d.shape[1]] = _TURN * sigma
    slopes = np.empty((2, *turn.shape), np.float32)
    _first_slopes(z, w, turn, slopes)
    return np.ascontiguousarray(slopes[:, :, :d.shape[1]])


def _padded(d: np.ndarray, weight: np.ndarray, margin: int) -> tuple[np.ndarray, int]:
    """Return both, 2 H W, with a margin of nothing around whole runs, and the width of these."""
    height, columns = d.shape
    wide = -(-columns // LANES) * LANES
    padded = np.zeros((2, height + 2 * margin, wide + 2 * margin), np.float32)
    inside = padded[:, margin:margin + height, margin:margin + columns]
    inside[0], inside[1] = d, weight
    return padded, wide


@njit(parallel=True, **FUSED)
def _first_slopes(z, w, turn, slopes):
    height, wide = turn.shape
    zero, half = spread_run(ZERO), spread_run(np.float32(0.5))
    for y in prange(height):
        for first in range(0, wide, LANES):
            x = U(first)
            known = less_run(zero, load_run(w[y + REACH], U(first + REACH)))
            for axis in range(2):
                before, has_before = _slope_of_side(z, w, y, first, axis, -1)
                after, has_after = _slope_of_side(z, w, y, first, axis, 1)
                flatter = choose_run(
                    less_run(abs_run(before), abs_run(after)), before, after)
                alike = less_run(abs_run(before - after), load_run(turn[y], x))
                slope = choose_run(alike, half * (before + after), flatter)
                slope = choose_run(has_before, choose_run(has_after, slope, before), after)
                store_run(slopes[axis, y], x, choose_run(known, slope, zero))


@njit(**INLINE)
def _slope_of_side(z, w, y, first, axis, way):
    """Return the slopes of what is known on one side, up to the first gap, and where any is."""
    here = load_run(z[y + REACH], U(first + REACH))
    total = spread_run(ZERO)
    squares, known = total, spread_run(ONE)
    for step in range(1, REACH + 1):
        row = y + REACH + way * step * axis
        x = U(first + REACH + way * step * (1 - axis))
        known = known * less_run(spread_run(ZERO), load_run(w[row], x))
        total = total + known * spread_run(np.float32(step)) * (load_run(z[row], x) - here)
        squares = squares + known * spread_run(np.float32(step * step))
    slope = spread_run(np.float32(way)) * total \
        * inverse_run(choose_run(squares, squares, spread_run(ONE)))
    return slope, squares


def fit_local_planes(d: np.ndarray, weight: np.ndarray, sigma: np.ndarray, slopes: np.ndarray
                     ) -> np.ndarray:
    """Return the plane, 3 H W, fitted around every pixel whose weight is not 0."""
    height, columns = d.shape
    padded, wide = _padded(d, weight, RADIUS)
    start = np.zeros((3, height, wide), np.float32)
    start[:2, :, :columns] = slopes
    start[2, :, :columns] = np.float32(1 / WIDTH) / np.maximum(sigma, _NOTHING)
    planes = np.empty((3, height, wide), np.float32)
    _fit(padded[0], padded[1], start, _TABLE, planes)
    return np.ascontiguousarray(planes[:, :, :columns])


@njit(parallel=True, **FUSED)
def _fit(z, w, start, table, planes):
    height, wide = planes.shape[1:]
    radius = (z.shape[0] - height) // 2
    size = 2 * radius + 1
    zero, one = spread_run(ZERO), spread_run(np.float32(1))
    for y in prange(height):
        own, own_weight = z[y + radius], w[y + radius]
        for first in range(0, wide, LANES):
            x = U(first)
            here = load_run(own, U(first + radius))
            ux, uy, inverse = (
                load_run(start[0, y], x), load_run(start[1, y], x), load_run(start[2, y], x))
            n, sx, sy, sd = zero, zero, zero, zero
            sxx, sxy, syy, sxd, syd = zero, zero, zero, zero, zero
            for v in range(size):
                dy = np.float32(v - radius)
                zr, wr = z[y + v], w[y + v]
                rise = uy * spread_run(dy)
                for u in range(size):
                    dx = np.float32(u - radius)
                    off = load_run(zr, U(first + u)) - here
                    e = (off - rise - ux * spread_run(dx)) * inverse
                    a = one - e * e
                    a = choose_run(less_run(zero, a), a, zero)
                    a = a * a * load_run(wr, U(first + u)) * spread_run(table[v, u])
                    ax, ay, ad = a * spread_run(dx), a * spread_run(dy), a * off
                    n, sx, sy, sd = n + a, sx + ax, sy + ay, sd + ad
                    sxx, sxy, syy = (
                        sxx + ax * spread_run(dx), sxy + ax * spread_run(dy),
                        syy + ay * spread_run(dy))
                    sxd, syd = sxd + ad * spread_run(dx), syd + ad * spread_run(dy)
            share = inverse_run(n + spread_run(_NOTHING))
            mx, my, md = sx * share, sy * share, sd * share
            xx, yy = (sxx * share - mx * mx + spread_run(_RIDGE),
                      syy * share - my * my + spread_run(_RIDGE))
            xy = sxy * share - mx * my
            xd, yd = sxd * share - mx * md, syd * share - my * md
            scale = inverse_run(xx * yy - xy * xy)
            px, py = (xd * yy - yd * xy) * scale, (yd * xx - xd * xy) * scale
            known = less_run(zero, load_run(own_weight, U(first + radius)))
            store_run(planes[0, y], x, choose_run(known, here + md - px * mx - py * my, zero))
            store_run(planes[1, y], x, choose_run(known, px, zero))
            store_run(planes[2, y], x, choose_run(known, py, zero))
