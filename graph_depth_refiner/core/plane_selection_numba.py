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
    REACH,
    STEEP,
    VOTERS,
    WARPED_SHARE,
)

_FAR = np.array(FAR)
# the planes that may stand: 0 of the start or 1 carried, and where
_LOOK = np.array([
    (old, dy, dx) for dy, dx in NEAR + FAR for old in ((0, 1) if (dy, dx) in NEAR else (0,))])
_VOTERS = np.array(VOTERS)
_NEARNESS = np.float32(1) - np.float32(FAR_FADE / FADED) * (
    _VOTERS.astype(np.float32) ** 2).sum(axis=1)
_SIZE = len(VOTERS)
_PLANE = 4 * LANES  # room for the planes of a run of pixels: d, ux, uy, and whether it stands
_POLL = 2 * LANES  # room for a voter of each: its value and its weight
_FARTHEST = np.float32(1e30)


def select_planes(d: np.ndarray, m: np.ndarray, color: np.ndarray, start: np.ndarray,
         warped: np.ndarray, frame_count: np.ndarray, warped_color: np.ndarray, sigma: float,
         color_sigma: float, slopes: bool = True) -> np.ndarray:
    """
    Return for every pixel the plane, 3 H W, that suits its look-alikes best.

    The planes that stand for election are those of the start and the carried ones of the
    pixel and around it. Voters are the measurements and the carried planes in a window,
    weighted by the likeness of their colour (C H W, uint8). Without `slopes` planes that
    differ in slope only are taken as equal.
    """
    height, width = d.shape
    wide = width + 2 * REACH + LANES  # the last run of a row may end outside
    sources = 2 if frame_count.any() else 1
    fields = np.empty((sources, 8, (height + 2 * REACH) * wide), np.float32)
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
    Put what is asked of the neighbours side by side, with a margin of nothing.

    Of each field, 8 (H+2r)*wide: the planes where they are known, the value and the weight
    of a voter, and its colour, of which there may be one channel or three.
    """
    height, width = known.shape
    for row in prange(height + 2 * REACH):
        y, begin = np.int64(row) - REACH, U(row * wide)
        if not 0 <= y < height:
            field[:, begin:begin + U(wide)] = ZERO
        else:
            field[:, begin:begin + U(REACH)] = ZERO
            field[:, begin + U(REACH + width):begin + U(wide)] = ZERO
            field[5 + color.shape[0]:, begin:begin + U(wide)] = ZERO
            begin += U(REACH)
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
        flags[i] = np.float32(1) if off > limit or turn > sigma else flags[i]


@njit(parallel=True, **FUSED)
def _select_planes(fields, wide, start, warped, frame_count, sigma, fade, steep, chosen):
    height = frame_count.shape[0]
    for turn in prange(height):
        # even rows first: the threads share the busy parts of the image. And prange counts
        # unsigned, where -y would wrap around.
        half = np.int64(turn) - (height + 1) // 2
        y = 2 * half + 1 if half >= 0 else np.int64(2 * turn)
        _select_row(fields, wide, start, warped, frame_count, sigma, fade, steep, y, chosen)


@njit(**FUSED)
def _select_row(fields, wide, start, warped, frame_count, sigma, fade, steep, y, chosen):
    height, width = frame_count.shape
    limit = np.float32(DIFFERENT) * sigma
    flags = np.zeros(wide, np.float32)
    for n in range(_FAR.shape[0]):
        if 0 <= y + _FAR[n, 0] < height:
            _flag(start, y, _FAR[n, 0], _FAR[n, 1], start, limit, steep, sigma, flags)
    for x in range(width):
        off = abs(warped[0, y, x] - start[0, y, x])
        turn = abs(warped[1, y, x] - start[1, y, x]) + abs(warped[2, y, x] - start[2, y, x])
        if frame_count[y, x] > ZERO and (off > limit or turn * steep > sigma):
            flags[x] = np.float32(1)
    planes = np.empty(_LOOK.shape[0] * _PLANE, np.float32)
    polls = np.empty(fields.shape[0] * _SIZE * _POLL, np.float32)
    best = np.empty((3, LANES), np.float32)
    for first in range(0, width, LANES):
        asked = load_run(flags, U(first))
        if sum_run(asked) == ZERO:
            continue
        here = U((y + REACH) * wide + REACH + first)
        count = _move_up(planes, _candidates(
            fields, wide, here, asked, limit, steep, sigma, planes))
        for s in range(fields.shape[0]):
            _poll(fields[0], fields[s], wide, here, fade, polls[s * _SIZE * _POLL:])
        _cheapest(fields[0], here, planes, count, polls, sigma, best)
        for k in range(3):
            for lane in range(min(LANES, width - first)):
                chosen[k, y, first + lane] = best[k, lane]


@njit(**INLINE)
def _candidates(fields, wide, here, asked, limit, steep, sigma, planes):
    """List the different planes around a run of pixels, their own first; return how many."""
    near, flat, bend = spread_run(limit), spread_run(sigma), spread_run(steep)
    none, one = spread_run(ZERO), spread_run(np.float32(1))
    count = 0
    for n in range(_LOOK.shape[0]):
        old, dy, dx = _LOOK[n]
        if old >= fields.shape[0]:
            continue
        field, there = fields[old], here + U(dy * wide + dx)
        ux, uy = load_run(field[1], there), load_run(field[2], there)
        value = load_run(field[0], there) - ux * spread_run(np.float32(dx)) \
            - uy * spread_run(np.float32(dy))
        is_candidate = asked * less_run(none, value)
        for k in range(U(count)):
            at = k * U(_PLANE)
            off = abs_run(load_run(planes, at) - value)
            turn = abs_run(load_run(planes, at + U(LANES)) - ux) \
                + abs_run(load_run(planes, at + U(2 * LANES)) - uy)
            same = at_most_run(off, near) * at_most_run(turn * bend, flat)
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
def _move_up(planes, count):
    """Let the planes that stand for each pixel follow each other; return the most of any."""
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
def _poll(own, field, wide, here, fade, polls):
    """Ask the voters of a run of pixels for their values, and weigh them by their likeness."""
    red, green, blue = load_run(own[5], here), load_run(own[6], here), load_run(own[7], here)
    none, fades = spread_run(ZERO), spread_run(fade)
    for k in range(_SIZE):
        there = here + U(_VOTERS[k, 0] * wide + _VOTERS[k, 1])
        r, g, b = (load_run(field[5], there) - red, load_run(field[6], there) - green,
                   load_run(field[7], there) - blue)
        alike = spread_run(_NEARNESS[k]) - (r * r + g * g + b * b) * fades
        alike = choose_run(less_run(none, alike), alike, none)
        for _ in range(3):  # to the power of eight
            alike = alike * alike
        store_run(polls, U(k * _POLL), load_run(field[3], there))
        store_run(polls, U(k * _POLL + LANES), alike * load_run(field[4], there))


@njit(**INLINE)
def _cheapest(own, here, planes, count, polls, sigma, best):
    """Return the planes that are nearest to all voters, each capped; else the pixels' own."""
    cap, farthest = spread_run(np.float32(CAP) * sigma), spread_run(_FARTHEST)
    least = farthest
    d, x, y = load_run(own[0], here), load_run(own[1], here), load_run(own[2], here)
    for n in range(U(count)):
        at = n * U(_PLANE)
        value, ux, uy = (load_run(planes, at), load_run(planes, at + U(LANES)),
                         load_run(planes, at + U(2 * LANES)))
        total = spread_run(ZERO)
        for p in range(U(polls.size // _POLL)):
            k = p % U(_SIZE)
            there = value + ux * spread_run(np.float32(_VOTERS[k, 1])) \
                + uy * spread_run(np.float32(_VOTERS[k, 0]))
            off = abs_run(load_run(polls, p * U(_POLL)) - there)
            total = total + load_run(polls, p * U(_POLL) + U(LANES)) * least_run(off, cap)
        total = choose_run(load_run(planes, at + U(3 * LANES)), total, farthest)
        better = less_run(total, least)
        least = choose_run(better, total, least)
        d = choose_run(better, value, d)
        x = choose_run(better, ux, x)
        y = choose_run(better, uy, y)
    store_run(best[0], U(0), d)
    store_run(best[1], U(0), x)
    store_run(best[2], U(0), y)
