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
"""ADAM on the energy with the gradient and the update fused; the twin of solver.py."""

from __future__ import annotations

from dataclasses import dataclass
import math

from numba import get_num_threads, njit, prange
import numpy as np

from graph_depth_refiner.fused.rows import (
    D, FUSED, INLINE, load, NORM, norm, ONE, residuals, SCRATCH, slopes, SMOOTH2, spread, step_to,
    TILE, U, UX, UY, ZERO)
from graph_depth_refiner.problem import (
    BETA1, BETA2, EPSILON, Memory, REGULARISERS, window_of)

_LIMIT = np.float32(1e30)


@dataclass
class State:
    """Where the minimisation stands, in noise units; the planes have a margin."""

    z: np.ndarray  # 3 H+2r W+2r
    other: np.ndarray  # the same, where the next step goes
    first: np.ndarray  # 3 H W
    second: np.ndarray  # 3 H W
    bad: np.ndarray  # H, values that were not finite in the last step
    w: np.ndarray  # O H W
    d: np.ndarray  # H W
    m: np.ndarray  # H W
    unit: float
    terms: tuple[np.float32, np.float32, int]  # lambda, alpha, regulariser
    count: int


def init(x, w, d, m, unit, lam, alpha, regulariser='planar', memory=None) -> State:
    """Begin at the planes x; the memory of the frame before keeps the step sizes."""
    r = window_of(len(w)) // 2
    scale = np.float32(1 / unit)
    z = np.zeros((3, d.shape[0] + 2 * r, d.shape[1] + 2 * r), np.float32)
    np.multiply(x, scale, out=z[:, r:r + d.shape[0], r:r + d.shape[1]])
    second = np.zeros(x.shape, np.float32) if memory is None else memory.second.copy()
    return State(
        z, z.copy(), np.zeros(x.shape, np.float32), second, np.zeros(len(d), np.int64),
        w, d * scale, m, unit,
        (np.float32(lam), np.float32(alpha), REGULARISERS.index(regulariser)),
        0 if memory is None else memory.count)


def step(state: State, rate: float, slope_rate: float) -> None:
    """Take one ADAM step of at most about `rate` units in d; undo it if it is not finite."""
    state.count += 1
    one = 1 / (1 - BETA1 ** state.count)
    two = 1 / (1 - BETA2 ** state.count)
    _adam(
        state.z, state.w, state.d, state.m, state.first, state.second, state.other, state.bad,
        min(len(state.d), get_num_threads()), *state.terms,
        np.float32(rate * one), np.float32(slope_rate * one), np.float32(two))
    if finite(state):
        state.z, state.other = state.other, state.z


def finite(state: State) -> bool:
    """Tell whether the last step was finite, and so was taken."""
    return not state.bad.any()


def planes(state: State) -> np.ndarray:
    """Return the planes in the scale of the input."""
    r = (state.z.shape[1] - len(state.d)) // 2
    inner = state.z[:, r:r + state.d.shape[0], r:r + state.d.shape[1]]
    return inner * np.float32(state.unit)  # 3 H W


def memory(state: State) -> Memory:
    """Return what the next frame's minimisation may go on with."""
    return Memory(state.second, state.count)


@njit(parallel=True, **FUSED)
def _adam(z, w, d, m, first, second, out, bad, strips, lam, alpha, norms, rate, slope_rate, two):
    height, width = d.shape
    r = (z.shape[1] - height) // 2
    rows = 2 * r + 1
    for strip in prange(strips):
        top = height * strip // strips
        end = height * (strip + 1) // strips
        t = np.empty(SCRATCH, np.float32)
        c = np.empty(w.shape[0] * TILE, np.float32)
        ring = np.zeros((3, rows, width + 2 * r), np.float32)  # gradient of the last rows
        for y in range(top - r, end + r):
            ring[:, (y + r) % rows] = ZERO
            if 0 <= y < height:
                for x0 in range(0, width, TILE):
                    n = U(min(width - x0, TILE))
                    load(z, y, x0, n, r, t)
                    residuals(z, w, y, x0, n, r, t, c)
                    spread(w, y, x0, n, r, t, c, ring)
                    if y < end:
                        slopes(z, w, y, x0, n, r, alpha, t, ring)
            if y - r >= top:
                bad[y - r] = _update(
                    z, d, m, y - r, r, ring, first, second, out, lam, rate, slope_rate, two)


@njit(**INLINE)
def _update(z, d, m, y, r, ring, first, second, out, lam, rate, slope_rate, two):
    """Turn the gradient of a row into its ADAM step; return how many are not finite."""
    bad = 0
    n = U(d.shape[1])
    s = U(r)
    b1, b2 = np.float32(BETA1), np.float32(BETA2)
    for k in range(3):
        lr = rate if k == 0 else slope_rate
        g, old, new = ring[k, y % (2 * r + 1)], z[k, y + r], out[k, y + r]
        one, sq = first[k, y], second[k, y]
        for x in range(n):
            g[s + x] *= lam
        if k == 0:
            for x in range(n):
                e = old[s + x] - d[y, x]
                g[s + x] += m[y, x] * e / math.sqrt(e * e + SMOOTH2)
        for x in range(n):
            v = g[s + x]
            one[x] = b1 * one[x] + (ONE - b1) * v
            sq[x] = b2 * sq[x] + (ONE - b2) * v * v
            to = old[s + x] - lr * one[x] / (math.sqrt(sq[x] * two) + np.float32(EPSILON))
            new[s + x] = to
            bad += not abs(to) < _LIMIT
    return bad


def energy(state: State) -> float:
    """Return the energy in the scale of the input."""
    rows = np.empty((len(state.d), 3))
    _energy(state.z, state.w, state.d, state.m, rows)
    data, residual, slope = rows.sum(axis=0)
    lam, alpha, _ = state.terms
    return float(state.unit * (data + lam * (residual + alpha * slope)))


@njit(parallel=True, **FUSED)
def _energy(z, w, d, m, rows):
    """Sum the data, residual and slope terms of every row."""
    height, width = d.shape
    r = (z.shape[1] - height) // 2
    for y in prange(height):
        data, residual, slope = 0.0, 0.0, 0.0
        t = np.empty(SCRATCH, np.float32)
        c = np.empty(w.shape[0] * TILE, np.float32)
        for x0 in range(0, width, TILE):
            n = U(min(width - x0, TILE))
            load(z, y, x0, n, r, t)
            residuals(z, w, y, x0, n, r, t, c)
            s = U(x0)
            for x in range(n):
                e = t[D + x] - d[y, s + x]
                data += m[y, s + x] * norm(e * e)
            for x in range(n):
                residual += norm(t[NORM + x] - SMOOTH2)
            for o in range(w.shape[0]):
                dy, dx = step_to(o, w.shape[0], r)
                ux, uy = z[1, y + r + dy], z[2, y + r + dy]
                sj = U(x0 + r + dx)
                wo = w[o, y]
                for x in range(n):
                    ex = t[UX + x] - ux[sj + x]
                    ey = t[UY + x] - uy[sj + x]
                    slope += wo[s + x] * norm(ex * ex + ey * ey)
        rows[y, 0], rows[y, 1], rows[y, 2] = data, residual, slope
