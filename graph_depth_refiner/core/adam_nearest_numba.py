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
The gradient of the planar regulariser on a window of 3x3, in rows: see rows.py.

So few neighbours leave room to compute each edge only once. A row leaves for those around it
what its planes ask of them, and its share of the slopes it has in common with the pixels
behind it; a pixel then only collects. The buffers have a margin of one that stays 0.

Several steps go down the rows together, each REACH rows behind the one before, so that what
they share is fetched from memory once. Where two strips of rows meet, a later step cannot
begin at the border, since the rows beyond it are not there yet: it leaves out REACH rows
more than the step before, and they are made up for once all strips are done.
"""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.jit.options import FUSED, INLINE, U, ZERO
from graph_depth_refiner.core.jit.simd import (
    inside_run,
    inverse_root,
    LANES,
    load_run,
    spread_run,
    store_run,
)
from graph_depth_refiner.core.rows_numba import SLOPE_SMOOTH2, SMOOTH2, update_row

EDGES, BEHIND = 8, 4  # edges of a pixel, and those to its right or below it
REACH = 2  # rows to either side that a step of a row depends on
RING = 3  # rows that have to be remembered of what was left
OWN, NORM, ASKED, TURNED, LEFT = 0, 3, 4, 4 + EDGES, 4 + EDGES + 2 * BEHIND  # where it stands


@njit(parallel=True, **FUSED)
def adam_nearest(
        w, together, z, d, m, first, second, out, bad, strips, lam, alpha, rates, slope_rates,
        twos):
    """
    Take ADAM steps, so many together; return how many were finite, by whole groups.

    The first goes from z to out, the next back again, and so on. If a step is not finite,
    its group has overwritten the planes unless it is the only one of it.
    """
    height = d.shape[0]
    for k in range(0, rates.size, together):
        source, target = (z, out) if k % 2 == 0 else (out, z)
        end = min(k + together, rates.size)
        some, some_slope, some_two = rates[k:end], slope_rates[k:end], twos[k:end]
        for strip in prange(strips):
            _strip(
                height * strip // strips, height * (strip + 1) // strips, w, source, d, m, first,
                second, target, bad, lam, alpha, some, some_slope, some_two)
        if end - k > 1:
            for seam in prange(1, strips):
                _seam(
                    height * seam // strips, w, source, d, m, first, second, target, bad, lam,
                    alpha, some, some_slope, some_two)
        if bad.any():
            return k
    return rates.size


@njit(**INLINE)
def _strip(
        top, end, w, z, d, m, first, second, out, bad, lam, alpha, rates, slope_rates, twos):
    """Take the steps of the rows from `top` to before `end`, save those of the seams."""
    height, width = d.shape
    rings = np.empty((rates.size, RING, LEFT, width + 2), np.float32)
    rings[:, :, :, 0] = ZERO
    rings[:, :, :, width + 1] = ZERO
    g = np.empty((3, width + 2), np.float32)
    for y in range(top - 1, end + 1 + REACH * (rates.size - 1)):
        for t in range(rates.size):
            source, target = (z, out) if t % 2 == 0 else (out, z)
            _row(
                y - REACH * t, top + REACH * t if top > 0 else 0,
                end - REACH * t if end < height else height, w, source, d, m, first, second,
                target, bad, lam, alpha, rates[t], slope_rates[t], twos[t], rings[t], g)


@njit(**INLINE)
def _seam(
        centre, w, z, d, m, first, second, out, bad, lam, alpha, rates, slope_rates, twos):
    """Take the steps that the strips left out where they meet."""
    width = d.shape[1]
    ring = np.empty((RING, LEFT, width + 2), np.float32)
    ring[:, :, 0] = ZERO
    ring[:, :, width + 1] = ZERO
    g = np.empty((3, width + 2), np.float32)
    for t in range(1, rates.size):
        source, target = (z, out) if t % 2 == 0 else (out, z)
        top, end = centre - REACH * t, centre + REACH * t
        for y in range(top - 1, end + 1):
            _row(
                y, top, end, w, source, d, m, first, second, target, bad, lam, alpha, rates[t],
                slope_rates[t], twos[t], ring, g)


@njit(**INLINE)
def _row(
        y, top, end, w, z, d, m, first, second, out, bad, lam, alpha, rate, slope_rate, two,
        ring, g):
    """Let a row leave its share, and step the row above it, of those from `top` to `end`."""
    height, width = d.shape
    if 0 <= y < height and top - 1 <= y <= end:
        scatter(z, w, y, ring[y % RING])
    if top < y <= end:
        gather(y - 1, height, width, alpha, ring, g)
        bad[y - 1] += update_row(
            z, d, m, y - 1, 1, g, first, second, out, lam, rate, slope_rate, two)


@njit(**INLINE)
def scatter(z, w, y, left):
    """
    Leave the share of a row in its neighbours' gradients, and store that in its own.

    What is left, LEFT W+2, is in this order: its own gradient, the inverse norms of the
    residuals, what is asked of the eight neighbours up to that norm, and the slopes' forces
    to the four behind.
    """
    _, height, width = w.shape
    d, ux, uy = z[0, y + 1], z[1, y + 1], z[2, y + 1]
    small, slope_small = spread_run(SMOOTH2), spread_run(SLOPE_SMOOTH2)
    for start in range(0, width, LANES):
        x = min(start, width - LANES)
        s = U(x + 1)
        di, ui, vi = load_run(d, s), load_run(ux, s), load_run(uy, s)
        squares = small
        total = spread_run(ZERO)
        total_x = total
        total_y = total
        o = 0
        for dy in range(-1, 2):
            dj = z[0, U(y + 1 + dy)]
            for dx in range(-1, 2):
                if dy == 0 and dx == 0:
                    continue
                fx, fy = spread_run(np.float32(dx)), spread_run(np.float32(dy))
                wij = load_run(w[U(o), U(y)], U(x))
                e = load_run(dj, U(x + 1 + dx)) - (di + ui * fx + vi * fy)
                c = wij * wij * e
                store_run(left[U(ASKED + o)], s, c)
                squares = squares + c * e
                total = total + c
                total_x = total_x + c * fx
                total_y = total_y + c * fy
                o += 1
        n = inverse_root(squares)
        store_run(left[U(NORM)], s, n)
        store_run(left[U(OWN)], s, total * n)
        store_run(left[U(OWN + 1)], s, total_x * n)
        store_run(left[U(OWN + 2)], s, total_y * n)
        at_border = x < 1 or x + LANES + 1 > width
        for k in range(BEHIND):
            dy, dx = (0, 1) if k == 0 else (1, k - 2)
            row, j = U(y + 1 + dy), U(x + 1 + dx)
            ex, ey = ui - load_run(z[1, row], j), vi - load_run(z[2, row], j)
            weight = load_run(w[U(BEHIND + k), U(y)], U(x))
            if y + dy < height:
                back = load_run(w[U(BEHIND - 1 - k), U(y + dy)], U(x + dx))
                if at_border:
                    back = inside_run(back, np.int32(x + dx), np.int32(width))
                weight = weight + back
            by = weight * inverse_root(ex * ex + ey * ey + slope_small)
            store_run(left[U(TURNED + k)], s, by * ex)
            store_run(left[U(TURNED + BEHIND + k)], s, by * ey)


@njit(**INLINE)
def gather(y, height, width, alpha, ring, g):
    """Collect the gradient of a row from what it and the rows around it left."""
    current, above = U(y % RING), U((y + RING - 1) % RING)
    for start in range(0, width, LANES):
        x = min(start, width - LANES)
        s = U(x + 1)
        gd = spread_run(ZERO)
        o = EDGES - 1  # of the neighbour, towards this pixel
        for dy in range(-1, 2):
            row = U((y + RING + dy) % RING)
            for dx in range(-1, 2):
                if dy == 0 and dx == 0:
                    continue
                if 0 <= y + dy < height:
                    j = U(x + 1 + dx)
                    norm = load_run(ring[row, U(NORM)], j)
                    gd = gd + load_run(ring[row, U(ASKED + o)], j) * norm
                o -= 1
        gx = spread_run(ZERO)
        gy = gx
        for k in range(BEHIND):
            gx = gx + load_run(ring[current, U(TURNED + k)], s)
            gy = gy + load_run(ring[current, U(TURNED + BEHIND + k)], s)
            row, j = (current, s - U(1)) if k == 0 else (above, U(x + 3 - k))
            if k == 0 or y > 0:
                gx = gx - load_run(ring[row, U(TURNED + k)], j)
                gy = gy - load_run(ring[row, U(TURNED + BEHIND + k)], j)
        by = spread_run(alpha)
        store_run(g[0], s, gd - load_run(ring[current, U(OWN)], s))
        store_run(g[1], s, by * gx - load_run(ring[current, U(OWN + 1)], s))
        store_run(g[2], s, by * gy - load_run(ring[current, U(OWN + 2)], s))
