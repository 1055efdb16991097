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
"""Iteratively re-weighted least squares with conjugate gradients: CPU kernels."""

from __future__ import annotations

from dataclasses import dataclass
import math

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.energy import REGULARISERS
from graph_depth_refiner.core.energy_numba import energy as _energy
from graph_depth_refiner.core.jit.options import FUSED, INLINE, ONE, U, ZERO
from graph_depth_refiner.core.jit.simd import (
    inside_run,
    inverse_root,
    LANES,
    load_run,
    spread_run,
    store_run,
    sum_run,
)
from graph_depth_refiner.core.patch_graph import window_of
from graph_depth_refiner.core.rows_numba import (
    NEIGHBOURHOOD,
    NLTGV,
    residual_norms,
    slope_norms,
    SLOPE_SMOOTH2,
    SMOOTH2,
    step_to,
    wide_enough,
    with_margin,
    without_margin,
)
from graph_depth_refiner.core.types import Terms


@dataclass
class State:
    """Where the minimisation stands, in noise units; planes with _ have a margin."""

    z_: np.ndarray  # 3 H+2r W+2r
    p_: np.ndarray  # the same: direction of the search
    rest: np.ndarray  # 3 H W: right side less left side
    image: np.ndarray  # 3 H W: the system applied to the direction
    diagonal: np.ndarray  # 3 H W: inverse of the diagonal of the system
    residual_weight: np.ndarray  # O H W: weights of the squared residuals
    slope_weight: np.ndarray  # 2 O/2 H W: weights of the squared slope differences
    fidelity: np.ndarray  # H W: weights of the squared data term
    dots: np.ndarray  # H: sums of rows
    w: np.ndarray  # O H W
    d: np.ndarray  # H W
    m: np.ndarray  # H W
    unit: float
    terms: Terms
    width: int  # of the image; the arrays are never narrower than a run
    fine: bool = True
    taken: int = 0


