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
"""
Gradient of the regularisers and the ADAM update, one image row at a time.

Planes have a margin of the graph's reach on all sides; the row y of the image is their row
y + r. A pixel gathers what its own edges and the edges towards it ask for, so nobody writes
to another's place. Rows are taken in runs; the last run of a row overlaps the one before.
"""

from __future__ import annotations

from numba import njit
import numpy as np

from graph_depth_refiner.core.adam import BETA1, BETA2, EPSILON
from graph_depth_refiner.core.energy import REGULARISERS, SLOPE_SMOOTHING, SMOOTHING
from graph_depth_refiner.core.jit.options import INLINE, LIMIT, ONE, U, ZERO
from graph_depth_refiner.core.jit.simd import (
    abs_run,
    inside_run,
    inverse_root,
    inverse_run,
    LANES,
    less_run,
    load_run,
    root_run,
    spread_run,
    store_run,
    sum_run,
)
from graph_depth_refiner.core.patch_graph import window_of

PLANAR, NLTGV, NEIGHBOURHOOD = range(len(REGULARISERS))

SMOOTH = np.float32(SMOOTHING)
SMOOTH2 = np.float32(SMOOTHING * SMOOTHING)
SLOPE_SMOOTH = np.float32(SLOPE_SMOOTHING)
SLOPE_SMOOTH2 = np.float32(SLOPE_SMOOTHING * SLOPE_SMOOTHING)


def wide_enough(*arrays: np.ndarray) -> list[np.ndarray]:
    """Return arrays (... H W) of at least a run of columns; new ones are 0."""
    missing = LANES - arrays[0].shape[-1]
    if missing <= 0:
        return list(arrays)
    return [np.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, missing)]) for a in arrays]


def padded(margin: int, *maps: np.ndarray) -> np.ndarray:
    """Return maps, H W each, in one array with a margin of zeros around."""
    height, width = maps[0].shape
    room = np.empty((len(maps), height + 2 * margin, width + 2 * margin), np.float32)
    for part in (np.s_[:margin], np.s_[-margin:]):
        room[:, part] = room[:, :, part] = 0
    for one, inside in zip(maps, room[:, margin:-margin, margin:-margin]):
        inside[...] = one
    return room


def with_margin(x: np.ndarray, unit: float, r: int) -> np.ndarray:
    """Return the planes in noise units, with a margin of zeros."""
    height, width = x.shape[1:]
    z = np.zeros((3, height + 2 * r, width + 2 * r), np.float32)
    np.multiply(x, np.float32(1 / unit), out=z[:, r:r + height, r:r + width])
    return z


