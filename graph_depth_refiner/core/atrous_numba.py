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
"""Edge-avoiding a-trous smoothing of planes: the kernel for a CPU."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.atrous import (
    APART,
    ASIDE,
    FADE,
    RADIUS,
    RIDGE,
    SLOPE_SHARE,
    VALUE_SHARE,
)
from graph_depth_refiner.core.jit.options import FUSED, INLINE, ONE, U, ZERO
from graph_depth_refiner.core.jit.simd import (
    choose_run,
    inverse_run,
    LANES,
    less_run,
    load_run,
    most_run,
    spread_run,
    store_run,
)
from graph_depth_refiner.core.rows_numba import padded, wide_enough

_NOTHING, _HALF_ROOT = np.float32(1e-12), np.float32(0.5 ** 0.5)
_STEPS = np.arange(-RADIUS, RADIUS + 1)
_TABLE = np.exp(-0.5 * (_STEPS[:, None] ** 2 + _STEPS ** 2) / FADE ** 2).astype(np.float32)


def atrous_pass(planes: np.ndarray, weight: np.ndarray, width: np.ndarray, spacing: int
                ) -> np.ndarray:
    """
    Return planes, 3 H W, after one pass with samples so many pixels apart.

    weight, H W, is 0 where a plane stays as it is; width, H W, the inverse depth beyond which
    a pixel is of another surface.
    """
    columns = weight.shape[1]
    planes, weight, width = wide_enough(planes, weight, width)
    around = padded(RADIUS * spacing, *planes, weight)
    smooth = np.empty((3, *weight.shape), np.float32)
    _pass(around, width, spacing, _TABLE, smooth)
    return np.ascontiguousarray(smooth[:, :, :columns])


@njit(parallel=True, **FUSED)
def _pass(around, width, spacing, table, smooth):
    height, wide = width.shape
    reach, apart = RADIUS * spacing, np.float32(spacing)
    zero = spread_run(ZERO)
    for y in prange(height):
        for start in range(0, wide, LANES):
            first = min(start, wide - LANES)
            x, at = U(first), U(first + reach)
            here = load_run(around[0, y + reach], at)
            # slopes and sums in spacings, not pixels
            ux = spread_run(apart) * load_run(around[1, y + reach], at)
            uy = spread_run(apart) * load_run(around[2, y + reach], at)
            inverse = inverse_run(most_run(load_run(width[y], x), spread_run(_NOTHING)))
            inverse = inverse * inverse
            # sums of weights, offsets, and what is off the own plane
            n, full, sx, sy, so = zero, zero, zero, zero, zero
            sxx, sxy, syy, sxo, syo = zero, zero, zero, zero, zero
            for v in range(2 * RADIUS + 1):
                dy = spread_run(np.float32(v - RADIUS))
                row = y + v * spacing
                zr, wr = around[0, row], around[3, row]
                plane = here + uy * dy
                fall = spread_run(apart) * dy
                off = load_run(zr, at) - plane
                back = load_run(zr, at) - here - load_run(around[2, row], at) * fall
                all_n = load_run(wr, at) * spread_run(table[v, RADIUS])
                row_n = _closeness(off, back, inverse) * all_n
                # of the row: the same sums, pixels on both sides taken together
                row_o, row_x, row_xx, row_xo = row_n * off, zero, zero, zero
                for step in range(1, RADIUS + 1):
                    away = U(step * spacing)
                    dx, share = np.float32(step), spread_run(table[v, RADIUS + step])
                    left, right = at - away, at + away
                    before, w = _off(around, row, left, plane, here, ux, fall, -dx, apart)
                    a = load_run(wr, left) * share
                    b = load_run(wr, right) * share
                    all_n = all_n + (a + b)
                    a = a * _closeness(before, w, inverse)
                    after, w = _off(around, row, right, plane, here, ux, fall, dx, apart)
                    b = b * _closeness(after, w, inverse)
                    ao, bo = a * before, b * after
                    row_n, row_o = row_n + (a + b), row_o + (ao + bo)
                    row_x = row_x + spread_run(dx) * (b - a)
                    row_xx = row_xx + spread_run(dx * dx) * (a + b)
                    row_xo = row_xo + spread_run(dx) * (bo - ao)
                full = full + all_n
                n, sx, so, sxx, sxo = n + row_n, sx + row_x, so + row_o, sxx + row_xx, sxo + row_xo
                sy, sxy, syo = sy + dy * row_n, sxy + dy * row_x, syo + dy * row_o
                syy = syy + dy * dy * row_n
            share = inverse_run(n + spread_run(_NOTHING))
            mx, my, mo = sx * share, sy * share, so * share
            ridge = spread_run(np.float32(RIDGE))
            xx, yy = sxx * share - mx * mx + ridge, syy * share - my * my + ridge
            xy = sxy * share - mx * my
            xo, yo = sxo * share - mx * mo, syo * share - my * mo
            scale = inverse_run(xx * yy - xy * xy)
            # what the slopes change by
            px, py = (xo * yy - yo * xy) * scale, (yo * xx - xo * xy) * scale
            counts = n * inverse_run(full + spread_run(_NOTHING))
            own = less_run(zero, load_run(around[3, y + reach], at))
            counts = choose_run(own, counts, zero)
            value, slope = _rising(counts, VALUE_SHARE), _rising(counts, SLOPE_SHARE)
            per_pixel = slope * spread_run(ONE / apart)
            store_run(smooth[0, y], x, here + value * (mo - px * mx - py * my))
            store_run(smooth[1, y], x, load_run(around[1, y + reach], at) + per_pixel * px)
            store_run(smooth[2, y], x, load_run(around[2, y + reach], at) + per_pixel * py)


@njit(**INLINE)
def _off(around, row, at, plane, here, ux, fall, dx, apart):
    """Return what samples of a row are off the plane of the centre, and it off theirs."""
    value, rise = load_run(around[0, row], at), spread_run(dx)
    back = value - here - load_run(around[1, row], at) * spread_run(dx * apart) \
        - load_run(around[2, row], at) * fall
    return value - plane - ux * rise, back


@njit(**INLINE)
def _closeness(off, back, inverse):
    """Return Tukey's biweight of the worse of both; `inverse` is of its squared width."""
    a = spread_run(ONE) - most_run(off * off, back * back) * inverse
    a = most_run(a, spread_run(ZERO))
    return a * a