def init(x, w, d, m, unit: float, terms: Terms) -> State:
    """Begin at the planes x."""
    original = d.shape[1]
    x, w, d, m = wide_enough(x, w, d, m)
    edges, height, width = w.shape
    z = with_margin(x, unit, window_of(edges) // 2)
    planes_of = 2 if terms.regulariser == 'nltgv' else 1
    rest, image, diagonal = np.zeros((3, 3, height, width), np.float32)
    return State(
        z, np.zeros_like(z), rest, image, diagonal, np.empty_like(w),
        np.empty((planes_of, edges // 2, height, width), np.float32),
        np.empty_like(d), np.empty(height), w, d * np.float32(1 / unit), m, unit, terms,
        original)


def step(state: State, inner: int) -> None:
    """Re-weigh once and take `inner` steps of conjugate gradients, unless not finite."""
    if not state.fine:
        return
    before = state.z_.copy()
    _weigh(state)
    _solve(state, inner)
    state.fine = bool(np.isfinite(state.z_).all())
    if state.fine:
        state.taken += inner
    else:
        state.z_ = before


def finite(state: State) -> bool:
    """Tell whether all steps so far were finite."""
    return state.fine


def taken(state: State) -> int:
    """Return how many steps of conjugate gradients were taken."""
    return state.taken


def energy(state: State, x: np.ndarray | None = None, every: int = 1) -> float:
    """Return the energy in the scale of the input, of other planes x if given; see `_energy`."""
    terms = state.terms
    r = (state.z_.shape[1] - len(state.d)) // 2
    z = state.z_ if x is None else with_margin(wide_enough(x)[0], state.unit, r)
    return state.unit * _energy(
        z, state.w, state.d, state.m, terms.lam, terms.alpha, terms.regulariser, every)


def planes(state: State) -> np.ndarray:
    """Return the planes in the scale of the input."""
    return without_margin(state.z_, state.unit, (len(state.d), state.width))


def _weigh(state: State) -> None:
    """Set up the least-squares system whose gradient here is that of the energy."""
    terms = state.terms
    regulariser = REGULARISERS.index(terms.regulariser)
    inverse = np.zeros_like(state.z_[0])  # of the slope norms, with a margin
    if regulariser == NEIGHBOURHOOD:
        _slope_norms(state.z_, state.w, inverse)
    _weights(
        state.z_, state.w, state.d, state.m, np.float32(terms.lam),
        np.float32(terms.lam * terms.alpha), regulariser, inverse, state.residual_weight,
        state.slope_weight, state.fidelity)
    _diagonal(state.residual_weight, state.slope_weight, state.fidelity, state.diagonal)


def _solve(state: State, inner: int) -> None:
    """Improve the planes by conjugate gradients with the diagonal as preconditioner."""
    system = (state.residual_weight, state.slope_weight, state.fidelity)
    _apply(state.z_, *system, state.image, state.dots)
    _begin(state.d, state.fidelity, state.image, state.diagonal, state.rest, state.p_, state.dots)
    now = state.dots.sum()
    for _ in range(inner):
        _apply(state.p_, *system, state.image, state.dots)
        curvature = state.dots.sum()
        if curvature <= 0:  # solved: nothing is left to search
            return
        _advance(
            state.z_, state.p_, state.rest, state.image, state.diagonal,
            np.float32(now / curvature), state.dots)
        before, now = now, state.dots.sum()
        _turn(state.p_, state.rest, state.diagonal, np.float32(now / before))


@njit(parallel=True, **FUSED)
def _slope_norms(z, w, inverse):
    for row in prange(w.shape[1]):
        y = np.int64(row)
        r = (z.shape[1] - w.shape[1]) // 2
        slope_norms(z, w, y, r, inverse[y + r])


@njit(parallel=True, **FUSED)
def _weights(z, w, d, m, lam, alpha, regulariser, inverse, residual_weight, slope_weight,
             fidelity):
    edges, height, width = w.shape
    r = (z.shape[1] - height) // 2
    for row in prange(height):
        y = np.int64(row)
        outgoing = np.empty((3, z.shape[2]), np.float32)
        norms = np.empty(z.shape[2], np.float32)
        if regulariser != NLTGV:
            residual_norms(z, w, y, r, outgoing, norms)
        for start in range(0, width, LANES):
            x = min(start, width - LANES)
            e = load_run(z[0, y + r], U(x + r)) - load_run(d[y], U(x))
            weight = inverse_root(e * e + spread_run(SMOOTH2))
            store_run(fidelity[y], U(x), load_run(m[y], U(x)) * weight)
            _rise_weights(z, w, y, x, r, lam, regulariser, norms, residual_weight)
            _turn_weights(z, w, y, x, r, alpha, regulariser, inverse, slope_weight)


@njit(**INLINE)
def _rise_weights(z, w, y, x, r, lam, regulariser, norms, residual_weight):
    s = U(x + r)
    di, ui, vi = load_run(z[0, y + r], s), load_run(z[1, y + r], s), load_run(z[2, y + r], s)
    norm = spread_run(lam) * load_run(norms, s)
    for o in range(w.shape[0]):
        wij = load_run(w[U(o), U(y)], U(x))
        if regulariser == NLTGV:
            dy, dx = step_to(o, w.shape[0], r)
            e = load_run(z[0, U(y + r + dy)], U(x + r + dx)) - di - (
                ui * spread_run(np.float32(dx)) + vi * spread_run(np.float32(dy)))
            by = wij * spread_run(lam) * inverse_root(e * e + spread_run(SMOOTH2))
        else:
            by = wij * wij * norm
        store_run(residual_weight[U(o), U(y)], U(x), by)


@njit(**INLINE)
def _turn_weights(z, w, y, x, r, alpha, regulariser, inverse, slope_weight):
    """Weigh the slope differences to the pixels after a run, both directions together."""
    edges, height, width = w.shape
    s = U(x + r)
    ui, vi = load_run(z[1, y + r], s), load_run(z[2, y + r], s)
    small, by = spread_run(SLOPE_SMOOTH2), spread_run(alpha)
    for half in range(edges // 2):
        o = half + edges // 2
        dy, dx = step_to(o, edges, r)
        if y + dy >= height:
            for k in range(slope_weight.shape[0]):
                store_run(slope_weight[U(k), U(half), U(y)], U(x), spread_run(ZERO))
            continue
        j, below = U(x + r + dx), U(y + r + dy)
        wij = load_run(w[U(o), U(y)], U(x))
        wji = load_run(w[U(edges - 1 - o), U(y + dy)], U(x + dx))
        wji = inside_run(wji, np.int32(x + dx), np.int32(width))
        ex, ey = ui - load_run(z[1, below], j), vi - load_run(z[2, below], j)
        both = by * (wij + wji)
        if regulariser == NLTGV:
            store_run(slope_weight[0, U(half), U(y)], U(x), both * inverse_root(ex * ex + small))
            store_run(slope_weight[1, U(half), U(y)], U(x), both * inverse_root(ey * ey + small))
        elif regulariser == NEIGHBOURHOOD:
            other = wji * wji * load_run(inverse[below], j)
            centre = wij * wij * load_run(inverse[y + r], s)
            store_run(slope_weight[0, U(half), U(y)], U(x), by * (centre + other))
        else:
            store_run(slope_weight[0, U(half), U(y)], U(x),
                      both * inverse_root(ex * ex + ey * ey + small))


@njit(parallel=True, **FUSED)
def _diagonal(residual_weight, slope_weight, fidelity, diagonal):
    """Invert the diagonal of the system; where it is 0 nothing can or need be solved."""
    edges, height, width = residual_weight.shape
    r = int(math.sqrt(edges + 1.0)) // 2
    for row in prange(height):
        y = np.int64(row)
        sums = np.zeros((3, width), np.float32)
        d, ux, uy = sums[0], sums[1], sums[2]
        d[:] = fidelity[y]
        for o in range(edges):
            dy, dx = step_to(o, edges, r)
            fx, fy = np.float32(dx * dx), np.float32(dy * dy)
            part = residual_weight[o, y]
            for x in range(U(width)):
                d[x] += part[x]
                ux[x] += part[x] * fx
                uy[x] += part[x] * fy
            if 0 <= y + dy < height:
                back = residual_weight[edges - 1 - o, y + dy]
                a, b = U(max(0, -dx)), U(max(0, dx))
                for x in range(U(max(0, width - abs(dx)))):
                    d[a + x] += back[b + x]
                half = o - edges // 2
                mirrored = edges - 1 - o - edges // 2
                for k in range(2):
                    of = min(k, slope_weight.shape[0] - 1)
                    u = sums[1 + k]
                    both = slope_weight[of, half, y] if half >= 0 \
                        else slope_weight[of, mirrored, y + dy]
                    c = a if half >= 0 else b
                    for x in range(U(max(0, width - abs(dx)))):
                        u[a + x] += both[c + x]
        for k in range(3):
            for x in range(U(width)):
                v = sums[k, x]
                diagonal[k, y, x] = ONE / v if v > ZERO else ZERO


@njit(parallel=True, **FUSED)
def _apply(p, residual_weight, slope_weight, fidelity, out, dots):
    """Apply the system to planes with a margin; dots are the rows of <p, out>."""
    _, height, width = residual_weight.shape
    r = (p.shape[1] - height) // 2
    for row in prange(height):
        y = np.int64(row)
        total = 0.0
        for start in range(0, width, LANES):
            x = min(start, width - LANES)
            s = U(x + r)
            gd, gx, gy = _gather(p, residual_weight, slope_weight, y, x, r)
            d = load_run(p[0, y + r], s)
            gd = gd + load_run(fidelity[y], U(x)) * d
            store_run(out[0, y], U(x), gd)
            store_run(out[1, y], U(x), gx)
            store_run(out[2, y], U(x), gy)
            dot = d * gd + load_run(p[1, y + r], s) * gx + load_run(p[2, y + r], s) * gy
            total += sum_run(inside_run(dot, np.int32(x - start), np.int32(LANES)))
        dots[y] = total


@njit(**INLINE)
def _gather(p, residual_weight, slope_weight, y, x, r):
    """Return what the edges of a run of pixels, out and in, add to each of its planes."""
    edges, height, width = residual_weight.shape
    s = U(x + r)
    last = slope_weight.shape[0] - 1
    di, ui, vi = load_run(p[0, y + r], s), load_run(p[1, y + r], s), load_run(p[2, y + r], s)
    gd = spread_run(ZERO)
    gx = gd
    gy = gd
    for o in range(edges):
        dy, dx = step_to(o, edges, r)
        if not 0 <= y + dy < height:
            continue
        j, row = U(x + r + dx), U(y + r + dy)
        fx, fy = spread_run(np.float32(dx)), spread_run(np.float32(dy))
        dj, uj, vj = load_run(p[0, row], j), load_run(p[1, row], j), load_run(p[2, row], j)
        back = load_run(residual_weight[U(edges - 1 - o), U(y + dy)], U(x + dx))
        back = inside_run(back, np.int32(x + dx), np.int32(width))
        outgoing_part = load_run(residual_weight[U(o), U(y)], U(x)) * (dj - di - ui * fx - vi * fy)
        gd = gd + back * (di - dj + uj * fx + vj * fy) - outgoing_part
        half = o - edges // 2
        if half >= 0:
            tx = load_run(slope_weight[0, U(half), U(y)], U(x))
            ty = load_run(slope_weight[U(last), U(half), U(y)], U(x))
        else:
            tx = load_run(slope_weight[0, U(-1 - half), U(y + dy)], U(x + dx))
            ty = load_run(slope_weight[U(last), U(-1 - half), U(y + dy)], U(x + dx))
            tx = inside_run(tx, np.int32(x + dx), np.int32(width))
            ty = inside_run(ty, np.int32(x + dx), np.int32(width))
        gx = gx + tx * (ui - uj) - outgoing_part * fx
        gy = gy + ty * (vi - vj) - outgoing_part * fy
    return gd, gx, gy


@njit(parallel=True, **FUSED)
def _begin(d, fidelity, image, diagonal, rest, p, dots):
    """Start the search along the preconditioned rest."""
    height, width = d.shape
    r = (p.shape[1] - height) // 2
    s = U(r)
    for y in prange(height):
        total = 0.0
        for k in range(3):
            to, by, left, at = rest[k, y], diagonal[k, y], image[k, y], p[k, y + r]
            for x in range(U(width)):
                right = fidelity[y, x] * d[y, x] if k == 0 else ZERO
                to[x] = right - left[x]
                at[s + x] = by[x] * to[x]
                total += to[x] * to[x] * by[x]
        dots[y] = total


@njit(parallel=True, **FUSED)
def _advance(z, p, rest, image, diagonal, length, dots):
    """Go along the direction; dots are the rows of the new rest's norm."""
    _, height, width = rest.shape
    r = (p.shape[1] - height) // 2
    s = U(r)
    for y in prange(height):
        total = 0.0
        for k in range(3):
            at, by, to = z[k, y + r], p[k, y + r], rest[k, y]
            left, scale = image[k, y], diagonal[k, y]
            for x in range(U(width)):
                at[s + x] += length * by[s + x]
                to[x] -= length * left[x]
                total += to[x] * to[x] * scale[x]
        dots[y] = total


@njit(parallel=True, **FUSED)
def _turn(p, rest, diagonal, share):
    """Turn the direction towards the new rest."""
    _, height, width = rest.shape
    r = (p.shape[1] - height) // 2
    s = U(r)
    for y in prange(height):
        for k in range(3):
            at, to, by = p[k, y + r], rest[k, y], diagonal[k, y]
            for x in range(U(width)):
                at[s + x] = by[x] * to[x] + share * at[s + x]
