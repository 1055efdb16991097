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
"""Iteratively re-weighted least squares with conjugate gradients; the twin of irls.py."""

from __future__ import annotations

from dataclasses import dataclass
import math

from numba import get_num_threads, njit, prange
import numpy as np

from graph_depth_refiner.fused.energy import energy as _energy
from graph_depth_refiner.fused.energy import NEIGHBOURHOOD, NLTGV
from graph_depth_refiner.fused.rows import (
    D, FUSED, INLINE, load, NORM, ONE, residuals, SCRATCH, SMOOTH2, spread, step_to, SUM, SUMX,
    SUMY, TILE, turns, U, UX, UY, ZERO)
from graph_depth_refiner.fused.solver import with_margin, without_margin
from graph_depth_refiner.problem import REGULARISERS, Terms, window_of


@dataclass
class State:
    """Where the minimisation stands, in noise units; planes with _ have a margin."""

    z_: np.ndarray  # 3 H+2r W+2r
    p_: np.ndarray  # the same: direction of the search
    rest: np.ndarray  # 3 H W: right side less left side
    image: np.ndarray  # 3 H W: the system applied to the direction
    diagonal: np.ndarray  # 3 H W: inverse of the diagonal of the system
    rise: np.ndarray  # O H W: weights of the squared residuals
    turn: np.ndarray  # 2 O/2 H W: weights of the squared slope differences
    fidelity: np.ndarray  # H W: weights of the squared data term
    dots: np.ndarray  # H: sums of rows
    w: np.ndarray  # O H W
    d: np.ndarray  # H W
    m: np.ndarray  # H W
    unit: float
    terms: Terms
    fine: bool = True
    taken: int = 0


