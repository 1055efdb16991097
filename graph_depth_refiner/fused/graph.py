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
"""The patch-similarity graph, a block of rows at a time; the twin of graph.py."""

from __future__ import annotations

from llvmlite import ir
from numba import get_num_threads, njit, prange, types
from numba.extending import intrinsic
import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.fused.rows import FUSED, ONE, step_to, U, ZERO
from graph_depth_refiner.problem import FAINT

# Distances decide which edges are kept, so they must come out bit for bit as in graph.py:
# no contraction, no reassociation.
EXACT = {'nogil': True, 'cache': True, 'error_model': 'numpy'}
_BLOCK = 32  # rows
TILE = 128  # pixels of a row finished at once
_INF = np.float32(np.inf)
_LARGE = np.float32(1e30)
_INF_BITS = np.int64(0x7f800000)
_LOG2E = np.float32(1.44269504)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)


def build(guide: np.ndarray, config: RefinerConfig, out=None, rows=None) -> np.ndarray:
    """Weigh the edges of the guide, H W or C H W; `rows` rewrites only those of `out`."""
    guide = guide if guide.ndim == 3 else guide[None]  # C H W
    height, width = guide.shape[1:]
    window, patch = config.graph_window, config.graph_patch
    edges = window * window - 1
    pad = window // 2 + patch // 2
    padded = np.pad(guide, ((0, 0), (pad, pad), (pad, pad)), 'edge')
    w = np.empty((edges, height, width), np.float32) if out is None else out
    top, end = (0, height) if rows is None else rows
    keep = config.graph_neighbours if config.graph_neighbours < edges else 0
    blocks = max(get_num_threads(), (end - top + _BLOCK - 1) // _BLOCK)
    _build(
        padded, w, top, end, blocks, patch, keep, config.graph_normalise,
        np.float32(0.5 / config.graph_sigma_intensity ** 2),
        np.float32(0.5 / config.graph_sigma_space ** 2))
    return w


@intrinsic
def _from_bits(typing, bits):
    """Read 32 bits as a float."""
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())
    return types.float32(types.int32), generate


@njit(**{**FUSED, 'forceinline': True})
def fading(t):
    """Return exp(-t) for t >= 0, and 0 where that is too faint to count."""
    t0 = min(t, np.float32(FAINT))
    k = np.int32(t0 * _LOG2E + np.float32(0.5))
    f = (np.float32(k) * _LN2_HIGH - t0) + np.float32(k) * _LN2_LOW
    p = np.float32(1.9875691500e-4)
    p = p * f + np.float32(1.3981999507e-3)
    p = p * f + np.float32(8.3334519073e-3)
    p = p * f + np.float32(4.1665795894e-2)
    p = p * f + np.float32(1.6666665459e-1)
    p = p * f + np.float32(5.0000001201e-1)
    p = p * f * f + f + np.float32(1)
    return p * _from_bits(np.int32((127 - k) << 23)) if t < np.float32(FAINT) else np.float32(0)


@njit(parallel=True, **EXACT)
def _build(padded, w, top, end, blocks, patch, keep, normalise, per_difference, per_distance):
    edges, height, width = w.shape
    pad = (padded.shape[1] - height) // 2
    q = patch // 2
    r = pad - q
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
            _box(part, spare, total, n, width, patch)
            fade = np.float32(dy * dy + dx * dx) * per_distance
            left = min(width, max(0, -dx))
            right = max(left, width - max(0, dx))
            for y in range(above, min(last, height - dy)):
                t = total[y - above]
                _exponents(t, left, right, per_difference, fade)
                if y >= first:
                    _place(t, w[o, y], left, right, 0)
                if y + dy < last:
                    _place(t, w[edges - 1 - o, y + dy], left, right, dx)
            for y in range(max(first, height - dy), last):
                w[o, y] = _INF
            for y in range(first, min(last, dy)):
                w[edges - 1 - o, y] = _INF
        for y in range(first, last):
            if keep:
                _keep(w, y, keep)
            _weigh(w, y, normalise)


@njit(**EXACT)
def _differences(padded, row, dy, dx, r, n, out):
    """Square the differences between the padded guide and itself moved by the offset."""
    columns = U(out.shape[1])
    a, b = U(r), U(r + dx)
    for y in range(n):
        to = out[y]
        here, there = padded[0, row + y], padded[0, row + y + dy]
        for x in range(columns):
            e = here[a + x] - there[b + x]
            to[x] = e * e
        for k in range(1, padded.shape[0]):
            here, there = padded[k, row + y], padded[k, row + y + dy]
            for x in range(columns):
                e = here[a + x] - there[b + x]
                to[x] += e * e