def for_graph(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return planes with the margin that the window of a graph, O H W, asks for."""
    return with_margin(x, 1.0, window_of(len(w)) // 2)


def without_margin(z: np.ndarray, unit: float, shape: tuple[int, int]) -> np.ndarray:
    """Return the planes in the scale of the input."""
    r = (z.shape[1] - shape[0]) // 2
    return z[:, r:r + shape[0], r:r + shape[1]] * np.float32(unit)  # 3 H W


@njit(**INLINE)
def step_to(o, edges, r):
    """Return dy and dx of the offset."""
    p = o if 2 * o < edges else o + 1
    return p // (2 * r + 1) - r, p % (2 * r + 1) - r


@njit(**INLINE)
def residual_norms(z, w, y, r, outgoing, inverse):
    """Invert the norms of the residuals of a row; store what its pixels add to their gradient."""
    width = w.shape[2]
    d, ux, uy = z[0, y + r], z[1, y + r], z[2, y + r]
    for start in range(0, width, LANES):
        x = min(start, width - LANES)
        s = U(x + r)
        di, ui, vi = load_run(d, s), load_run(ux, s), load_run(uy, s)
        squares = spread_run(SMOOTH2)
        total = spread_run(ZERO)
        total_x = total
        total_y = total
        o = 0
        for dy in range(-r, r + 1):
            dj = z[0, U(y + r + dy)]
            fy = spread_run(np.float32(dy))
            level = di + vi * fy
            part = spread_run(ZERO)
            for dx in range(-r, r + 1):
                if dy == 0 and dx == 0:
                    continue
                fx = spread_run(np.float32(dx))
                wij = load_run(w[U(o), U(y)], U(x))
                e = load_run(dj, U(x + r + dx)) - (level + ui * fx)
                c = wij * wij * e
                squares = squares + c * e
                part = part + c
                total_x = total_x + c * fx
                o += 1
            total = total + part
            total_y = total_y + part * fy
        n = inverse_root(squares)
        store_run(inverse, s, n)
        store_run(outgoing[0], s, total * n)
        store_run(outgoing[1], s, total_x * n)
        store_run(outgoing[2], s, total_y * n)


@njit(**INLINE)
def slope_norms(z, w, y, r, inverse):
    """Invert the norms of all slope differences of the pixels of a row."""
    width = w.shape[2]
    ux, uy = z[1, y + r], z[2, y + r]
    for start in range(0, width, LANES):
        x = min(start, width - LANES)
        s = U(x + r)
        ui, vi = load_run(ux, s), load_run(uy, s)
        squares = spread_run(SLOPE_SMOOTH2)
        for o in range(w.shape[0]):
            dy, dx = step_to(o, w.shape[0], r)
            wij = load_run(w[U(o), U(y)], U(x))
            ex = wij * (ui - load_run(z[1, U(y + r + dy)], U(x + r + dx)))
            ey = wij * (vi - load_run(z[2, U(y + r + dy)], U(x + r + dx)))
            squares = squares + (ex * ex + ey * ey)
        store_run(inverse, s, inverse_root(squares))


@njit(**INLINE)
def planar(z, w, y, r, alpha, outgoing, residual_norm, slope_norm, neighbourhood, g):
    """Gather the gradient of a row, given the inverse norms of the rows around it."""
    edges, height, width = w.shape
    rows = 2 * r + 1
    d, ux, uy = z[0, y + r], z[1, y + r], z[2, y + r]
    slope_norm_i = slope_norm[U(y % rows)]
    for start in range(0, width, LANES):
        x = min(start, width - LANES)
        s = U(x + r)
        at_border = x < r or x + LANES + r > width
        di, ui, vi = load_run(d, s), load_run(ux, s), load_run(uy, s)
        gd = spread_run(ZERO)
        gx = gd
        gy = gd
        o = 0
        for dy in range(-r, r + 1):
            if not 0 <= y + dy < height:
                o += rows
                continue
            dj, uj, vj = z[0, U(y + r + dy)], z[1, U(y + r + dy)], z[2, U(y + r + dy)]
            residual_norm_j = residual_norm[U((y + dy) % rows)]
            slope_norm_j = slope_norm[U((y + dy) % rows)]
            fy = spread_run(np.float32(dy))
            for dx in range(-r, r + 1):
                if dy == 0 and dx == 0:
                    continue
                j = U(x + r + dx)
                wij = load_run(w[U(o), U(y)], U(x))
                wji = load_run(w[U(edges - 1 - o), U(y + dy)], U(x + dx))
                if at_border:
                    wji = inside_run(wji, np.int32(x + dx), np.int32(width))
                ujr, vjr = load_run(uj, j), load_run(vj, j)
                e = di - load_run(dj, j) + ujr * spread_run(np.float32(dx)) + vjr * fy
                gd = gd + wji * wji * load_run(residual_norm_j, j) * e
                ex = ui - ujr
                ey = vi - vjr
                if neighbourhood:
                    k = wij * wij * load_run(slope_norm_i, s) \
                        + wji * wji * load_run(slope_norm_j, j)
                else:
                    k = (wij + wji) * inverse_root(
                        ex * ex + ey * ey + spread_run(SLOPE_SMOOTH2))
                gx = gx + k * ex
                gy = gy + k * ey
                o += 1
        by = spread_run(alpha)
        store_run(g[0], s, gd - load_run(outgoing[0], s))
        store_run(g[1], s, by * gx - load_run(outgoing[1], s))
        store_run(g[2], s, by * gy - load_run(outgoing[2], s))


@njit(**INLINE)
def nltgv(z, w, y, r, alpha, g):
    """Gather the gradient of a row where every edge is a norm of its own."""
    edges, height, width = w.shape
    d, ux, uy = z[0, y + r], z[1, y + r], z[2, y + r]
    small, by = spread_run(SMOOTH2), spread_run(alpha)
    slope_small = spread_run(SLOPE_SMOOTH2)
    for start in range(0, width, LANES):
        x = min(start, width - LANES)
        s = U(x + r)
        di, ui, vi = load_run(d, s), load_run(ux, s), load_run(uy, s)
        gd = spread_run(ZERO)
        gx = gd
        gy = gd
        for o in range(edges):
            dy, dx = step_to(o, edges, r)
            if not 0 <= y + dy < height:
                continue
            fx, fy = spread_run(np.float32(dx)), spread_run(np.float32(dy))
            j = U(x + r + dx)
            wij = load_run(w[U(o), U(y)], U(x))
            wji = load_run(w[U(edges - 1 - o), U(y + dy)], U(x + dx))
            wji = inside_run(wji, np.int32(x + dx), np.int32(width))
            dj, uj = load_run(z[0, U(y + r + dy)], j), load_run(z[1, U(y + r + dy)], j)
            vj = load_run(z[2, U(y + r + dy)], j)
            e = dj - di - ui * fx - vi * fy
            f = di - dj + uj * fx + vj * fy
            e = wij * e * inverse_root(e * e + small)
            f = wji * f * inverse_root(f * f + small)
            gd = gd + f - e
            ex = ui - uj
            ey = vi - vj
            k = by * (wij + wji)
            gx = gx + k * ex * inverse_root(ex * ex + slope_small) - e * fx
            gy = gy + k * ey * inverse_root(ey * ey + slope_small) - e * fy
        store_run(g[0], s, gd)
        store_run(g[1], s, gx)
        store_run(g[2], s, gy)


@njit(**INLINE)
def update_row(z, d, m, y, r, gradient, first, second, out, lam, rate, slope_rate, two):
    """Turn the gradient of a row into its ADAM step; return how many are not finite."""
    last, s = U(d.shape[1] - LANES), U(r)
    by, bias, limit = spread_run(lam), spread_run(two), spread_run(LIMIT)
    small, tiny = spread_run(SMOOTH2), spread_run(np.float32(EPSILON))
    keep1, keep2 = spread_run(np.float32(BETA1)), spread_run(np.float32(BETA2))
    take1, take2 = spread_run(ONE - np.float32(BETA1)), spread_run(ONE - np.float32(BETA2))
    good = spread_run(ZERO)
    runs = 0
    for k in range(3):
        pace = spread_run(rate if k == 0 else slope_rate)
        g, old, new = gradient[k], z[k, y + r], out[k, y + r]
        one, sq = first[k, y], second[k, y]
        # the last run may overlap the one before, and must not see its moments
        last_one, last_sq = load_run(one, last), load_run(sq, last)
        for begin, end in ((U(0), last), (last, last + U(1))):
            if begin == last:
                store_run(one, last, last_one)
                store_run(sq, last, last_sq)
            for x in range(begin, end, U(LANES)):
                v, centre = load_run(g, s + x) * by, load_run(old, s + x)
                if k == 0:
                    e = centre - load_run(d[y], x)
                    v = v + load_run(m[y], x) * e * inverse_root(e * e + small)
                mean = keep1 * load_run(one, x) + take1 * v
                square = keep2 * load_run(sq, x) + take2 * v * v
                to = centre - pace * mean * inverse_run(root_run(square * bias) + tiny)
                store_run(one, x, mean)
                store_run(sq, x, square)
                store_run(new, s + x, to)
                good = good + less_run(abs_run(to), limit)
                runs += 1
    return runs * LANES - int(sum_run(good))