def init(x, w, d, m, unit: float, terms: Terms) -> State:
    """Begin at the planes x."""
    edges, height, width = w.shape
    z = with_margin(x, unit, window_of(edges) // 2)
    planes_of = 2 if terms.regulariser == 'nltgv' else 1
    empty = [np.zeros((3, height, width), np.float32) for _ in range(3)]
    return State(
        z, np.zeros_like(z), *empty, np.empty_like(w),
        np.empty((planes_of, edges // 2, height, width), np.float32),
        np.empty_like(d), np.empty(height), w, d * np.float32(1 / unit), m, unit, terms)


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


def energy(state: State, x: np.ndarray | None = None) -> float:
    """Return the energy in the scale of the input, of other planes x if given."""
    terms = state.terms
    r = (state.z_.shape[1] - len(state.d)) // 2
    z = state.z_ if x is None else with_margin(x, state.unit, r)
    return state.unit * _energy(
        z, state.w, state.d, state.m, terms.lam, terms.alpha, terms.regulariser)


def planes(state: State) -> np.ndarray:
    """Return the planes in the scale of the input."""
    return without_margin(state.z_, state.unit, state.d.shape)


def _weigh(state: State) -> None:
    """Set up the least-squares system whose gradient here is that of the energy."""
    terms = state.terms
    regulariser = REGULARISERS.index(terms.regulariser)
    lam, alpha = np.float32(terms.lam), np.float32(terms.lam * terms.alpha)
    if regulariser == NEIGHBOURHOOD:
        _norms(state.z_, state.w, state.image[0])
    _weights(
        state.z_, state.w, state.d, state.m, lam, alpha, regulariser, state.image[0],
        state.rise, state.turn, state.fidelity)
    _diagonal(state.rise, state.turn, state.fidelity, state.diagonal)


def _solve(state: State, inner: int) -> None:
    """Improve the planes by conjugate gradients with the diagonal as preconditioner."""
    system = (state.rise, state.turn, state.fidelity)
    strips = min(len(state.d), get_num_threads())
    _apply(state.z_, *system, state.image, state.dots, strips)
    _begin(state.d, state.fidelity, state.image, state.diagonal, state.rest, state.p_, state.dots)
    now = state.dots.sum()
    for _ in range(inner):
        _apply(state.p_, *system, state.image, state.dots, strips)
        bend = state.dots.sum()
        if not bend > 0:  # solved: nothing is left to search
            return
        _advance(
            state.z_, state.p_, state.rest, state.image, state.diagonal,
            np.float32(now / bend), state.dots)
        before, now = now, state.dots.sum()
        _turn(state.p_, state.rest, state.diagonal, np.float32(now / before))


@njit(parallel=True, **FUSED)
def _norms(z, w, inverse):
    """Invert the norm of all slope differences of every pixel."""
    height, width = inverse.shape
    r = (z.shape[1] - height) // 2
    for y in prange(height):
        t = np.empty(SCRATCH, np.float32)
        to = inverse[y]
        for x0 in range(0, width, TILE):
            n, s = U(min(width - x0, TILE)), U(x0)
            load(z, y, x0, n, r, t)
            turns(z, w, y, x0, n, r, t)
            for x in range(n):
                to[s + x] = ONE / math.sqrt(t[NORM + x])


@njit(parallel=True, **FUSED)
def _weights(z, w, d, m, lam, alpha, regulariser, inverse, rise, turn, fidelity):
    edges, height, width = w.shape
    r = (z.shape[1] - height) // 2
    for row in prange(height):
        y = np.int64(row)
        t = np.empty(SCRATCH, np.float32)
        c = np.empty(edges * TILE, np.float32)
        for x0 in range(0, width, TILE):
            n, s = U(min(width - x0, TILE)), U(x0)
            load(z, y, x0, n, r, t)
            for x in range(n):
                e = t[D + x] - d[y, s + x]
                fidelity[y, s + x] = m[y, s + x] / math.sqrt(e * e + SMOOTH2)
            if regulariser == NLTGV:
                _rises_l1(z, w, y, x0, n, r, lam, t, rise)
            else:
                residuals(z, w, y, x0, n, r, t, c)
                for x in range(n):
                    t[NORM + x] = lam / math.sqrt(t[NORM + x])
                for o in range(edges):
                    wo, to = w[o, y], rise[o, y]
                    for x in range(n):
                        to[s + x] = wo[s + x] * wo[s + x] * t[NORM + x]
        for o in range(edges // 2, edges):
            dy, dx = step_to(o, edges, r)
            turn[:, o - edges // 2, y] = ZERO
            if y + dy < height:
                _turns(z, w, y, o, dy, dx, r, alpha, regulariser, inverse, turn)


@njit(**INLINE)
def _rises_l1(z, w, y, x0, n, r, lam, t, rise):
    for o in range(w.shape[0]):
        dy, dx = step_to(o, w.shape[0], r)
        fx, fy = np.float32(dx), np.float32(dy)
        there, wo, to = z[0, y + r + dy], w[o, y], rise[o, y]
        s, sj = U(x0), U(x0 + r + dx)
        for x in range(n):
            e = there[sj + x] - t[D + x] - t[UX + x] * fx - t[UY + x] * fy
            to[s + x] = lam * wo[s + x] / math.sqrt(e * e + SMOOTH2)


@njit(**INLINE)
def _turns(z, w, y, o, dy, dx, r, alpha, regulariser, inverse, turn):
    """Weigh the squared slope differences between a row and a row at or below it."""
    edges, _, width = w.shape
    wa, wb = w[o, y], w[edges - 1 - o, y + dy]
    a, b = U(max(0, -dx)), U(max(0, dx))
    za, zb = a + U(r), b + U(r)
    n = U(max(0, width - abs(dx)))
    ux, uy, vx, vy = z[1, y + r], z[2, y + r], z[1, y + r + dy], z[2, y + r + dy]
    to = turn[0, o - edges // 2, y]
    if regulariser == NEIGHBOURHOOD:
        ia, ib = inverse[y], inverse[y + dy]
        for x in range(n):
            back = wb[b + x] * wb[b + x] * ib[b + x]
            to[a + x] = alpha * (wa[a + x] * wa[a + x] * ia[a + x] + back)
    elif regulariser == NLTGV:
        also = turn[1, o - edges // 2, y]
        for x in range(n):
            ex = ux[za + x] - vx[zb + x]
            to[a + x] = alpha * (wa[a + x] + wb[b + x]) / math.sqrt(ex * ex + SMOOTH2)
        for x in range(n):
            ey = uy[za + x] - vy[zb + x]
            also[a + x] = alpha * (wa[a + x] + wb[b + x]) / math.sqrt(ey * ey + SMOOTH2)
    else:
        for x in range(n):
            ex = ux[za + x] - vx[zb + x]
            ey = uy[za + x] - vy[zb + x]
            both = wa[a + x] + wb[b + x]
            to[a + x] = alpha * both / math.sqrt(ex * ex + ey * ey + SMOOTH2)


@njit(parallel=True, **FUSED)
def _diagonal(rise, turn, fidelity, diagonal):
    """Invert the diagonal of the system; where it is 0 nothing can or need be solved."""
    edges, height, width = rise.shape
    r = int(math.sqrt(edges + 1.0)) // 2
    for row in prange(height):
        y = np.int64(row)
        sums = np.zeros((3, width), np.float32)
        d, ux, uy = sums[0], sums[1], sums[2]
        d[:] = fidelity[y]
        for o in range(edges):
            dy, dx = step_to(o, edges, r)
            fx, fy = np.float32(dx * dx), np.float32(dy * dy)
            mine = rise[o, y]
            for x in range(U(width)):
                d[x] += mine[x]
                ux[x] += mine[x] * fx
                uy[x] += mine[x] * fy
            if 0 <= y + dy < height:
                back = rise[edges - 1 - o, y + dy]
                a, b = U(max(0, -dx)), U(max(0, dx))
                for x in range(U(max(0, width - abs(dx)))):
                    d[a + x] += back[b + x]
                half = o - edges // 2
                mirrored = edges - 1 - o - edges // 2
                for k in range(2):
                    of = min(k, turn.shape[0] - 1)
                    u = sums[1 + k]
                    both = turn[of, half, y] if half >= 0 else turn[of, mirrored, y + dy]
                    c = a if half >= 0 else b
                    for x in range(U(max(0, width - abs(dx)))):
                        u[a + x] += both[c + x]
        for k in range(3):
            for x in range(U(width)):
                v = sums[k, x]
                diagonal[k, y, x] = ONE / v if v > ZERO else ZERO


@njit(parallel=True, **FUSED)
def _apply(p, rise, turn, fidelity, out, dots, strips):
    """Apply the system to planes with a margin; dots are the rows of <p, out>."""
    edges, height, width = rise.shape
    r = (p.shape[1] - height) // 2
    rows = 2 * r + 1
    for strip in prange(strips):
        top = height * strip // strips
        end = height * (strip + 1) // strips
        t = np.empty(SCRATCH, np.float32)
        c = np.empty(edges * TILE, np.float32)
        ring = np.zeros((3, rows, width + 2 * r), np.float32)
        for y in range(top - r, end + r):
            ring[:, (y + r) % rows] = ZERO
            if 0 <= y < height:
                for x0 in range(0, width, TILE):
                    n = U(min(width - x0, TILE))
                    load(p, y, x0, n, r, t)
                    _rises(p, rise, y, x0, n, r, t, c)
                    spread(rise, y, x0, n, r, t, c, ring)
                _apply_turns(p, turn, y, r, ring)
            if y - r >= top:
                dots[y - r] = _gather(p, y - r, r, fidelity, ring, out)


@njit(**INLINE)
def _rises(z, rise, y, x0, n, r, t, c):
    """Do as `residuals`, with weights given."""
    edges = rise.shape[0]
    at = U(x0)
    for x in range(n):
        t[NORM + x] = ONE
    for o in range(edges // 2):  # with its mirror
        dy, dx = step_to(o, edges, r)
        fx, fy = np.float32(dx), np.float32(dy)
        e = U(2 * o * TILE)
        f = e + U(TILE)
        da, db = z[0, y + r + dy], z[0, y + r - dy]
        wa, wb = rise[o, y], rise[edges - 1 - o, y]
        sa, sb = U(x0 + r + dx), U(x0 + r - dx)
        for x in range(n):
            slope = t[UX + x] * fx + t[UY + x] * fy
            a = wa[at + x] * (da[sa + x] - t[D + x] - slope)
            b = wb[at + x] * (db[sb + x] - t[D + x] + slope)
            c[e + x] = a
            c[f + x] = b
            t[SUM + x] += a + b
            t[SUMX + x] += (a - b) * fx
            t[SUMY + x] += (a - b) * fy


@njit(**INLINE)
def _apply_turns(p, turn, y, r, ring):
    """Add the weighted slope differences of a row to the rows of both ends."""
    _, half, height, width = turn.shape
    rows = 2 * r + 1
    for o in range(half):
        dy, dx = step_to(half + o, 2 * half, r)
        if y + dy >= height:
            break
        a = U(max(0, -dx))
        za, zb = a + U(r), U(max(0, dx) + r)
        n = U(max(0, width - abs(dx)))
        for k in range(2):
            by = turn[min(k, turn.shape[0] - 1), o, y]
            u, v = p[1 + k, y + r], p[1 + k, y + r + dy]
            g, h = ring[1 + k, y % rows], ring[1 + k, (y + dy) % rows]
            if dy == 0:
                for x in range(n):
                    g[za + x] += by[a + x] * (u[za + x] - u[zb + x])
                for x in range(n):
                    g[zb + x] -= by[a + x] * (u[za + x] - u[zb + x])
            else:
                for x in range(n):
                    e = by[a + x] * (u[za + x] - v[zb + x])
                    g[za + x] += e
                    h[zb + x] -= e


@njit(**INLINE)
def _gather(p, y, r, fidelity, ring, out):
    total = 0.0
    s = U(r)
    for k in range(3):
        g, here, to = ring[k, y % (2 * r + 1)], p[k, y + r], out[k, y]
        if k == 0:
            for x in range(U(to.size)):
                g[s + x] += fidelity[y, x] * here[s + x]
        for x in range(U(to.size)):
            to[x] = g[s + x]
            total += here[s + x] * g[s + x]
    return total


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
            at, by, to, left, scale = z[k, y + r], p[k, y + r], rest[k, y], image[k, y], diagonal[k, y]
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