@njit(**EXACT)
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


@njit(**EXACT)
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


@njit(**EXACT)
def _exponents(t, left, right, per_difference, fade):
    """Turn patch distances into the exponents of the weights."""
    s = U(left)
    for x in range(U(right - left)):
        t[s + x] = t[s + x] * per_difference + fade


@njit(**EXACT)
def _place(t, row, left, right, shift):
    """Copy the edges that stay inside the image to their place in a row of the graph."""
    row[:left + shift] = _INF
    a, b = U(left), U(left + shift)
    for x in range(U(right - left)):
        row[b + x] = t[a + x]
    row[right + shift:] = _INF


@njit(**EXACT)
def _keep(w, y, keep):
    """Keep the smallest exponents of every pixel of a row; the others become infinite."""
    edges, _, width = w.shape
    low = np.empty(TILE, np.int64)
    high = np.empty(TILE, np.int64)
    count = np.empty(TILE, np.int32)
    limit = np.empty(TILE, np.float32)
    for x0 in range(0, width, TILE):
        n = U(min(TILE, width - x0))
        _limits(w, y, U(x0), n, keep, low, high, count, limit)
        _cut(w, y, U(x0), n, keep, count, limit)


@njit(**EXACT)
def _limits(w, y, s, n, keep, low, high, count, limit):
    """Bisect, bit by bit, for the largest exponent that is kept."""
    for x in range(n):
        low[x] = 0
        high[x] = _INF_BITS
    open_ends = True
    while open_ends:
        for x in range(n):
            limit[x] = _from_bits(np.int32((low[x] + high[x]) >> 1))
            count[x] = 0
        for o in range(w.shape[0]):
            t = w[o, y]
            for x in range(n):
                count[x] += np.int32(t[s + x] <= limit[x])
        left = 0
        for x in range(n):
            middle = (low[x] + high[x]) >> 1
            enough = count[x] >= keep
            high[x] = middle if enough else high[x]
            low[x] = (middle if count[x] == keep else low[x]) if enough else middle + 1
            left += low[x] < high[x]
        open_ends = left > 0
    for x in range(n):
        limit[x] = _from_bits(np.int32(high[x]))


@njit(**EXACT)
def _cut(w, y, s, n, keep, count, limit):
    """Keep what is below the limit, and of what equals it the first ones."""
    for x in range(n):
        count[x] = keep
    for o in range(w.shape[0]):
        t = w[o, y]
        for x in range(n):
            count[x] -= np.int32(t[s + x] < limit[x])
    for o in range(w.shape[0]):
        t = w[o, y]
        for x in range(n):
            here = t[s + x]
            tie = (here == limit[x]) & (count[x] > 0)
            count[x] -= np.int32(tie)
            t[s + x] = here if (here < limit[x]) | tie else _INF


@njit(**EXACT)
def _weigh(w, y, normalise):
    """Turn the exponents of a row into weights; those of a pixel then sum to 1, if asked."""
    edges, _, width = w.shape
    least = np.empty(TILE, np.float32)
    total = np.empty(TILE, np.float32)
    for x0 in range(0, width, TILE):
        s, n = U(x0), U(min(TILE, width - x0))
        for x in range(n):
            least[x] = _LARGE if normalise else ZERO
            total[x] = ZERO
        if normalise:  # the nearest neighbour gets exp(0), so that no sum vanishes
            for o in range(edges):
                t = w[o, y]
                for x in range(n):
                    least[x] = min(least[x], t[s + x])
        for o in range(edges):
            t = w[o, y]
            for x in range(n):
                value = fading(t[s + x] - least[x])
                t[s + x] = value
                total[x] += value
        if normalise:
            for x in range(n):
                total[x] = ONE / max(total[x], ONE)
            for o in range(edges):
                t = w[o, y]
                for x in range(n):
                    t[s + x] *= total[x]


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
                here, there = w[o, y], w[edges - 1 - o, y + dy]
                a, b = U(max(0, -dx)), U(max(0, dx))
                for x in range(U(max(0, width - abs(dx)))):
                    least = min(here[a + x], there[b + x])
                    here[a + x] = least
                    there[b + x] = least


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
