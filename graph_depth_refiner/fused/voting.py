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
"""Each pixel's vote between the planes around it; the twin of `graph_depth_refiner.voting`."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.fused.fading import fading
from graph_depth_refiner.fused.rows import FUSED, U, ZERO
from graph_depth_refiner.voting_rules import (
    CAP,
    CARRIED_SHARE,
    DIFFERENT,
    FAR,
    FAR_FADE,
    MOST,
    NEAR,
    REACH,
    STEEP,
    VOTERS,
)

_NEAR, _FAR = np.array(NEAR), np.array(FAR)
_LOOK = np.array(NEAR + FAR)
_ROWS = np.array([dy for dy, _ in VOTERS])
_COLUMNS = np.array([dx for _, dx in VOTERS])
_SIZE = len(VOTERS)
_DY, _DX = _ROWS.astype(np.float32), _COLUMNS.astype(np.float32)
_DISTANCE = np.float32(FAR_FADE) * (_DY * _DY + _DX * _DX)
_INLINE = {**FUSED, 'forceinline': True}


def vote(d: np.ndarray, m: np.ndarray, color: np.ndarray, start: np.ndarray,
         carried: np.ndarray, evidence: np.ndarray, carried_color: np.ndarray, sigma: float,
         likeness: float, slopes: bool = True) -> np.ndarray:
    """
    Return for every pixel the plane, 3 H W, that suits its look-alikes best.

    The planes that stand for election are those of the start and the carried ones of the
    pixel and around it. Voters are the measurements and the carried planes in a window,
    weighted by the likeness of their colour (C H W, uint8). Without `slopes` planes that
    differ in slope only are taken as equal.
    """
    chosen = start.copy()
    _vote(d, m, color, start, carried, evidence, carried_color, np.float32(sigma),
          np.float32(0.5 / (255.0 * likeness) ** 2), np.float32(STEEP if slopes else 0.0), chosen)
    return chosen


@njit(**{**FUSED, 'forceinline': True})
def _flag(start, y, dy, dx, other, limit, steep, sigma, flags):
    """Flag the pixels of a row whose plane is not that of the neighbour at (dy, dx)."""
    width = start.shape[2]
    here, there = U(max(0, -dx)), U(max(0, dx))
    d, ux, uy = start[0, y], start[1, y], start[2, y]
    e, vx, vy = other[0, y + dy], other[1, y + dy], other[2, y + dy]
    fx, fy = np.float32(dx), np.float32(dy)
    for x in range(U(max(0, width - abs(dx)))):
        i, j = here + x, there + x
        off = abs(e[j] - vx[j] * fx - vy[j] * fy - d[i])
        turn = (abs(vx[j] - ux[i]) + abs(vy[j] - uy[i])) * steep
        flags[i] += np.int32(off > limit) + np.int32(turn > sigma)


@njit(parallel=True, **FUSED)
def _vote(d, m, color, start, carried, evidence, carried_color, sigma, fade, steep, chosen):
    for y in prange(d.shape[0]):  # prange counts unsigned, and -y would wrap around
        _vote_row(d, m, color, start, carried, evidence, carried_color, sigma, fade, steep,
                  np.int64(y), chosen)


@njit(**FUSED)
def _vote_row(d, m, color, start, carried, evidence, carried_color, sigma, fade, steep, y,
              chosen):
    height, width = d.shape
    limit = np.float32(DIFFERENT) * sigma
    flags = np.zeros(width, np.int32)
    for n in range(_FAR.shape[0]):
        if 0 <= y + _FAR[n, 0] < height:
            _flag(start, y, _FAR[n, 0], _FAR[n, 1], start, limit, steep, sigma, flags)
    for x in range(width):
        if evidence[y, x] > 0:
            off = abs(carried[0, y, x] - start[0, y, x])
            turn = abs(carried[1, y, x] - start[1, y, x]) \
                + abs(carried[2, y, x] - start[2, y, x])
            flags[x] += np.int32(off > limit) + np.int32(turn * steep > sigma)
    planes = np.empty((MOST, 3), np.float32)
    window = np.zeros((6, _SIZE), np.float32)
    for x in range(width):
        if flags[x] > 0:
            count = _candidates(start, carried, evidence, y, x, limit, steep, sigma, planes)
            best = 0
            if count > 1:
                _gather(d, m, color, carried, evidence, carried_color, y, x, fade, window)
                best = _elect(planes, count, window, sigma)
            if count > 0:
                for k in range(3):
                    chosen[k, y, x] = planes[best, k]


@njit(**_INLINE)
def _candidates(start, carried, evidence, y, x, limit, steep, sigma, planes):
    """List the different planes around a pixel, its own first; return how many."""
    height, width = evidence.shape
    count = 0
    for n in range(_LOOK.shape[0]):
        dy, dx = _LOOK[n, 0], _LOOK[n, 1]
        v, u = y + dy, x + dx
        if v < 0 or u < 0 or v >= height or u >= width:
            continue
        for old in range(2 if n < _NEAR.shape[0] else 1):
            if old and evidence[v, u] <= 0:
                continue
            field = carried if old else start
            ux, uy = field[1, v, u], field[2, v, u]
            value = field[0, v, u] - ux * np.float32(dx) - uy * np.float32(dy)
            new = value > 0 and count < MOST
            for k in range(count):
                turn = abs(planes[k, 1] - ux) + abs(planes[k, 2] - uy)
                if abs(planes[k, 0] - value) <= limit and turn * steep <= sigma:
                    new = False
                    break
            if new:
                planes[count, 0], planes[count, 1], planes[count, 2] = value, ux, uy
                count += 1
    return count


@njit(**_INLINE)
def _gather(d, m, color, carried, evidence, carried_color, y, x, fade, window):
    """Fill the window: measured d and weight, carried d and weight."""
    height, width = d.shape
    inside = y >= REACH and x >= REACH and y < height - REACH and x < width - REACH
    for k in range(_SIZE):
        v, u = y + _ROWS[k], x + _COLUMNS[k]
        if not inside and (v < 0 or u < 0 or v >= height or u >= width):
            window[0, k] = window[1, k] = window[2, k] = window[3, k] = ZERO
            window[4, k] = window[5, k] = ZERO
            continue
        window[0, k], window[1, k] = d[v, u], m[v, u]
        window[2, k], window[3, k] = carried[0, v, u], evidence[v, u]
        unlike, unlike_old = np.int32(0), np.int32(0)
        for c in range(color.shape[0]):
            mine = np.int32(color[c, y, x])
            one = np.int32(color[c, v, u]) - mine
            two = np.int32(carried_color[c, v, u]) - mine
            unlike += one * one
            unlike_old += two * two
        window[4, k], window[5, k] = np.float32(unlike), np.float32(unlike_old)
    for k in range(U(_SIZE)):
        window[1, k] *= fading(window[4, k] * fade + _DISTANCE[k])
    for k in range(U(_SIZE)):
        window[3, k] *= np.float32(CARRIED_SHARE) * fading(window[5, k] * fade + _DISTANCE[k])


@njit(**_INLINE)
def _elect(planes, count, window, sigma):
    """Return which of the planes is nearest to all voters, each capped."""
    cap = np.float32(CAP) * sigma
    best, least = 0, np.float32(np.inf)
    for n in range(count):
        value, ux, uy = planes[n, 0], planes[n, 1], planes[n, 2]
        total = ZERO
        for k in range(U(_SIZE)):
            there = value + ux * _DX[k] + uy * _DY[k]
            total += window[1, k] * min(abs(window[0, k] - there), cap) \
                + window[3, k] * min(abs(window[2, k] - there), cap)
        if total < least:
            best, least = n, total
    return best
