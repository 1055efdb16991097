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
"""

from __future__ import annotations

from numba import njit
import numpy as np

from graph_depth_refiner.fused.rows import INLINE, SMOOTH2, U, ZERO
from graph_depth_refiner.fused.vectors import (
    inside_run,
    inverse_root,
    LANES,
    load_run,
    spread_run,
    store_run,
)

EDGES, BEHIND = 8, 4  # edges of a pixel, and those to its right or below it


@njit(**INLINE)
def leave(z, w, y, own, inverse, asked, turned):
    """
    Leave the share of a row in its neighbours' gradients, and store that in its own.

    Of buffers with a margin: own 3 W, inverse norms of the residuals W, what is asked of the
    eight neighbours up to that norm 8 W, and the slopes' forces to the four behind 8 W.
    """
    _, height, width = w.shape
    d, ux, uy = z[0, y + 1], z[1, y + 1], z[2, y + 1]
    small = spread_run(SMOOTH2)
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
                store_run(asked[U(o)], s, c)
                squares = squares + c * e
                total = total + c
                total_x = total_x + c * fx
                total_y = total_y + c * fy
                o += 1
        n = inverse_root(squares)
        store_run(inverse, s, n)
        store_run(own[0], s, total * n)
        store_run(own[1], s, total_x * n)
        store_run(own[2], s, total_y * n)
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
            by = weight * inverse_root(ex * ex + ey * ey + small)
            store_run(turned[U(k)], s, by * ex)
            store_run(turned[U(BEHIND + k)], s, by * ey)


@njit(**INLINE)
def collect(y, height, width, alpha, own, inverse, asked, turned, g):
    """Collect the gradient of a row; the last axes but one of the buffers are a ring of 3."""
    here, above = U(y % 3), U((y + 2) % 3)
    for start in range(0, width, LANES):
        x = min(start, width - LANES)
        s = U(x + 1)
        gd = spread_run(ZERO)
        o = EDGES - 1  # of the neighbour, towards this pixel
        for dy in range(-1, 2):
            row = U((y + 3 + dy) % 3)
            for dx in range(-1, 2):
                if dy == 0 and dx == 0:
                    continue
                if 0 <= y + dy < height:
                    j = U(x + 1 + dx)
                    gd = gd + load_run(asked[row, U(o)], j) * load_run(inverse[row], j)
                o -= 1
        gx = spread_run(ZERO)
        gy = gx
        for k in range(BEHIND):
            gx = gx + load_run(turned[here, U(k)], s)
            gy = gy + load_run(turned[here, U(BEHIND + k)], s)
            row, j = (here, s - U(1)) if k == 0 else (above, U(x + 3 - k))
            if k == 0 or y > 0:
                gx = gx - load_run(turned[row, U(k)], j)
                gy = gy - load_run(turned[row, U(BEHIND + k)], j)
        by = spread_run(alpha)
        store_run(g[0], s, gd - load_run(own[here, U(0)], s))
        store_run(g[1], s, by * gx - load_run(own[here, U(1)], s))
        store_run(g[2], s, by * gy - load_run(own[here, U(2)], s))
