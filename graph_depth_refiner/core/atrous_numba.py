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
    spread_run,
    store_run,
)

_NOTHING, _HALF_ROOT = np.float32(1e-12), np.float32(0.5 ** 0.5)
_SIZE = 2 * RADIUS + 1
_STEPS = np.arange(-RADIUS, RADIUS + 1)
_TABLE = np.exp(-0.5 * (_STEPS[:, None] ** 2 + _STEPS ** 2) / FADE ** 2).astype(np.float32)


def atrous_pass(planes: np.ndarray, weight: np.ndarray, width: np.ndarray, spacing: int
                ) -> np.ndarray:
    """
    Return planes, 3 H W, after one pass with samples so many pixels apart.

    weight, H W, is 0 where a plane stays as it is; width, H W, the inverse depth beyond which
    a pixel is of another surface.
    """
    height, columns = weight.shape
    wide, reach = -(-columns // LANES) * LANES, RADIUS * spacing
    padded = np.zeros((5, height + 2 * reach, wide + 2 * reach), np.float32)
    inside = padded[:, reach:reach + height, reach:reach + columns]
    inside[:3], inside[3] = planes, weight
    inside[4] = ONE / np.maximum(width, _NOTHING)
    smooth = np.empty((3, height, wide), np.float32)
    _pass(padded, spacing, _TABLE, smooth)
    return np.ascontiguousarray(smooth[:, :, :columns])


@njit(parallel=True, **FUSED)
def _pass(padded, spacing, table, smooth):
    height, wide = smooth.shape[1:]
    reach = RADIUS * spacing
    zero, one = spread_run(ZERO), spread_run(ONE)
    ridge = spread_run(np.float32(RIDGE * spacing * spacing))
    for y in prange(height):
        for first in range(0, wide, LANES):
            at = U(first + reach)
            here = load_run(padded[0, y + reach], at)
            ux, uy = load_run(padded[1, y + reach], at), load_run(padded[2, y + reach], at)
            own, inverse = load_run(padded[3, y + reach], at), load_run(padded[4, y + reach], at)
            n, full, sx, sy, sd = zero, zero, zero, zero, zero
            sxx, sxy, syy, sxd, syd = zero, zero, zero, zero, zero
            for v in range(_SIZE):
                row = y + v * spacing
                dy = spread_run(np.float32((v - RADIUS) * spacing))
                for u in range(_SIZE):
                    x = U(first + u * spacing)
                    dx = spread_run(np.float32((u - RADIUS) * spacing))
                    off = load_run(padded[0, row], x) - here
                    e = (off - ux * dx - uy * dy) * inverse
                    f = (off - load_run(padded[1, row], x) * dx
                         - load_run(padded[2, row], x) * dy) * inverse
                    e, f = e * e, f * f
                    a = one - choose_run(less_run(e, f), f, e)
                    a = choose_run(less_run(zero, a), a, zero)
                    w = load_run(padded[3, row], x) * spread_run(table[v, u])
                    full = full + w
                    a = a * a * w
                    ax, ay, ad = a * dx, a * dy, a * off
                    n, sx, sy, sd = n + a, sx + ax, sy + ay, sd + ad
                    sxx, sxy, syy = sxx + ax * dx, sxy + ax * dy, syy + ay * dy
                    sxd, syd = sxd + ad * dx, syd + ad * dy
            share = inverse_run(n + spread_run(_NOTHING))
            mx, my, md = sx * share, sy * share, sd * share
            xx, yy = sxx * share - mx * mx + ridge, syy * share - my * my + ridge
            xy = sxy * share - mx * my
            xd = sxd * share - mx * md + ridge * ux
            yd = syd * share - my * md + ridge * uy
            scale = inverse_run(xx * yy - xy * xy)
            px, py = (xd * yy - yd * xy) * scale, (yd * xx - xd * xy) * scale
            counts = n * inverse_run(full + spread_run(_NOTHING))
            counts = choose_run(less_run(zero, own), counts, zero)
            value, slope = _rising(counts, VALUE_SHARE), _rising(counts, SLOPE_SHARE)
            x = U(first)
            store_run(smooth[0, y], x, here + value * (md - px * mx - py * my))
            store_run(smooth[1, y], x, ux + slope * (px - ux))
            store_run(smooth[2, y], x, uy + slope * (py - uy))


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
