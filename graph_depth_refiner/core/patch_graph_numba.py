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
"""The patch-similarity graph, a block of rows at a time: CPU kernels."""

from __future__ import annotations

import cv2
from numba import get_num_threads, njit, prange
import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.jit.options import EXACT, EXACT_INLINE, FUSED, ONE, U, ZERO
from graph_depth_refiner.core.jit.simd import (
    at_most_run,
    choose_run,
    equal_run,
    fading_run,
    inverse_root,
    LANES,
    less_run,
    load_run,
    spread_run,
    store_run,
    sum_run,
)
from graph_depth_refiner.core.patch_graph import BAND, FAINT, TILE
from graph_depth_refiner.core.rows_numba import step_to

_BLOCK = 16  # rows
_INF = np.float32(np.inf)
_LARGE = np.float32(1e30)


def build_graph(guide: np.ndarray, config: RefinerConfig, out=None, rows=None) -> np.ndarray:
    """Weigh the edges of the guide, H W or C H W; `rows` rewrites only those of `out`."""
    guide = guide if guide.ndim == 3 else guide[None]  # C H W
    height, width = guide.shape[1:]
    window, patch = config.graph.window, config.graph.patch
    edges = window * window - 1
    pad = window // 2 + patch // 2
    padded = np.stack([
        cv2.copyMakeBorder(one, pad, pad, pad, pad, cv2.BORDER_REPLICATE) for one in guide])
    w = np.empty((edges, height, width), np.float32) if out is None else out
    top, end = (0, height) if rows is None else rows
    keep = config.graph.neighbours if config.graph.neighbours < edges else 0
    blocks = max(get_num_threads(), (end - top + _BLOCK - 1) // _BLOCK)
    _build_rows(
        padded, w, top, end, blocks, patch, keep, config.graph.normalise,
        np.float32(0.5 / config.graph.sigma_intensity ** 2),
        np.float32(0.5 / config.graph.sigma_space ** 2))
    return w


@njit(parallel=True, **EXACT)
def _build_rows(padded, w, top, end, blocks, patch, keep, normalise, per_difference, per_distance):
    edges, height, width = w.shape
    pad = (padded.shape[1] - height) // 2
    q = patch // 2
    r = pad - q
    flat = w.reshape(-1)
    for block in prange(blocks):
        first = top + (end - top) * block // blocks
        last = top + (end - top) * (block + 1) // blocks
        room = (last - first + r + 2 * q, width + 2 * q)
        total = np.empty(room, np.float32)
        part = np.empty(room, np.float32)
        spare = np.empty(room, np.float32)
        for o in range(edges // 2, edges):  # the others are their mirrors
            dy, dx = step_to(o, edges, r)
            above = max(0, first - dy)
            n = last - above
            _differences(padded, above + r, dy, dx, r, n + 2 * q, part)
            if patch == 3:  # the same in two passes
                _box_of_three(part, spare, total, n, width)
            else:
                _box(part, spare, total, n, width, patch)
            fade = np.float32(dy * dy + dx * dx) * per_distance
            left = min(width, max(0, -dx))
            right = max(left, width - max(0, dx))
            for y in range(above, min(last, height - dy)):
                t = total[y - above]
                if y >= first:
                    _place(t, w[o, y], left, right, 0, per_difference, fade)
                if y + dy < last:
                    _place(t, w[edges - 1 - o, y + dy], left, right, dx, per_difference, fade)
            for y in range(max(first, height - dy), last):
                w[o, y] = _INF
            for y in range(first, min(last, dy)):
                w[edges - 1 - o, y] = _INF
        keys = np.full(edges * LANES, _INF, np.float32)
        for y in range(first, last):
            _finish(flat, edges, height * width, y * width, width, keep, normalise, keys)


@njit(**EXACT_INLINE)
def _differences(padded, row, dy, dx, r, n, out):
    """Square the differences between the padded guide and itself moved by the offset."""
    columns = U(out.shape[1])
    a, b = U(r), U(r + dx)
    for y in range(n):
        to = out[y]
        row_i, row_j = padded[0, row + y], padded[0, row + y + dy]
        for x in range(columns):
            e = row_i[a + x] - row_j[b + x]
            to[x] = e * e
        for k in range(1, padded.shape[0]):
            row_i, row_j = padded[k, row + y], padded[k, row + y + dy]
            for x in range(columns):
                e = row_i[a + x] - row_j[b + x]
                to[x] += e * e


@njit(**EXACT_INLINE)
def _box(a, b, c, n, width, patch):
    """Sum patch x patch squares of a into c by doubling: nothing is ever subtracted."""
    columns = U(width)
    for y in range(n + patch - 1):
        _box_row(a[y], b[y], c[y], columns, patch)
    for y in range(n):
        old, to = b[y], c[y]
        for x in range(columns):
            to[x] = old[x]
    length, done = 1, 1
    while 2 * length <= patch:
        for y in range(n + patch - 2 * length):
            one, two, to = b[y], b[y + length], a[y]
            for x in range(columns):
                to[x] = one[x] + two[x]
        a, b = b, a
        length *= 2
        if patch & length:
            for y in range(n):
                old, to = b[y + done], c[y]
                for x in range(columns):
                    to[x] += old[x]
            done += length


@njit(**EXACT_INLINE)
def _box_of_three(a, b, c, n, width):
    """Sum 3x3 squares of a into c, in the order in which doubling sums them."""
    columns = U(width)
    for y in range(n + 2):
        old, to = a[y], b[y]
        for x in range(columns):
            to[x] = old[x] + (old[x + U(1)] + old[x + U(2)])
    for y in range(n):
        one, two, three, to = b[y], b[y + 1], b[y + 2], c[y]
        for x in range(columns):
            to[x] = one[x] + (two[x] + three[x])


@njit(**EXACT_INLINE)
def _box_row(a, b, c, columns, patch):
    """Sum runs of a into b; c is scratch."""
    for x in range(columns):
        b[x] = a[x]
    length, done = 1, 1
    while 2 * length <= patch:
        ahead = U(length)
        for x in range(columns + U(patch - 2 * length)):
            c[x] = a[x] + a[ahead + x]
        a, c = c, a
        length *= 2
        if patch & length:
            ahead = U(done)
            for x in range(columns):
                b[x] += a[ahead + x]
            done += length


@njit(**EXACT_INLINE)
def _place(t, row, left, right, shift, per_difference, fade):
    """Put the exponents of the weights of edges inside the image in their place in a row."""
    for x in range(U(max(0, min(row.size, left + shift)))):
        row[x] = _INF
    a, b = U(left), U(left + shift)
    for x in range(U(right - left)):
        row[b + x] = t[a + x] * per_difference + fade
    for x in range(U(max(0, right + shift)), U(row.size)):
        row[x] = _INF


@njit(**EXACT)
def _finish(w, edges, size, start, width, keep, normalise, keys):
    """
    Turn the exponents of a row into weights, run by run.

    w is flat, `size` is that of an offset's plane and `start` the place of the row in it;
    keys is scratch.
    """
    for x0 in range(0, width, LANES):
        if x0 + LANES <= width:
            for o in range(edges):
                store_run(keys, U(o * LANES), load_run(w, U(o * size + start + x0)))
            _weigh_run(keys, edges, keep, normalise)
            for o in range(edges):
                store_run(w, U(o * size + start + x0), load_run(keys, U(o * LANES)))
        else:
            for o in range(edges):
                for x in range(width - x0):
                    keys[o * LANES + x] = w[o * size + start + x0 + x]
            _weigh_run(keys, edges, keep, normalise)
            for o in range(edges):
                for x in range(width - x0):
                    w[o * size + start + x0 + x] = keys[o * LANES + x]


@njit(**EXACT)
def _weigh_run(keys, edges, keep, normalise):
    if keep:
        _cut(keys, edges, keep, _limit(keys, edges, keep))
    _weigh(keys, edges, normalise)


@njit(**EXACT)
def _limit(keys, edges, keep):
    """Return the largest key that is kept in every lane, found by bisection."""
    low, high = spread_run(ZERO), spread_run(ZERO)
    finite = spread_run(ZERO)
    for o in range(edges):
        key = load_run(keys, U(o * LANES))
        known = less_run(key, spread_run(_INF))
        finite = finite + known
        high = choose_run(known * less_run(high, key), key, high)
    wanted = spread_run(np.float32(keep))
    # with fewer finite keys than wanted all of them are kept
    done = less_run(finite, wanted)
    half = spread_run(np.float32(0.5))
    while sum_run(done) < LANES:
        centre = (low + high) * half
        count = spread_run(ZERO)
        for o in range(edges):
            count = count + at_most_run(load_run(keys, U(o * LANES)), centre)
        enough = at_most_run(wanted, count)
        # neighbouring numbers have no middle of their own
        stuck = equal_run(centre, low) + equal_run(centre, high)
        high = choose_run(enough, centre, high)
        low = choose_run(enough, low, centre)
        done = choose_run(stuck + equal_run(count, wanted), spread_run(ONE), done)
    return high


@njit(**EXACT)
def _cut(keys, edges, keep, limit):
    """Keep what is below the limit, and of what equals it the first ones."""
    nothing, infinite = spread_run(ZERO), spread_run(_INF)
    left = spread_run(np.float32(keep))
    for o in range(edges):
        left = left - less_run(load_run(keys, U(o * LANES)), limit)
    for o in range(edges):
        key = load_run(keys, U(o * LANES))
        tie = equal_run(key, limit) * less_run(nothing, left)
        left = left - tie
        kept = less_run(key, limit) + tie
        store_run(keys, U(o * LANES), choose_run(kept, key, infinite))


@njit(**EXACT)
def _weigh(keys, edges, normalise):
    """Turn exponents into weights; those of a pixel then sum to 1, if asked."""
    faint = spread_run(np.float32(FAINT))
    least, total = spread_run(ZERO), spread_run(ZERO)
    if normalise:  # the nearest neighbour gets exp(0), so that no sum vanishes
        least = spread_run(_LARGE)
        for o in range(edges):
            key = load_run(keys, U(o * LANES))
            least = choose_run(less_run(key, least), key, least)
    for o in range(edges):
        value = fading_run(load_run(keys, U(o * LANES)) - least, faint)
        total = total + value
        store_run(keys, U(o * LANES), value)
    if normalise:
        root = inverse_root(choose_run(total, total, spread_run(ONE)))
        for o in range(edges):
            store_run(keys, U(o * LANES), load_run(keys, U(o * LANES)) * (root * root))


@njit(parallel=True, **EXACT)
def symmetrise(w):
    """Give both directions of every edge the smaller of their weights, in place."""
    edges, height, width = w.shape
    r = int(np.sqrt(edges + 1.0)) // 2
    for strip in prange(height):
        y = np.int64(strip)
        for o in range(edges // 2, edges):  # owned by the upper or left end
            dy, dx = step_to(o, edges, r)
            if y + dy < height:
                row_i, row_j = w[o, y], w[edges - 1 - o, y + dy]
                a, b = U(max(0, -dx)), U(max(0, dx))
                for x in range(U(max(0, width - abs(dx)))):
                    least = min(row_i[a + x], row_j[b + x])
                    row_i[a + x] = least
                    row_j[b + x] = least


@njit(parallel=True, **EXACT)
def normalise(w):
    """Scale the weights of every pixel to sum 1 in place, unless there are none."""
    edges, height, width = w.shape
    n = U(width)
    for y in prange(height):
        total = np.zeros(width, np.float32)
        for o in range(edges):
            row = w[o, y]
            for x in range(n):
                total[x] += row[x]
        for x in range(n):
            total[x] = ONE / total[x] if total[x] > ZERO else ZERO
        for o in range(edges):
            row = w[o, y]
            for x in range(n):
                row[x] *= total[x]


def band_changes(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Compare guides, H W or C H W; the last band may be smaller."""
    shape = (-1, *now.shape[-2:])
    largest = np.zeros(-(-now.shape[-2] // BAND), np.float32)
    _band_changes(before.reshape(shape), now.reshape(shape), largest)
    return largest


@njit(**FUSED)
def _band_changes(before, now, largest):
    channels, height, width = now.shape
    tiles = max(1, width // TILE)
    columns = np.empty(width, np.float32)
    for band in range(len(largest)):
        first, last = band * BAND, min(height, (band + 1) * BAND)
        for c in range(channels):
            columns[:] = ZERO
            for y in range(first, last):
                a, b = before[c, y], now[c, y]
                for x in range(U(width)):
                    columns[x] += abs(a[x] - b[x])
            for tile in range(tiles):
                left, right = tile * width // tiles, (tile + 1) * width // tiles
                mean = columns[left:right].sum() / np.float32((last - first) * (right - left))
                largest[band] = max(largest[band], mean)
