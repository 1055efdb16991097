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
A sparse graph in the order in which a step reads it.

With many offsets, most of whose weights are 0, the graph no longer fits the cache, and memory
is slow at as many places at once as there are offsets. Here the runs of weights that are not
all 0 follow each other, with their offsets beside them: once as the edges leave a run of
pixels and once as they come in.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    sum_run,
)
from graph_depth_refiner.core.rows_numba import (
    SLOPE_SMOOTH2,
    SMOOTH2,
    step_to,
    update_row,
)


@dataclass(frozen=True)
class Packed:
    """Runs of weights and their offsets; those of run k of row y are from begin to end."""

    out: np.ndarray  # H*runs*O*LANES, w_ij of the pixels i of a run
    out_offset: np.ndarray  # H*runs*O
    back: np.ndarray  # the same of w_ji
    back_offset: np.ndarray
    bounds: np.ndarray  # 4 H*runs: begin and end of both

    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return what the kernel takes."""
        return self.out, self.out_offset, self.back, self.back_offset, self.bounds

    @property
    def nbytes(self) -> int:
        """Return how much of it is in use."""
        entries = self.bounds[1::2].sum() - self.bounds[::2].sum()
        return int(entries) * (LANES * self.out.itemsize + self.out_offset.itemsize)


def pack(w: np.ndarray) -> Packed:
    """Put the weights that are not 0 in order, without gaps."""
    height, width = w.shape[1:]
    begins = np.zeros((2, height + 1), np.int64)  # of the rows, both ways
    _count(w, begins[:, 1:])
    begins = begins.cumsum(axis=1)
    leaving, coming = begins[:, -1]
    packed = Packed(
        np.empty(leaving * LANES, np.float32), np.empty(leaving, np.uint8),
        np.empty(coming * LANES, np.float32), np.empty(coming, np.uint8),
        np.empty((4, height * -(-width // LANES)), np.int64))
    _pack(w, begins, *packed.arrays())
    return packed


@njit(parallel=True, **FUSED)
def _count(w, counts):
    """Count the runs of weights of every row that are not all 0: leaving and coming in."""
    edges, height, width = w.shape
    runs = (width + LANES - 1) // LANES
    r = int(np.sqrt(edges + 1.0)) // 2
    for row in prange(height):
        y = np.int64(row)
        leaving, coming = 0, 0
        for o in range(edges):
            dy, dx = step_to(o, edges, r)
            for k in range(runs):
                x = min(k * LANES, width - LANES)
                leaving += sum_run(_weights_out(w, o, y, x)) > ZERO
                if 0 <= y + dy < height:
                    coming += sum_run(_weights_back(w, o, y + dy, x + dx)) > ZERO
        counts[0, y], counts[1, y] = leaving, coming


@njit(**INLINE)
def _weights_out(w, o, y, x):
    return load_run(w[U(o), U(y)], U(x))


@njit(**INLINE)
def _weights_back(w, o, y, x):
    """Return the weights of the edges back from (y, x) on, 0 where that is outside the row."""
    incoming = load_run(w[U(w.shape[0] - 1 - o), U(y)], U(x))
    return inside_run(incoming, np.int32(x), np.int32(w.shape[2]))


@njit(parallel=True, **FUSED)
def _pack(w, begins, out, out_offset, back, back_offset, bounds):
    edges, height, width = w.shape
    runs = (width + LANES - 1) // LANES
    r = int(np.sqrt(edges + 1.0)) // 2
    for row in prange(height):
        y = np.int64(row)
        i, j = begins[0, y], begins[1, y]
        for k in range(runs):
            x = min(k * LANES, width - LANES)
            bounds[0, y * runs + k], bounds[2, y * runs + k] = i, j
            for o in range(edges):
                dy, dx = step_to(o, edges, r)
                leave = _weights_out(w, o, y, x)
                if sum_run(leave) > ZERO:
                    store_run(out, U(i * LANES), leave)
                    out_offset[i] = o
                    i += 1
                if 0 <= y + dy < height:
                    incoming = _weights_back(w, o, y + dy, x + dx)
                    if sum_run(incoming) > ZERO:
                        store_run(back, U(j * LANES), incoming)
                        back_offset[j] = o
                        j += 1
            bounds[1, y * runs + k], bounds[3, y * runs + k] = i, j


@njit(parallel=True, **FUSED)
def adam_packed(
        edges, out_w, out_offset, back_w, back_offset, bounds, z, d, m, first, second, out, bad,
        strips, lam, alpha, rates, slope_rates, twos):
    """
    Take ADAM steps of the planar energy, strip by strip of rows; return how many were finite.

    The first goes from z to out, the next back again, and so on.
    """
    height = d.shape[0]
    for k in range(rates.size):
        centre, other = (z, out) if k % 2 == 0 else (out, z)
        rate, slope_rate, two = rates[k], slope_rates[k], twos[k]
        for strip in prange(strips):
            top, end = height * strip // strips, height * (strip + 1) // strips
            _strip(
                top, end, edges, out_w, out_offset, back_w, back_offset, bounds, centre, d, m,
                first, second, other, bad, lam, alpha, rate, slope_rate, two)
        if bad.any():
            return k
    return rates.size


@njit(**INLINE)
def _strip(
        top, end, edges, out_w, out_offset, back_w, back_offset, bounds, z, d, m, first, second,
        out, bad, lam, alpha, rate, slope_rate, two):
    """Step the rows from `top` to before `end`."""
    height, width = d.shape
    r = (z.shape[1] - height) // 2
    stride, rows = z.shape[2], 2 * r + 1
    runs = (width + LANES - 1) // LANES
    planes_d, planes_x, planes_y = z[0].reshape(-1), z[1].reshape(-1), z[2].reshape(-1)
    fx, fy, shift, near = _steps(edges, stride, r)
    # of the rows around the present one: own gradient and inverse norms
    outgoing = np.zeros((3, rows * stride), np.float32)
    inverse = np.zeros(rows * stride, np.float32)
    g = np.empty((3, stride), np.float32)
    for y in range(top - r, end + r):
        for k in range(runs if 0 <= y < height else 0):
            x = min(k * LANES, width - LANES)
            s = U((y + r) * stride + x + r)
            begin, last = bounds[0, y * runs + k], bounds[1, y * runs + k]
            _residual_norms(
                planes_d, planes_x, planes_y, s, out_w, out_offset, begin, last, fx, fy,
                shift, outgoing, inverse, U((y % rows) * stride + x + r))
        t = y - r
        if t < top:
            continue
        _near(edges, t, stride, r, near)
        for k in range(runs):
            x = min(k * LANES, width - LANES)
            s = U((t + r) * stride + x + r)
            b = t * runs + k
            gd, gx, gy = _come(
                planes_d, planes_x, planes_y, s, back_w, back_offset, bounds[2, b],
                bounds[3, b], fx, fy, shift, inverse, near, U(x))
            hx, hy = _leave(
                planes_x, planes_y, s, out_w, out_offset, bounds[0, b], bounds[1, b], shift)
            at, to = U((t % rows) * stride + x + r), U(x + r)
            store_run(g[0], to, gd - load_run(outgoing[0], at))
            store_run(g[1], to, spread_run(alpha) * (gx + hx) - load_run(outgoing[1], at))
            store_run(g[2], to, spread_run(alpha) * (gy + hy) - load_run(outgoing[2], at))
        bad[t] = update_row(
            z, d, m, t, r, g, first, second, out, lam, rate, slope_rate, two)


@njit(**INLINE)
def _steps(edges, stride, r):
    """Return dx and dy of every offset, its step in flat planes, and room for `_near`."""
    fx, fy = np.empty(edges, np.float32), np.empty(edges, np.float32)
    shift, near = np.empty(edges, np.uint64), np.empty(edges, np.uint64)
    for o in range(edges):
        dy, dx = step_to(o, edges, r)
        fx[o], fy[o], shift[o] = dx, dy, dy * stride + dx
    return fx, fy, shift, near


@njit(**INLINE)
def _near(edges, y, stride, r, near):
    """Find the neighbours of the first pixel of a row in the ring of rows."""
    for o in range(edges):
        dy, dx = step_to(o, edges, r)
        near[o] = (y + dy) % (2 * r + 1) * stride + dx + r


@njit(**INLINE)
def _residual_norms(d, ux, uy, s, w, offset, begin, end, fx, fy, shift, outgoing, inverse, at):
    """Do as `residual_norms` for the run of pixels at s of the flat planes."""
    di, ui, vi = load_run(d, s), load_run(ux, s), load_run(uy, s)
    squares = spread_run(SMOOTH2)
    total = spread_run(ZERO)
    total_x = total
    total_y = total
    for k in range(U(begin), U(end)):
        o = U(offset[k])
        px, py = spread_run(fx[o]), spread_run(fy[o])
        wij = load_run(w, k * U(LANES))
        e = load_run(d, s + shift[o]) - (di + ui * px + vi * py)
        c = wij * wij * e
        squares = squares + c * e
        total = total + c
        total_x = total_x + c * px
        total_y = total_y + c * py
    n = inverse_root(squares)
    store_run(inverse, at, n)
    store_run(outgoing[0], at, total * n)
    store_run(outgoing[1], at, total_x * n)
    store_run(outgoing[2], at, total_y * n)


@njit(**INLINE)
def _leave(ux, uy, s, w, offset, begin, end, shift):
    """Return the slope gradient of a run of pixels by the edges that leave it."""
    ui, vi = load_run(ux, s), load_run(uy, s)
    small = spread_run(SLOPE_SMOOTH2)
    gx = spread_run(ZERO)
    gy = gx
    for k in range(U(begin), U(end)):
        j = s + shift[U(offset[k])]
        ex, ey = ui - load_run(ux, j), vi - load_run(uy, j)
        by = load_run(w, k * U(LANES)) * inverse_root(ex * ex + ey * ey + small)
        gx = gx + by * ex
        gy = gy + by * ey
    return gx, gy


@njit(**INLINE)
def _come(d, ux, uy, s, w, offset, begin, end, fx, fy, shift, inverse, near, x):
    """Return the gradient of a run of pixels by the edges that come in."""
    di, ui, vi = load_run(d, s), load_run(ux, s), load_run(uy, s)
    small = spread_run(SLOPE_SMOOTH2)
    gd = spread_run(ZERO)
    gx = gd
    gy = gd
    for k in range(U(begin), U(end)):
        o = U(offset[k])
        j = s + shift[o]
        wji = load_run(w, k * U(LANES))
        uj, vj = load_run(ux, j), load_run(uy, j)
        e = di - load_run(d, j) + uj * spread_run(fx[o]) + vj * spread_run(fy[o])
        gd = gd + wji * wji * load_run(inverse, near[o] + x) * e
        ex, ey = ui - uj, vi - vj
        by = wji * inverse_root(ex * ex + ey * ey + small)
        gx = gx + by * ex
        gy = gy + by * ey
    return gd, gx, gy
