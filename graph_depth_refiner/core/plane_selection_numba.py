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
"""Selection among candidate planes: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.jit.options import FUSED, INLINE, U, ZERO
from graph_depth_refiner.core.jit.simd import (
    abs_run,
    at_most_run,
    choose_run,
    LANES,
    least_run,
    less_run,
    load_run,
    spread_run,
    store_run,
    sum_run,
)
from graph_depth_refiner.core.plane_selection import (
    CAP,
    DIFFERENT,
    FADED,
    FAR,
    FAR_FADE,
    NEAR,
    RADIUS,
    STEEP,
    SUPPORT,
    WARPED_SHARE,
)

_FAR = np.array(FAR)
# where candidates are: 0 fitted or 1 warped, dy, dx
_LOOK = np.array([
    (old, dy, dx) for dy, dx in NEAR + FAR for old in ((0, 1) if (dy, dx) in NEAR else (0,))])
_SUPPORT = np.array(SUPPORT)
_NEARNESS = np.float32(1) - np.float32(FAR_FADE / FADED) * (
    _SUPPORT.astype(np.float32) ** 2).sum(axis=1)
_SIZE = len(SUPPORT)
_PLANE = 4 * LANES  # room for a candidate of a run of pixels: d, ux, uy, and whether it is one
_SAMPLE = 2 * LANES  # room for a pixel of the support of each: value and weight
_FARTHEST = np.float32(1e30)


def select_planes(d: np.ndarray, m: np.ndarray, color: np.ndarray, start: np.ndarray,
                  warped: np.ndarray, frame_count: np.ndarray, warped_color: np.ndarray,
                  sigma: float, color_sigma: float, slopes: bool = True) -> np.ndarray:
    """Return for every pixel the candidate plane, 3 H W, of the least cost."""
    height, width = d.shape
    wide = width + 2 * RADIUS + LANES  # the last run of a row may end outside
    sources = 2 if frame_count.any() else 1
    fields = np.empty((sources, 8, (height + 2 * RADIUS) * wide), np.float32)
    _lay_out(start, np.ones_like(m), d, m, color, np.float32(1), wide, fields[0])
    if sources > 1:
        _lay_out(warped, frame_count, warped[0], frame_count, warped_color,
                 np.float32(WARPED_SHARE), wide, fields[1])
    chosen = start.copy()
    fade = np.float32(0.5 / FADED / (255.0 * color_sigma) ** 2)
    _select_planes(fields, wide, start, warped, frame_count, np.float32(sigma), fade,
                   np.float32(STEEP if slopes else 0.0), chosen)
    return chosen


@njit(parallel=True, **FUSED)
def _lay_out(planes, known, value, weight, color, share, wide, field):
    """
    Lay out what is read of the neighbours side by side, with a margin of zeros.

    Of each field, 8 (H+2r)*wide: the planes where they are known, value and weight as
    support, and the colour, which may have one channel or three.
    """
    height, width = known.shape
    for row in prange(height + 2 * RADIUS):
        y, begin = np.int64(row) - RADIUS, U(row * wide)
        if not 0 <= y < height:
            field[:, begin:begin + U(wide)] = ZERO
        else:
            field[:, begin:begin + U(RADIUS)] = ZERO
            field[:, begin + U(RADIUS + width):begin + U(wide)] = ZERO
            field[5 + color.shape[0]:, begin:begin + U(wide)] = ZERO
            begin += U(RADIUS)
            for k in range(3):
                for x in range(U(width)):
                    field[k, begin + x] = planes[k, y, x] if known[y, x] > ZERO else ZERO
            for x in range(U(width)):
                field[3, begin + x] = value[y, x]
                field[4, begin + x] = share * weight[y, x]
            for c in range(color.shape[0]):
                for x in range(U(width)):
                    field[5 + c, begin + x] = np.float32(color[c, y, x])


@njit(**INLINE)
def _flag_different(start, y, dy, dx, other, limit, steep, sigma, flags):
    """Flag the pixels of a row whose plane differs from that of the neighbour at (dy, dx)."""
    width = start.shape[2]
    centre, other_at = U(max(0, -dx)), U(max(0, dx))
    d, ux, uy = start[0, y], start[1, y], start[2, y]
    e, vx, vy = other[0, y + dy], other[1, y + dy], other[2, y + dy]
    fx, fy = np.float32(dx), np.float32(dy)
    for x in range(U(max(0, width - abs(dx)))):
        i, j = centre + x, other_at + x
        off = abs(e[j] - vx[j] * fx - vy[j] * fy - d[i])
        slope_change = (abs(vx[j] - ux[i]) + abs(vy[j] - uy[i])) * steep
        flags[i] = np.float32(1) if off > limit or slope_change > sigma else flags[i]


@njit(parallel=True, **FUSED)
def _select_planes(fields, wide, start, warped, frame_count, sigma, fade, steep, chosen):
    height = frame_count.shape[0]
    for order in prange(height):
        # even rows first: the threads share the busy parts of the image. And prange counts
        # unsigned, where -y would wrap around.
        half = np.int64(order) - (height + 1) // 2
        y = 2 * half + 1 if half >= 0 else np.int64(2 * order)
        _select_row(fields, wide, start, warped, frame_count, sigma, fade, steep, y, chosen)


@njit(**FUSED)
def _select_row(fields, wide, start, warped, frame_count, sigma, fade, steep, y, chosen):
    height, width = frame_count.shape
    limit = np.float32(DIFFERENT) * sigma
    flags = np.zeros(wide, np.float32)
    for n in range(_FAR.shape[0]):
        if 0 <= y + _FAR[n, 0] < height:
            _flag_different(start, y, _FAR[n, 0], _FAR[n, 1], start, limit, steep, sigma, flags)
    for x in range(width):
        off = abs(warped[0, y, x] - start[0, y, x])
        slope_change = abs(warped[1, y, x] - start[1, y, x]) \
            + abs(warped[2, y, x] - start[2, y, x])
        if frame_count[y, x] > ZERO and (off > limit or slope_change * steep > sigma):
            flags[x] = np.float32(1)
    planes = np.empty(_LOOK.shape[0] * _PLANE, np.float32)
    support = np.empty(fields.shape[0] * _SIZE * _SAMPLE, np.float32)
    best = np.empty((3, LANES), np.float32)
    for first in range(0, width, LANES):
        ambiguous = load_run(flags, U(first))
        if sum_run(ambiguous) == ZERO:
            continue
        centre = U((y + RADIUS) * wide + RADIUS + first)
        count = _compact(planes, _candidates(
            fields, wide, centre, ambiguous, limit, steep, sigma, planes))
        for s in range(fields.shape[0]):
            _weigh_support(fields[0], fields[s], wide, centre, fade, support[s * _SIZE * _SAMPLE:])
        _least_cost(fields[0], centre, planes, count, support, sigma, best)
        for k in range(3):
            for lane in range(min(LANES, width - first)):
                chosen[k, y, first + lane] = best[k, lane]


@njit(**INLINE)
def _candidates(fields, wide, centre, ambiguous, limit, steep, sigma, planes):
    """List the different planes around a run of pixels, theirs first; return how many."""
    near, flat, steepness = spread_run(limit), spread_run(sigma), spread_run(steep)
    none, one = spread_run(ZERO), spread_run(np.float32(1))
    count = 0
    for n in range(_LOOK.shape[0]):
        old, dy, dx = _LOOK[n]
        if old >= fields.shape[0]:
            continue
        field, other_at = fields[old], centre + U(dy * wide + dx)
        ux, uy = load_run(field[1], other_at), load_run(field[2], other_at)
        value = load_run(field[0], other_at) - ux * spread_run(np.float32(dx)) \
            - uy * spread_run(np.float32(dy))
        is_candidate = ambiguous * less_run(none, value)
        for k in range(U(count)):
            at = k * U(_PLANE)
            off = abs_run(load_run(planes, at) - value)
            slope_change = abs_run(load_run(planes, at + U(LANES)) - ux) \
                + abs_run(load_run(planes, at + U(2 * LANES)) - uy)
            same = at_most_run(off, near) * at_most_run(slope_change * steepness, flat)
            is_candidate = is_candidate * (one - same * load_run(planes, at + U(3 * LANES)))
        if sum_run(is_candidate) > ZERO:
            at = U(count * _PLANE)
            store_run(planes, at, value)
            store_run(planes, at + U(LANES), ux)
            store_run(planes, at + U(2 * LANES), uy)
            store_run(planes, at + U(3 * LANES), is_candidate)
            count += 1
    return count


@njit(**INLINE)
def _compact(planes, count):
    """Move the candidates of each pixel together; return the largest number of any pixel."""
    most = 0
    for lane in range(U(LANES)):
        last = U(lane)
        for k in range(U(count)):
            at = k * U(_PLANE) + lane
            if planes[at + U(3 * LANES)] > ZERO:
                planes[at + U(3 * LANES)] = ZERO
                for part in range(U(3)):
                    planes[last + part * U(LANES)] = planes[at + part * U(LANES)]
                planes[last + U(3 * LANES)] = np.float32(1)
                last += U(_PLANE)
        most = max(most, np.int64(last) // _PLANE)
    return most


@njit(**INLINE)
def _weigh_support(centre_field, field, wide, centre, fade, support):
    """Collect the support of a run of pixels, weighted by similarity of colour and distance."""
    red, green, blue = (load_run(centre_field[5], centre), load_run(centre_field[6], centre),
                        load_run(centre_field[7], centre))
    none, fades = spread_run(ZERO), spread_run(fade)
    for k in range(_SIZE):
        other_at = centre + U(_SUPPORT[k, 0] * wide + _SUPPORT[k, 1])
        r, g, b = (load_run(field[5], other_at) - red, load_run(field[6], other_at) - green,
                   load_run(field[7], other_at) - blue)
        similar = spread_run(_NEARNESS[k]) - (r * r + g * g + b * b) * fades
        similar = choose_run(less_run(none, similar), similar, none)
        for _ in range(3):  # to the power of eight
            similar = similar * similar
        store_run(support, U(k * _SAMPLE), load_run(field[3], other_at))
        store_run(support, U(k * _SAMPLE + LANES), similar * load_run(field[4], other_at))


@njit(**INLINE)
def _least_cost(centre_field, centre, planes, count, support, sigma, best):
    """Write the candidates of the least capped distance to the support, or the first planes."""
    cap, farthest = spread_run(np.float32(CAP) * sigma), spread_run(_FARTHEST)
    least = farthest
    d, x, y = (load_run(centre_field[0], centre), load_run(centre_field[1], centre),
               load_run(centre_field[2], centre))
    for n in range(U(count)):
        at = n * U(_PLANE)
        value, ux, uy = (load_run(planes, at), load_run(planes, at + U(LANES)),
                         load_run(planes, at + U(2 * LANES)))
        total = spread_run(ZERO)
        for p in range(U(support.size // _SAMPLE)):
            k = p % U(_SIZE)
            predicted = value + ux * spread_run(np.float32(_SUPPORT[k, 1])) \
                + uy * spread_run(np.float32(_SUPPORT[k, 0]))
            off = abs_run(load_run(support, p * U(_SAMPLE)) - predicted)
            total = total + load_run(support, p * U(_SAMPLE) + U(LANES)) * least_run(off, cap)
        total = choose_run(load_run(planes, at + U(3 * LANES)), total, farthest)
        better = less_run(total, least)
        least = choose_run(better, total, least)
        d = choose_run(better, value, d)
        x = choose_run(better, ux, x)
        y = choose_run(better, uy, y)
    store_run(best[0], U(0), d)
    store_run(best[1], U(0), x)
    store_run(best[2], U(0), y)
