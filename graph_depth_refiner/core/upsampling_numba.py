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
From planes of the solved resolution to planes of every pixel: CPU kernels.

The pixels of a row are taken apart by their place in a cell: those of one place lie alike among
the cells, whose planes are then neighbours in memory. Beyond the border the outer planes go on.
"""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import upsampling
from graph_depth_refiner.core.flying import WIDTH
from graph_depth_refiner.core.jit.options import FUSED, INLINE, ONE, U, ZERO
from graph_depth_refiner.core.jit.simd import (
    abs_run,
    at_most_run,
    choose_run,
    even_run,
    inverse_run,
    LANES,
    least_run,
    less_run,
    load_bytes,
    load_run,
    most_run,
    odd_run,
    root_run,
    spread_run,
    store_bytes,
    store_run,
    sum_run,
)
from graph_depth_refiner.core.masks_numba import closable
from graph_depth_refiner.core.noise import COMMON, NoiseModel
from graph_depth_refiner.core.rows_numba import wide_enough

_WIDTH, _KEPT = np.float32(WIDTH), np.float32(upsampling.KEPT)
_NEAR, _LEAST = np.float32(upsampling.NEAR), np.float32(upsampling.LEAST)
_COMMON = np.float32(COMMON)
_HALF = np.float32(0.5)
_STEP, _INFINITE = np.float32(upsampling.STEP), np.float32(np.inf)
_SIDES = upsampling.SIDES
_GAP_REACH, _GAP_KNOWN = upsampling.GAP_REACH, np.float32(upsampling.GAP_KNOWN)


def upsample_planes(planes: np.ndarray, frames: np.ndarray, d: np.ndarray, behind: np.ndarray,
                    noise: NoiseModel, unit: float, scale: int) -> np.ndarray:
    """
    Return planes 3 h w at every pixel of a `scale` times larger image, 3 H W.

    frames, h w, are 0 where a plane only goes on into a hole: measured pixels heed the others.
    d, H W, is what is known of the inverse depth there, 0 where nothing is; behind, H W, the
    frames that it is a mean of; unit the deviation where nothing is known. A plane of inverse
    depth 0 is none. The scale is even.
    """
    large = np.empty((3, *d.shape), np.float32)
    _upsample(planes, frames, d, behind, numbers_of(noise, unit), scale, large)
    return large


def numbers_of(noise: NoiseModel, unit: float) -> np.ndarray:
    """Return the numbers of the noise as the kernels take them."""
    return np.array([noise.floor, noise.share, unit], np.float32)


@njit(parallel=True, **FUSED)
def _upsample(planes, frames, d, behind, numbers, scale, large):
    for between in prange(bands_of(len(d), scale)):
        upsample_band(planes, frames, d, behind, numbers, scale, np.int64(between), 0, large)


@njit(**INLINE)
def bands_of(height, scale):
    """Return how many bands of rows lie between the middles of cells, with those outside."""
    return (height - 1 + scale // 2) // scale + 1


@njit(**INLINE)
def rows_of(row, height, scale):
    """Return the first row of a band, and the one after its last."""
    return max(0, row * scale - scale // 2), min(height, row * scale + scale // 2)


@njit(**INLINE)
def upsample_band(planes, frames, d, behind, numbers, scale, row, top, large):
    """
    Upsample the rows between a row of cells, below them, and the row before, above them.

    `large` begins with the row `top`.
    """
    height, width = d.shape
    share = ONE / np.float32(scale)
    wide = (width // scale // LANES + 1) * LANES
    cells = np.empty((2, 5, wide + 2), np.float32)
    _cells(planes, frames, row - 1, cells[0])
    _cells(planes, frames, row, cells[1])
    known = np.zeros((2, scale, wide), np.float32)  # d, and the frames behind it
    found = np.empty((3, scale, wide), np.float32)
    first, end = rows_of(row, height, scale)
    for y in range(first, end):
        v = (np.float32(y) + _HALF) * share - _HALF
        _take_apart(d[y], known[0])
        _take_apart(behind[y], known[1])
        for phase in range(scale):
            _blend(planes, frames, cells, known[:, phase], numbers, y, v, row, phase, scale,
                   width, found[:, phase])
        for k in range(3):
            _put_together(found[k], large[k, y - top])


@njit(**INLINE)
def _cells(planes, frames, row, cells):
    """Lay out a row of cells, one more on the left: planes, whether measured, whether there."""
    rows, columns = frames.shape
    inner = min(max(row, 0), rows - 1)
    down = np.float32(row - inner)
    for c in range(U(columns)):
        value, uy = planes[0, inner, c], planes[2, inner, c]
        there = ONE if value > ZERO else ZERO
        cells[0, c + U(1)] = value + down * uy
        cells[1, c + U(1)], cells[2, c + U(1)] = planes[1, inner, c], uy
        cells[3, c + U(1)] = there if frames[inner, c] > ZERO else ZERO
        cells[4, c + U(1)] = there
    for place in range(-1, cells.shape[1] - columns - 1):
        c, edge = (0, 1) if place < 0 else (columns + 1 + place, columns)
        for k in range(5):
            cells[k, c] = cells[k, edge]
        cells[0, c] += np.float32(c - edge) * cells[1, edge]


@njit(**INLINE)
def _take_apart(row, parts):
    """Write the pixels of a row by their place in a cell, one row for each."""
    scale = len(parts)
    cells = row.size // scale
    runs = scale == 2 and cells >= LANES
    if runs:
        for start in range(0, cells, LANES):
            c = min(start, cells - LANES)
            one, other = load_run(row, U(2 * c)), load_run(row, U(2 * c + LANES))
            store_run(parts[0], U(c), even_run(one, other))
            store_run(parts[1], U(c), odd_run(one, other))
    for phase in range(scale):
        part = parts[phase]
        if not runs:
            for c in range(U(cells)):
                part[c] = row[U(scale) * c + U(phase)]
        if cells * scale + phase < row.size:
            part[cells] = row[cells * scale + phase]


@njit(**INLINE)
def _put_together(parts, row):
    """Undo what took a row apart."""
    scale = len(parts)
    cells = row.size // scale
    if scale == 2:
        even, odd = parts[0], parts[1]
        for c in range(U(cells)):
            row[U(2) * c] = even[c]
            row[U(2) * c + U(1)] = odd[c]
    else:
        for c in range(U(cells)):
            for phase in range(U(scale)):
                row[U(scale) * c + phase] = parts[phase, c]
    for x in range(cells * scale, row.size):
        row[x] = parts[x - cells * scale, cells]


@njit(**INLINE)
def _blend(planes, frames, cells, known, numbers, y, v, row, phase, scale, width, found):
    """Blend the planes of four cells at the pixels of one row and one place in their cells."""
    zero, one, share = spread_run(ZERO), spread_run(ONE), ONE / np.float32(scale)
    floor, part, unit = spread_run(numbers[0]), spread_run(numbers[1]), spread_run(numbers[2])
    u = (np.float32(phase) + _HALF) * share - _HALF  # from the middle of the own cell
    left = 0 if u < ZERO else 1
    across, down = u + np.float32(1 - left), v - np.float32(row - 1)
    own = cells[1 if y >= row * scale else 0]
    rise = spread_run(v - np.float32(y // scale))
    for first in range(0, found.shape[1], LANES):
        c = U(first)
        d, there = load_run(known[0], c), load_run(own[4], c + U(1))
        own_x, own_y = load_run(own[1], c + U(1)), load_run(own[2], c + U(1))
        measured = less_run(zero, d)
        sigma = (floor + part * d) * root_run(spread_run(_COMMON) + spread_run(
            ONE - _COMMON) * inverse_run(most_run(load_run(known[1], c), one)))
        sigma = choose_run(measured, sigma, unit)
        # where nothing is known the plane of the own cell stands for it
        value = load_run(own[0], c + U(1)) + own_x * spread_run(u) + own_y * rise
        value = choose_run(measured, d, choose_run(there, value, zero))
        inverse = inverse_run(spread_run(_WIDTH) * sigma)
        total = sum_d = sum_x = sum_y = zero
        for k in range(4):
            cell = cells[k // 2]
            near = abs(ONE - np.float32(k // 2) - down) * abs(ONE - np.float32(k % 2) - across)
            at = c + U(left + k % 2)
            ux, uy = load_run(cell[1], at), load_run(cell[2], at)
            there = load_run(cell[0], at) + ux * spread_run(across - np.float32(k % 2)) \
                + uy * spread_run(down - np.float32(k // 2))
            e = (there - value) * inverse
            a = one - e * e
            counts = less_run(zero, a) * choose_run(
                measured, load_run(cell[3], at), load_run(cell[4], at))
            a = choose_run(counts, spread_run(near + _NEAR) * a * a, zero)
            total = total + a
            sum_d = sum_d + choose_run(counts, a * there, zero)
            sum_x = sum_x + a * ux
            sum_y = sum_y + a * uy
        blended = less_run(spread_run(_LEAST), total)
        a = inverse_run(choose_run(blended, total, one))
        fit = sum_d * a
        e, noise = value - fit, spread_run(_KEPT) * sigma
        beyond = measured * less_run(noise, abs_run(e))
        fit = fit + choose_run(beyond, e - noise * noise * inverse_run(e), zero)
        store_run(found[0], c, choose_run(blended, fit, value))
        store_run(found[1], c, spread_run(share) * choose_run(blended, sum_x * a, own_x))
        store_run(found[2], c, spread_run(share) * choose_run(blended, sum_y * a, own_y))
        if sum_run(measured * (one - blended)) > ZERO:
            _put_on_sides(planes, frames, known, numbers, first, u, v, y, phase, scale, width,
                          found[0])


@njit(**FUSED)
def _put_on_sides(planes, frames, known, numbers, first, u, v, y, phase, scale, width, value):
    """Look at those pixels of a run that no plane of the cells around explains."""
    rows, columns = frames.shape
    row = min(y // scale, rows - 1)
    for c in range(first, first + LANES):
        d = known[0, c]
        if d > ZERO and value[c] == d and c * scale + phase < width:
            sigma = (numbers[0] + numbers[1] * d) * np.sqrt(
                _COMMON + (ONE - _COMMON) / max(known[1, c], ONE))
            value[c] = _on_a_side(planes, frames, row, min(c, columns - 1), np.float32(c) + u, v,
                                  d, _WIDTH * sigma)


@njit(**INLINE)
def _on_a_side(planes, frames, row, column, u, v, value, close):
    """
    Return a value that no plane around explains on the side of its own cell, if it lies between.

    Such a pixel mixes two surfaces (flying pixel), and its cell is of that which most of its
    pixels are of. One that is nearer or farther than all planes around it is a thing of its own,
    and stays.
    """
    rows, columns = frames.shape
    above = below = False
    for r in range(max(0, row - _SIDES), min(rows, row + _SIDES + 1)):
        for c in range(max(0, column - _SIDES), min(columns, column + _SIDES + 1)):
            if frames[r, c] > ZERO:
                off = _predicted(planes, r, c, u, v) - value
                if abs(off) <= close:
                    return value
                above, below = above or off > ZERO, below or off < ZERO
    if above and below and planes[0, row, column] > ZERO:
        return _predicted(planes, row, column, u, v)
    return value


@njit(**INLINE)
def _predicted(planes, row, column, u, v):
    """Return the inverse depth that the plane of a cell predicts."""
    return planes[0, row, column] + planes[1, row, column] * (u - np.float32(column)) \
        + planes[2, row, column] * (v - np.float32(row))


def fillable(d: np.ndarray, measured: np.ndarray, sigma: float, config: RefinerConfig
             ) -> np.ndarray:
    """
    Return which pixels, H W bool, may have a value.

    They are those that are measured, or that the history, in d, knows about in holes of up to
    `history_width` and around what is measured (`RIMS`); with `holes.fill: small` also those of
    holes of up to `max_width`, around which all that is known is one surface: across a depth
    edge nobody knows which side a pixel is on. A hole is as narrow as a width where no larger
    square fits into it. Of a gap of one pixel amid known ones only both sides need to agree.
    """
    holes = config.holes
    if holes.fill == 'none':
        return measured
    known, filled = closable(
        measured, d > 0, holes.history_width, upsampling.RIMS, holes.max_width,
        upsampling.FILLED_SHARE * d.size)
    side = max(2 * holes.max_width + 1, upsampling.AROUND)
    columns = d.shape[1]
    d, known, filled = wide_enough(d, known.view(np.uint8), filled.view(np.uint8))
    _one_surface(d, known, side, np.float32(upsampling.ONE_SURFACE * sigma), filled)
    return np.ascontiguousarray(filled[:, :columns]).view(np.bool_)


@njit(parallel=True, **FUSED)
def _one_surface(d, known, side, limit, filled):
    """
    Take back those filled pixels, not known, around which there is a depth edge.

    Most are gaps, which is soon seen.
    """
    height, width = known.shape
    before, after = side // 2, side - 1 - side // 2
    reach = -(-side // LANES)
    for row in prange(height):
        y = np.int64(row)
        # runs with any of these, and with those beside them
        asked = np.zeros(-(-width // LANES), np.bool_)
        beside = np.zeros(asked.size, np.bool_)
        for place in range(asked.size):
            x = U(min(place * LANES, width - LANES))
            asked[place] = sum_run(load_bytes(filled[y], x) - load_bytes(known[y], x)) > ZERO
        if not asked.any():
            continue
        unsure = np.zeros(width, np.float32)
        counts = np.zeros(width + 2 * _GAP_REACH, np.float32)  # known pixels of columns
        _count_columns(known, y, counts)
        for place in range(asked.size):
            if not asked[place]:
                continue
            start = place * LANES
            if 0 < y < height - 1 and 0 < start < width - LANES:
                left = load_bytes(filled[y], U(start)) - load_bytes(known[y], U(start))
                left = left * (spread_run(ONE) - _gaps(d, known, counts, y, U(start), limit))
                store_run(unsure, U(start), left)
                asked[place] = sum_run(left) > ZERO
            else:
                asked[place] = False
                for x in range(start, min(width, start + LANES)):
                    if filled[y, x] > known[y, x] and not _is_gap(d, known, counts, y, x, limit):
                        unsure[x] = ONE
                        asked[place] = True
            if asked[place]:
                beside[max(0, place - reach):place + reach + 1] = True
        # the extremes of the columns, then of the squares
        nearest = np.zeros(width + side, np.float32)
        farthest = np.full(width + side, _INFINITE)
        for place in range(asked.size):
            if not beside[place]:
                continue
            x = U(min(place * LANES, width - LANES))
            near, far = spread_run(ZERO), spread_run(_INFINITE)
            for v in range(max(0, y - before), min(height, y + after + 1)):
                value = load_run(d[v], x)
                near = most_run(near, value)
                far = least_run(far, choose_run(
                    less_run(spread_run(ZERO), value), value, spread_run(_INFINITE)))
            store_run(nearest, x + U(before), near)
            store_run(farthest, x + U(before), far)
        for place in range(asked.size):
            if not asked[place]:
                continue
            x = U(min(place * LANES, width - LANES))
            near, far = load_run(nearest, x), load_run(farthest, x)
            for u in range(U(1), U(side)):
                near = most_run(near, load_run(nearest, x + u))
                far = least_run(far, load_run(farthest, x + u))
            step = most_run(spread_run(limit), spread_run(_STEP) * near)
            store_bytes(filled[y], x, choose_run(
                load_run(unsure, x), at_most_run(near - far, step), load_bytes(filled[y], x)))


@njit(**INLINE)
def _count_columns(known, y, counts):
    """Count the known pixels above and below each of a row, which begins after a margin."""
    height, width = known.shape
    for start in range(0, width, LANES):
        x = U(min(start, width - LANES))
        count = spread_run(ZERO)
        for v in range(max(0, y - _GAP_REACH), min(height, y + _GAP_REACH + 1)):
            count = count + load_bytes(known[v], x)
        store_run(counts, x + U(_GAP_REACH), count)


@njit(**INLINE)
def _gaps(d, known, counts, y, x, limit):
    """Tell of a run inside the image what `_is_gap` does."""
    count = load_run(counts, x)
    for u in range(1, 2 * _GAP_REACH + 1):
        count = count + load_run(counts, x + U(u))
    agree = spread_run(ZERO)
    for dy, dx in ((0, 1), (1, 0)):
        one, other = load_run(d[y - dy], x - U(dx)), load_run(d[y + dy], x + U(dx))
        both = load_bytes(known[y - dy], x - U(dx)) * load_bytes(known[y + dy], x + U(dx))
        step = most_run(spread_run(limit), spread_run(_STEP) * most_run(one, other))
        agree = most_run(agree, both * at_most_run(abs_run(one - other), step))
    return agree * at_most_run(spread_run(_GAP_KNOWN), count)


@njit(**INLINE)
def _is_gap(d, known, counts, y, x, limit):
    """Tell whether a pixel is a gap of one amid known ones, between two that agree."""
    height, width = known.shape
    beside = 0 < x < width - 1 and _agree(
        d, known, U(y), U(x - 1), U(y), U(x + 1), limit)
    if not (beside or 0 < y < height - 1 and _agree(
            d, known, U(y - 1), U(x), U(y + 1), U(x), limit)):
        return False
    count = ZERO
    for u in range(U(x), U(x + 2 * _GAP_REACH + 1)):
        count += counts[u]
    return count >= _GAP_KNOWN


@njit(**INLINE)
def _agree(d, known, v, u, y, x, limit):
    """Tell whether two pixels are known and on one surface."""
    one, other = d[v, u], d[y, x]
    return known[v, u] * known[y, x] > 0 \
        and abs(one - other) <= max(limit, _STEP * max(one, other))


def keep_planes(planes: np.ndarray, kept: np.ndarray) -> None:
    """Clear, in place, planes 3 H W of pixels that may have no value, H W bool."""
    _keep_planes(planes, kept.view(np.uint8))


@njit(parallel=True, **FUSED)
def _keep_planes(planes, kept):
    for y in prange(len(kept)):
        for k in range(3):
            clear_row(kept[y], planes[k, y])


@njit(**INLINE)
def clear_row(kept, values):
    """Set, in place, values of a row to 0 where kept, bytes, is 0."""
    whole = kept.size - kept.size % LANES
    for start in range(0, whole, LANES):
        x = U(start)
        store_run(values, x, choose_run(
            load_bytes(kept, x), load_run(values, x), spread_run(ZERO)))
    for x in range(whole, kept.size):
        values[x] = values[x] if kept[x] > 0 else ZERO
