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
    FIT_LIMIT,
    PREVIOUS,
    ROUNDS,
    SLOPE_SHARE,
    STEP_COSTS,
    UNREACHED,
)
from graph_depth_refiner.core.jit.options import FUSED, INLINE, U


def geodesic_fill(d: np.ndarray, m: np.ndarray, color: np.ndarray, sigma: float,
                  planes: np.ndarray) -> None:
    """Give pixels of holes the plane of the measured pixel nearest in the image, in place."""
    height, width = d.shape
    room = height + 2, width + 2  # a border that no path leads through
    cost, sources = np.empty(room, np.int32), np.empty(room, np.int32)
    changes = np.zeros((len(PREVIOUS), *room), np.int32)
    holes = np.empty(d.size, np.uint32)
    _prepare(d, m, color, np.float32(FIT_LIMIT * sigma), planes[0], cost, sources, changes)
    count = _list_holes(m, holes)
    _sweep(holes[:count], room[1], cost.ravel(), sources.ravel(),
           changes.reshape(len(PREVIOUS), -1))
    _extend_planes(holes[:count], room[1], sources.ravel(), np.float32(APART * sigma), planes)


@njit(parallel=True, **FUSED)
def _prepare(d, m, color, close, value, cost, sources, changes):
    """Prepare paths: cost 0 where they begin, and that of a step to each previous neighbour."""
    height, width = d.shape
    stride = width + 2
    cost[0], cost[height + 1] = UNREACHED, UNREACHED
    cost[:, 0], cost[:, width + 1] = UNREACHED, UNREACHED
    for row in prange(height):
        y = np.int64(row)
        _init_sources(d[y], m[y], value[y], close, (y + 1) * stride + 1, cost[y + 1, 1:],
                      sources[y + 1, 1:])
        for n in range(len(PREVIOUS)):
            dy, dx = PREVIOUS[n]
            if y + dy < 0:
                continue
            first, last = max(0, -dx), width - max(0, dx)
            changes[n, y + 1] = STEP_COSTS[n]
            for c in range(color.shape[0]):
                _add_changes(color[c, y, first:last], color[c, y + dy, first + dx:last + dx],
                             changes[n, y + 1, first + 1:])


@njit(**INLINE)
def _init_sources(d, m, value, close, place, cost, sources):
    for x in range(U(d.size)):
        fits = (m[x] > 0) & (abs(d[x] - value[x]) < close)
        cost[x] = np.int32(0) if fits else np.int32(UNREACHED)
        sources[x] = np.int32(place) + np.int32(x)


@njit(**INLINE)
def _add_changes(centre, other, changes):
    for x in range(U(centre.size)):
        change = np.int32(centre[x]) - np.int32(other[x])
        changes[x] += change * change


@njit(**FUSED)
def _list_holes(m, holes):
    """List the pixels of holes by their place in an image with a border; return how many."""
    height, width = m.shape
    count = 0
    for y in range(height):
        for x in range(width):
            holes[count] = (y + 1) * (width + 2) + x + 1
            count += m[y, x] <= 0
    return count


@njit(**FUSED)
def _sweep(holes, stride, cost, sources, changes):
    """Find the cheapest path to each pixel of a hole, and where it begins."""
    for sweep in range(2 * ROUNDS):
        forth = sweep % 2 == 0
        for k in range(U(holes.size)):
            at = U(holes[k if forth else U(holes.size - 1) - k])
            least, begin = cost[at], sources[at]
            for n in range(len(PREVIOUS)):
                before = U(-PREVIOUS[n][0] * stride - PREVIOUS[n][1])
                other = at - before if forth else at + before
                total = cost[other] + changes[n, at if forth else other]
                if total < least:
                    least, begin = total, sources[other]
            cost[at], sources[at] = least, begin


@njit(**FUSED)
def _extend_planes(holes, stride, sources, apart, planes):
    """Give pixels of holes the plane at the source of their path, if it is another surface."""
    for k in range(holes.size):
        y, x = holes[k] // stride - 1, holes[k] % stride - 1
        v, u = sources[holes[k]] // stride - 1, sources[holes[k]] % stride - 1
        ux, uy = planes[1, v, u], planes[2, v, u]
        value = planes[0, v, u] + np.float32(SLOPE_SHARE) * (ux * (x - u) + uy * (y - v))
        if value > 0 and abs(value - planes[0, y, x]) > apart:
            planes[0, y, x], planes[1, y, x], planes[2, y, x] = value, ux, uy
