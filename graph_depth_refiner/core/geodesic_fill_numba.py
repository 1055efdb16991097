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
"""Planes of holes by geodesic distance in the image: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.geodesic_fill import (
    APART,
    BACK,
    FITS,
    NO_WAY,
    ROUNDS,
    STEPS,
    STRAIGHT_ON,
)
from graph_depth_refiner.core.jit.options import FUSED, INLINE, U


def geodesic_fill(d: np.ndarray, m: np.ndarray, color: np.ndarray, sigma: float,
           planes: np.ndarray) -> None:
    """Give pixels of holes the plane at the end of the smoothest way through the image."""
    height, width = d.shape
    room = height + 2, width + 2  # a border that no way leads through
    cost, begins = np.empty(room, np.int32), np.empty(room, np.int32)
    changes = np.zeros((len(BACK), *room), np.int32)
    holes = np.empty(d.size, np.uint32)
    _look(d, m, color, np.float32(FITS * sigma), planes[0], cost, begins, changes)
    count = _list(m, holes)
    _sweep(holes[:count], room[1], cost.ravel(), begins.ravel(),
               changes.reshape(len(BACK), -1))
    _go_on(holes[:count], room[1], begins.ravel(), np.float32(APART * sigma), planes)


@njit(parallel=True, **FUSED)
def _look(d, m, color, close, value, cost, begins, changes):
    """Prepare ways: 0 where they begin, and what a step to each neighbour before costs."""
    height, width = d.shape
    stride = width + 2
    cost[0], cost[height + 1], cost[:, 0], cost[:, width + 1] = NO_WAY, NO_WAY, NO_WAY, NO_WAY
    for row in prange(height):
        y = np.int64(row)
        _begin_sources(d[y], m[y], value[y], close, (y + 1) * stride + 1, cost[y + 1, 1:],
                    begins[y + 1, 1:])
        for n in range(len(BACK)):
            dy, dx = BACK[n]
            if y + dy < 0:
                continue
            first, last = max(0, -dx), width - max(0, dx)
            changes[n, y + 1] = STEPS[n]
            for c in range(color.shape[0]):
                _add_changes(color[c, y, first:last], color[c, y + dy, first + dx:last + dx],
                             changes[n, y + 1, first + 1:])


@njit(**INLINE)
def _begin_sources(d, m, value, close, place, cost, begins):
    for x in range(U(d.size)):
        fits = (m[x] > 0) & (abs(d[x] - value[x]) < close)
        cost[x] = np.int32(0) if fits else np.int32(NO_WAY)
        begins[x] = np.int32(place) + np.int32(x)


@njit(**INLINE)
def _add_changes(here, there, changes):
    for x in range(U(here.size)):
        change = np.int32(here[x]) - np.int32(there[x])
        changes[x] += change * change


@njit(**FUSED)
def _list(m, holes):
    """List the pixels of holes by their place in an image with a border; return how many."""
    height, width = m.shape
    count = 0
    for y in range(height):
        for x in range(width):
            holes[count] = (y + 1) * (width + 2) + x + 1
            count += m[y, x] <= 0
    return count


@njit(**FUSED)
def _sweep(holes, stride, cost, begins, changes):
    """Find the cheapest way to each pixel of a hole, and where it begins."""
    for sweep in range(2 * ROUNDS):
        forth = sweep % 2 == 0
        for k in range(U(holes.size)):
            at = U(holes[k if forth else U(holes.size - 1) - k])
            least, begin = cost[at], begins[at]
            for n in range(len(BACK)):
                before = U(-BACK[n][0] * stride - BACK[n][1])
                there = at - before if forth else at + before
                total = cost[there] + changes[n, at if forth else there]
                if total < least:
                    least, begin = total, begins[there]
            cost[at], begins[at] = least, begin


@njit(**FUSED)
def _go_on(holes, stride, begins, apart, planes):
    """Give pixels of holes the plane their way begins at, if it is another."""
    for k in range(holes.size):
        y, x = holes[k] // stride - 1, holes[k] % stride - 1
        v, u = begins[holes[k]] // stride - 1, begins[holes[k]] % stride - 1
        ux, uy = planes[1, v, u], planes[2, v, u]
        value = planes[0, v, u] + np.float32(STRAIGHT_ON) * (ux * (x - u) + uy * (y - v))
        if value > 0 and abs(value - planes[0, y, x]) > apart:
            planes[0, y, x], planes[1, y, x], planes[2, y, x] = value, ux, uy
