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
"""The energy, summed row by row; the twin of energy.py."""

from __future__ import annotations

import math

from numba import njit, prange
import numpy as np

from graph_depth_refiner.fused.rows import (
    D, FUSED, INLINE, load, NORM, residuals, SCRATCH, SMOOTH, SMOOTH2, step_to, TILE, turns, U, UX,
    UY)
from graph_depth_refiner.problem import REGULARISERS

PLANAR, NLTGV, NEIGHBOURHOOD = range(len(REGULARISERS))


def energy(z, w, d, m, lam: float, alpha: float, regulariser: str) -> float:
    """Return the energy of the planes; z has a margin of the graph's reach."""
    rows = np.empty((len(d), 3))
    _energy(z, w, d, m, REGULARISERS.index(regulariser), rows)
    data, residual, slope = rows.sum(axis=0)
    return float(data + lam * (residual + alpha * slope))


@njit(**INLINE)
def _norm(square):
    return square / (math.sqrt(square + SMOOTH2) + SMOOTH)


@njit(parallel=True, **FUSED)
def _energy(z, w, d, m, regulariser, rows):
    """Sum the data, residual and slope terms of every row."""
    height, width = d.shape
    r = (z.shape[1] - height) // 2
    for y in prange(height):
        data, residual, slope = 0.0, 0.0, 0.0
        t = np.empty(SCRATCH, np.float32)
        c = np.empty(w.shape[0] * TILE, np.float32)
        for x0 in range(0, width, TILE):
            n = U(min(width - x0, TILE))
            s = U(x0)
            load(z, y, x0, n, r, t)
            for x in range(n):
                e = t[D + x] - d[y, s + x]
                data += m[y, s + x] * _norm(e * e)
            if regulariser == NLTGV:
                residual += _rises_l1(z, w, y, x0, n, r, t)
                slope += _turns(z, w, y, x0, n, r, t, True)
                continue
            residuals(z, w, y, x0, n, r, t, c)
            for x in range(n):
                residual += _norm(t[NORM + x] - SMOOTH2)
            if regulariser == PLANAR:
                slope += _turns(z, w, y, x0, n, r, t, False)
                continue
            turns(z, w, y, x0, n, r, t)
            for x in range(n):
                slope += _norm(t[NORM + x] - SMOOTH2)
        rows[y, 0], rows[y, 1], rows[y, 2] = data, residual, slope


@njit(**INLINE)
def _rises_l1(z, w, y, x0, n, r, t):
    total = 0.0
    for o in range(w.shape[0]):
        dy, dx = step_to(o, w.shape[0], r)
        fx, fy = np.float32(dx), np.float32(dy)
        there, wo = z[0, y + r + dy], w[o, y]
        s, sj = U(x0), U(x0 + r + dx)
        for x in range(n):
            e = there[sj + x] - t[D + x] - t[UX + x] * fx - t[UY + x] * fy
            total += wo[s + x] * _norm(e * e)
    return total


@njit(**INLINE)
def _turns(z, w, y, x0, n, r, t, apart):
    """Sum the weighted slope differences, their components apart or together."""
    total = 0.0
    for o in range(w.shape[0]):
        dy, dx = step_to(o, w.shape[0], r)
        ux, uy = z[1, y + r + dy], z[2, y + r + dy]
        s, sj = U(x0), U(x0 + r + dx)
        wo = w[o, y]
        for x in range(n):
            ex = t[UX + x] - ux[sj + x]
            ey = t[UY + x] - uy[sj + x]
            size = (_norm(ex * ex) + _norm(ey * ey)) if apart else _norm(ex * ex + ey * ey)
            total += wo[s + x] * size
    return total
