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
"""The energy, summed row by row: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.energy import REGULARISERS
from graph_depth_refiner.core.jit.options import FUSED, INLINE, U, ZERO
from graph_depth_refiner.core.jit.simd import (
    inside_run,
    inverse_root,
    LANES,
    load_run,
    spread_run,
    sum_run,
)
from graph_depth_refiner.core.rows_numba import (
    NEIGHBOURHOOD,
    NLTGV,
    SLOPE_SMOOTH,
    SLOPE_SMOOTH2,
    SMOOTH,
    SMOOTH2,
    step_to,
)


def energy(z, w, d, m, lam: float, alpha: float, regulariser: str, every: int = 1) -> float:
    """Return the energy of the planes, by every n-th row; z has a margin of the graph's reach."""
    rows = np.empty((len(range(every // 2, len(d), every)), 3))
    _energy(z, w, d, m, REGULARISERS.index(regulariser), every, rows)
    data, residual, slope = rows.sum(axis=0) * (len(d) / len(rows))
    total = float(data + lam * (residual + alpha * slope))
    return 0.0 if total < 0 else total  # rounding of the smoothed norms at 0; NaN stays


@njit(**INLINE)
def _norm(squares):
    """Return the smoothed norms of which the squares are given."""
    squares = squares + spread_run(SMOOTH2)
    return squares * inverse_root(squares) - spread_run(SMOOTH)


@njit(**INLINE)
def _slope_norm(squares):
    """Return the same of differences of slopes."""
    squares = squares + spread_run(SLOPE_SMOOTH2)
    return squares * inverse_root(squares) - spread_run(SLOPE_SMOOTH)


@njit(parallel=True, **FUSED)
def _energy(z, w, d, m, regulariser, every, rows):
    """Sum the data, residual and slope terms of every n-th row."""
    edges, height, width = w.shape
    r = (z.shape[1] - height) // 2
    for row in prange(len(rows)):
        y = np.int64(row) * every + every // 2
        data = residual_part = slope_part = 0.0
        for start in range(0, width, LANES):
            x = min(start, width - LANES)
            fresh = np.int32(x - start)  # what overlaps the run before counts there
            e = load_run(z[0, y + r], U(x + r)) - load_run(d[y], U(x))
            parts = load_run(m[y], U(x)) * _norm(e * e)
            data += sum_run(inside_run(parts, fresh, np.int32(LANES)))
            residual_norm, slope_norm = _terms(z, w, y, x, r, regulariser)
            residual_part += sum_run(inside_run(residual_norm, fresh, np.int32(LANES)))
            slope_part += sum_run(inside_run(slope_norm, fresh, np.int32(LANES)))
        rows[row, 0], rows[row, 1], rows[row, 2] = data, residual_part, slope_part


@njit(**INLINE)
def _terms(z, w, y, x, r, regulariser):
    """Return the residual and the slope term of a run of pixels."""
    s = U(x + r)
    di = load_run(z[0, y + r], s)
    ui, vi = load_run(z[1, y + r], s), load_run(z[2, y + r], s)
    residual_norm = spread_run(ZERO)
    slope_norm = residual_norm
    for o in range(w.shape[0]):
        dy, dx = step_to(o, w.shape[0], r)
        j, row = U(x + r + dx), U(y + r + dy)
        wij = load_run(w[U(o), U(y)], U(x))
        fx, fy = spread_run(np.float32(dx)), spread_run(np.float32(dy))
        e = load_run(z[0, row], j) - di - ui * fx - vi * fy
        ex, ey = load_run(z[1, row], j) - ui, load_run(z[2, row], j) - vi
        if regulariser == NLTGV:
            residual_norm = residual_norm + wij * _norm(e * e)
            slope_norm = slope_norm + wij * (_slope_norm(ex * ex) + _slope_norm(ey * ey))
        else:
            residual_norm = residual_norm + wij * wij * e * e
            square = ex * ex + ey * ey
            slope_norm = slope_norm + wij * (
                wij * square if regulariser == NEIGHBOURHOOD else _slope_norm(square))
    if regulariser != NLTGV:
        residual_norm = _norm(residual_norm)
    if regulariser == NEIGHBOURHOOD:
        slope_norm = _slope_norm(slope_norm)
    return residual_norm, slope_norm
