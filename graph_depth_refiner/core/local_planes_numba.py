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

import math

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
    most_run,
    spread_run,
    store_run,
)
from graph_depth_refiner.core.local_planes import DISC, FADE, RADIUS, REACH, RIDGE, TURN, WIDTH
from graph_depth_refiner.core.rows_numba import padded, wide_enough

_RIDGE, _WIDTH = np.float32(RIDGE), np.float32(WIDTH)
_NOTHING = np.float32(1e-12)
_TURN = np.float32(TURN)
_STEPS = np.arange(-RADIUS, RADIUS + 1)
_TABLE = np.exp(-0.5 * (_STEPS[:, None] ** 2 + _STEPS ** 2) / (FADE * RADIUS) ** 2).astype(
    np.float32)
# pixels of the disc on either side of the middle of each row
_SIDES = np.array([math.isqrt(DISC - dy * dy) for dy in range(-RADIUS, RADIUS + 1)])


def first_slopes(d: np.ndarray, weight: np.ndarray, sigma: np.ndarray) -> np.ndarray:
    """Return slopes, 2 H W: of both sides where they agree, else of the flatter side."""
    columns = d.shape[1]
    d, weight, sigma = wide_enough(d, weight, sigma)
    z, w = padded(REACH, d, weight)
    slopes = np.empty((2, *d.shape), np.float32)
    _first_slopes(z, w, sigma, slopes)
    return np.ascontiguousarray(slopes[:, :, :columns])


@njit(parallel=True, **FUSED)
def _first_slopes(z, w, sigma, slopes):
    height, width = sigma.shape
    zero, half, turn = spread_run(ZERO), spread_run(np.float32(0.5)), spread_run(_TURN)
    for y in prange(height):
        for start in range(0, width, LANES):
            first = min(start, width - LANES)
            x = U(first)
            known = less_run(zero, load_run(w[y + REACH], U(first + REACH)))
            for axis in range(2):
                before, has_before = _slope_of_side(z, w, y, first, axis, -1)
                after, has_after = _slope_of_side(z, w, y, first, axis, 1)
                flatter = choose_run(
                    less_run(abs_run(before), abs_run(after)), before, after)
                alike = less_run(abs_run(before - after), turn * load_run(sigma[y], x))
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


def fit_local_planes(d: np.ndarray, weight: np.ndarray, sigma: np.ndarray, slopes: np.ndarray,
                     every: int) -> np.ndarray:
    """
    Return the plane, 3 H W, fitted around every pixel whose weight is not 0.

    It is fitted to every pixel of the window, or, 2, to those of a colour of a chessboard.
    """
    columns = d.shape[1]
    d, weight, sigma, slopes = wide_enough(d, weight, sigma, slopes)
    z, w = padded(RADIUS, d, weight)
    planes = np.empty((3, *d.shape), np.float32)
    _fit(z, w, sigma, slopes, _TABLE, every, planes)
    return np.ascontiguousarray(planes[:, :, :columns])


@njit(parallel=True, **FUSED)
def _fit(z, w, sigma, slopes, table, every, planes):
    height, width = sigma.shape
    for y in prange(height):
        for start in range(0, width, LANES):
            first = min(start, width - LANES)
            if every == 1:  # said twice, so that the loops over the window are unrolled
                _fit_run(z, w, sigma, slopes, table, 1, planes, y, first)
            else:
                _fit_run(z, w, sigma, slopes, table, 2, planes, y, first)


@njit(**INLINE)
def _fit_run(z, w, sigma, slopes, table, every, planes, y, first):
    zero = spread_run(ZERO)
    x, middle = U(first), U(first + RADIUS)
    here = load_run(z[y + RADIUS], middle)
    ux, uy = load_run(slopes[0, y], x), load_run(slopes[1, y], x)
    inverse = inverse_run(
        spread_run(_WIDTH) * most_run(load_run(sigma[y], x), spread_run(_NOTHING)))
    inverse = inverse * inverse
    # sums of weights, offsets, and what is off the own plane
    n, sx, sy, so = zero, zero, zero, zero
    sxx, sxy, syy, sxo, syo = zero, zero, zero, zero, zero
    for v in range(2 * RADIUS + 1):
        dy = spread_run(np.float32(v - RADIUS))
        zr, wr = z[y + v], w[y + v]
        plane = here + uy * dy
        # of the row: the same sums, pixels on both sides taken together
        row, row_o, row_x, row_xx, row_xo = zero, zero, zero, zero, zero
        aside = (v + RADIUS) % every
        if aside == 0:
            off = load_run(zr, middle) - plane
            row = _closeness(off, inverse) * load_run(wr, middle) * spread_run(table[v, RADIUS])
            row_o = row * off
        for step in range(aside if aside else every, _SIDES[v] + 1, every):
            left, right, dx = U(middle - U(step)), U(middle + U(step)), np.float32(step)
            rise, share = ux * spread_run(dx), spread_run(table[v, RADIUS + step])
            before = load_run(zr, left) - plane + rise
            after = load_run(zr, right) - plane - rise
            a = _closeness(before, inverse) * load_run(wr, left) * share
            b = _closeness(after, inverse) * load_run(wr, right) * share
            ao, bo = a * before, b * after
            row, row_o = row + (a + b), row_o + (ao + bo)
            row_x = row_x + spread_run(dx) * (b - a)
            row_xx = row_xx + spread_run(dx * dx) * (a + b)
            row_xo = row_xo + spread_run(dx) * (bo - ao)
        n, sx, so, sxx, sxo = n + row, sx + row_x, so + row_o, sxx + row_xx, sxo + row_xo
        sy, sxy, syo = sy + dy * row, sxy + dy * row_x, syo + dy * row_o
        syy = syy + dy * dy * row
    share = inverse_run(n + spread_run(_NOTHING))
    mx, my, mo = sx * share, sy * share, so * share
    xx, yy, xy = sxx * share - mx * mx, syy * share - my * my, sxy * share - mx * my
    xd = sxo * share - mx * mo + ux * xx + uy * xy
    yd = syo * share - my * mo + ux * xy + uy * yy
    xx, yy = xx + spread_run(_RIDGE), yy + spread_run(_RIDGE)
    scale = inverse_run(xx * yy - xy * xy)
    px, py = (xd * yy - yd * xy) * scale, (yd * xx - xd * xy) * scale
    known = less_run(zero, load_run(w[y + RADIUS], middle))
    value = here + mo - (px - ux) * mx - (py - uy) * my
    store_run(planes[0, y], x, choose_run(known, value, zero))
    store_run(planes[1, y], x, choose_run(known, px, zero))
    store_run(planes[2, y], x, choose_run(known, py, zero))


@njit(**INLINE)
def _closeness(off, inverse):
    """Return Tukey's biweight of what is off a plane; `inverse` is of its squared width."""
    a = most_run(spread_run(ONE) - off * off * inverse, spread_run(ZERO))
    return a * a