@njit(**INLINE)
def _rising(share, limits):
    """Return 0 below the first limit, 1 beyond the second, linear between."""
    zero, one = spread_run(ZERO), spread_run(ONE)
    part = (share - spread_run(np.float32(limits[0]))) \
        * spread_run(np.float32(1 / (limits[1] - limits[0])))
    part = choose_run(less_run(zero, part), part, zero)
    return choose_run(less_run(part, one), part, one)


def plane_mismatch(planes: np.ndarray, weight: np.ndarray, sigma: np.ndarray, spacing: int
                   ) -> np.float32:
    """
    Return how the mismatch of planes, 3 H W, changes over the image, in deviations sigma, H W.

    A mismatch is how wrongly two planes one or two spacings apart predict each other. It is
    compared with that aside, where all four have a weight, H W; of samples the lower quartile.
    """
    rows, columns = (-(-side // APART) for side in weight.shape)
    found = np.empty(4 * rows * columns, np.float32)
    return np.float32(_lower_quartile(planes, weight, sigma, spacing, found))


@njit(**FUSED)
def _lower_quartile(planes, weight, sigma, spacing, found):
    height, width = weight.shape
    count = 0
    for y in range(0, height, APART):
        for x in range(0, width, APART):
            for way in range(4):
                far = spacing * (1 + way // 2)
                dy, dx = (far, 0) if way % 2 else (0, far)
                v, u = y + ASIDE * APART, x + ASIDE * APART
                if v + dy < height and u + dx < width and min(
                        weight[y, x], weight[y + dy, x + dx],
                        weight[v, u], weight[v + dy, u + dx]) > ZERO:
                    e, f = _mismatch(planes, y, x, dy, dx)
                    g, h = _mismatch(planes, v, u, dy, dx)
                    found[count] = _HALF_ROOT * max(abs(e - g), abs(f - h)) / max(
                        sigma[y, x], _NOTHING)
                    count += 1
    if count == 0:
        return ZERO
    return np.partition(found[:count], count // 4)[count // 4]


@njit(**INLINE)
def _mismatch(planes, y, x, dy, dx):
    """Return how far a value is from what the plane of another pixel predicts, and vice versa."""
    v, u, down, across = y + dy, x + dx, np.float32(dy), np.float32(dx)
    off = planes[0, v, u] - planes[0, y, x]
    return (off - planes[1, y, x] * across - planes[2, y, x] * down,
            off - planes[1, v, u] * across - planes[2, v, u] * down)
