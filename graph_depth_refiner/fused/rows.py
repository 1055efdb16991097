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
Gradient of the regularisers, a tile of one image row at a time.

Planes have a margin of the graph's reach, where the weights are 0. A ring of rows collects
the gradient: every edge adds to both of its ends, so no pass over the graph is repeated.
"""

from __future__ import annotations

import math

from numba import njit
import numpy as np

from graph_depth_refiner.problem import SMOOTHING

# Neither nnan nor ninf: numbers that are not finite must be noticed.
FAST = {'contract', 'reassoc', 'arcp', 'afn', 'nsz'}
FUSED = {'nogil': True, 'cache': True, 'fastmath': FAST, 'error_model': 'numpy'}
INLINE = {**FUSED, 'forceinline': True}

# Loops run over unsigned tile positions in buffers of constant stride: so the compiler
# sees neither negative indices nor aliases and vectorises all of them.
U = np.uint64
TILE = 128
D, UX, UY, NORM, SUM, SUMX, SUMY = (U(k * TILE) for k in range(7))
SCRATCH = 7 * TILE
ZERO, ONE = np.float32(0), np.float32(1)
SMOOTH = np.float32(SMOOTHING)
SMOOTH2 = np.float32(SMOOTHING * SMOOTHING)


@njit(**INLINE)
def step_to(o, edges, r):
    """Return dy and dx of the offset."""
    p = o if 2 * o < edges else o + 1
    return p // (2 * r + 1) - r, p % (2 * r + 1) - r


@njit(**INLINE)
def norm(square):
    """Return the smoothed norm of which the square is given."""
    return square / (math.sqrt(square + SMOOTH2) + SMOOTH)


@njit(**INLINE)
def load(z, y, x0, n, r, t):
    """Copy the planes of a tile into its scratch memory and clear the sums."""
    s = U(x0 + r)
    d, ux, uy = z[0, y + r], z[1, y + r], z[2, y + r]
    for x in range(n):
        t[D + x] = d[s + x]
        t[UX + x] = ux[s + x]
        t[UY + x] = uy[s + x]
        t[NORM + x] = SMOOTH2
        t[SUM + x] = ZERO
        t[SUMX + x] = ZERO
        t[SUMY + x] = ZERO


@njit(**INLINE)
def residuals(z, w, y, x0, n, r, t, c):
    """Sum w^2 r^2 over the edges of a tile; keep w^2 r of every edge in c."""
    edges = w.shape[0]
    at = U(x0)
    for o in range(edges // 2):  # with its mirror
        dy, dx = step_to(o, edges, r)
        fx, fy = np.float32(dx), np.float32(dy)
        e = U(2 * o * TILE)
        f = e + U(TILE)
        da, db = z[0, y + r + dy], z[0, y + r - dy]
        wa, wb = w[o, y], w[edges - 1 - o, y]
        sa, sb = U(x0 + r + dx), U(x0 + r - dx)
        for x in range(n):
            rise = t[UX + x] * fx + t[UY + x] * fy
            p = da[sa + x] - t[D + x] - rise
            q = db[sb + x] - t[D + x] + rise
            a = wa[at + x]
            b = wb[at + x]
            a = a * a * p
            b = b * b * q
            c[e + x] = a
            c[f + x] = b
            t[NORM + x] += a * p + b * q
            t[SUM + x] += a + b
            t[SUMX + x] += (a - b) * fx
            t[SUMY + x] += (a - b) * fy


@njit(**INLINE)
def residuals_l1(z, w, y, x0, n, r, t, c):
    """Keep the gradient w r / |r| of every edge in c, and its sums; the norm becomes 1."""
    edges = w.shape[0]
    at = U(x0)
    for x in range(n):
        t[NORM + x] = ONE
    for o in range(edges // 2):  # with its mirror
        dy, dx = step_to(o, edges, r)
        fx, fy = np.float32(dx), np.float32(dy)
        e = U(2 * o * TILE)
        f = e + U(TILE)
        da, db = z[0, y + r + dy], z[0, y + r - dy]
        wa, wb = w[o, y], w[edges - 1 - o, y]
        sa, sb = U(x0 + r + dx), U(x0 + r - dx)
        for x in range(n):
            rise = t[UX + x] * fx + t[UY + x] * fy
            p = da[sa + x] - t[D + x] - rise
            q = db[sb + x] - t[D + x] + rise
            a = wa[at + x] * p / math.sqrt(p * p + SMOOTH2)
            b = wb[at + x] * q / math.sqrt(q * q + SMOOTH2)
            c[e + x] = a
            c[f + x] = b
            t[SUM + x] += a + b
            t[SUMX + x] += (a - b) * fx
            t[SUMY + x] += (a - b) * fy


@njit(**INLINE)
def spread(w, y, x0, n, r, t, c, ring):
    """Divide the terms of a tile by its norms and hand them to both ends of every edge."""
    edges = w.shape[0]
    rows = 2 * r + 1
    s = U(x0 + r)
    gd, gx, gy = ring[0, y % rows], ring[1, y % rows], ring[2, y % rows]
    for x in range(n):
        t[NORM + x] = ONE / math.sqrt(t[NORM + x])
    for x in range(n):
        gd[s + x] -= t[SUM + x] * t[NORM + x]
    for x in range(n):
        gx[s + x] -= t[SUMX + x] * t[NORM + x]
    for x in range(n):
        gy[s + x] -= t[SUMY + x] * t[NORM + x]
    for o in range(edges):
        dy, dx = step_to(o, edges, r)
        e = U((2 * o if 2 * o < edges else 2 * (edges - 1 - o) + 1) * TILE)
        to = ring[0, (y + dy) % rows]
        sj = U(x0 + r + dx)
        for x in range(n):
            to[sj + x] += c[e + x] * t[NORM + x]


@njit(**INLINE)
def slopes(z, w, y, x0, n, r, alpha, t, ring):
    """Add the slope differences of a tile to the gradient of both ends, edge by edge once."""
    edges = w.shape[0]
    rows = 2 * r + 1
    at = U(x0)
    for x in range(n):
        t[SUMX + x] = ZERO
        t[SUMY + x] = ZERO
    for o in range(edges // 2, edges):
        dy, dx = step_to(o, edges, r)
        if y + dy >= w.shape[1]:
            break
        ux, uy = z[1, y + r + dy], z[2, y + r + dy]
        wa, wb = w[o, y], w[edges - 1 - o, y + dy]
        gx, gy = ring[1, (y + dy) % rows], ring[2, (y + dy) % rows]
        first = U(max(0, -dx - x0))  # the mirrored weight is read inside the image only
        end = U(max(0, min(np.int64(n), w.shape[2] - dx - x0)))
        sj, sb = U(x0 + r + dx), U(x0 + dx)
        for x in range(first, end):
            ex = t[UX + x] - ux[sj + x]
            ey = t[UY + x] - uy[sj + x]
            k = alpha * (wa[at + x] + wb[sb + x]) / math.sqrt(ex * ex + ey * ey + SMOOTH2)
            ex *= k
            ey *= k
            t[SUMX + x] += ex
            t[SUMY + x] += ey
            gx[sj + x] -= ex
            gy[sj + x] -= ey
    s = U(x0 + r)
    gx, gy = ring[1, y % rows], ring[2, y % rows]
    for x in range(n):
        gx[s + x] += t[SUMX + x]
    for x in range(n):
        gy[s + x] += t[SUMY + x]


@njit(**INLINE)
def slopes_l1(z, w, y, x0, n, r, alpha, t, ring):
    """Do as `slopes`, with either component of a difference on its own."""
    edges = w.shape[0]
    rows = 2 * r + 1
    at = U(x0)
    for o in range(edges // 2, edges):
        dy, dx = step_to(o, edges, r)
        if y + dy >= w.shape[1]:
            break
        wa, wb = w[o, y], w[edges - 1 - o, y + dy]
        first = U(max(0, -dx - x0))
        end = U(max(0, min(np.int64(n), w.shape[2] - dx - x0)))
        s, sj, sb = U(x0 + r), U(x0 + r + dx), U(x0 + dx)
        for k in range(1, 3):
            u, v = z[k, y + r], z[k, y + r + dy]
            for x in range(first, end):
                e = u[s + x] - v[sj + x]
                e *= alpha * (wa[at + x] + wb[sb + x]) / math.sqrt(e * e + SMOOTH2)
                t[SUM + x] = e
            g = ring[k, y % rows]
            for x in range(first, end):
                g[s + x] += t[SUM + x]
            g = ring[k, (y + dy) % rows]
            for x in range(first, end):
                g[sj + x] -= t[SUM + x]


@njit(**INLINE)
def turns(z, w, y, x0, n, r, t):
    """Sum w^2 |u_j - u_i|^2 over the edges of a tile."""
    edges = w.shape[0]
    at = U(x0)
    for x in range(n):
        t[NORM + x] = SMOOTH2
    for o in range(edges):
        dy, dx = step_to(o, edges, r)
        ux, uy = z[1, y + r + dy], z[2, y + r + dy]
        wo = w[o, y]
        sj = U(x0 + r + dx)
        for x in range(n):
            ex = t[UX + x] - ux[sj + x]
            ey = t[UY + x] - uy[sj + x]
            t[NORM + x] += wo[at + x] * wo[at + x] * (ex * ex + ey * ey)


@njit(**INLINE)
def slopes_l2(z, w, y, x0, n, r, alpha, t, ring):
    """Add the gradient of one norm over all slope differences of a pixel to both ends."""
    edges = w.shape[0]
    rows = 2 * r + 1
    at = U(x0)
    turns(z, w, y, x0, n, r, t)
    for x in range(n):
        t[NORM + x] = alpha / math.sqrt(t[NORM + x])
    for o in range(edges):
        dy, dx = step_to(o, edges, r)
        wo = w[o, y]
        s, sj = U(x0 + r), U(x0 + r + dx)
        for k in range(1, 3):
            u, v = z[k, y + r], z[k, y + r + dy]
            for x in range(n):
                e = u[s + x] - v[sj + x]
                t[SUM + x] = wo[at + x] * wo[at + x] * t[NORM + x] * e
            g = ring[k, y % rows]
            for x in range(n):
                g[s + x] += t[SUM + x]
            g = ring[k, (y + dy) % rows]
            for x in range(n):
                g[sj + x] -= t[SUM + x]
