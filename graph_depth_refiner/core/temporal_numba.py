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
Fusion of a frame with the warped history: CPU kernels.

Rows are taken in runs; the last run of a row overlaps the one before. Narrower images are
padded by columns that nothing is known of.
"""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core import temporal
from graph_depth_refiner.core.jit.options import EXACT, FUSED, INLINE, ONE, U, ZERO
from graph_depth_refiner.core.jit.simd import (
    abs_run,
    at_most_run,
    choose_run,
    inside_run,
    inverse_run,
    LANES,
    least_run,
    less_run,
    load_bytes,
    load_run,
    most_run,
    root_run,
    spread_run,
    store_run,
    sum_run,
)
from graph_depth_refiner.core.noise import NoiseModel
from graph_depth_refiner.core.rows_numba import wide_enough
from graph_depth_refiner.core.statistics import stride_for
from graph_depth_refiner.core.statistics_numba import upper_median

_BLOCK, _REACH, _IMAGE_REACH = temporal.BLOCK, temporal.REACH, temporal.IMAGE_REACH
_BIAS_GATE, _GATE, _CLIP = (
    np.float32(one) for one in (temporal.BIAS_GATE, temporal.GATE, temporal.CLIP))
_MISPLACED = np.float32(temporal.MISPLACED)
_OUTLIER = np.float32(temporal.OUTLIER_SHARE)
_EXPECTED = np.float32(temporal.EXPECTED)
_LEAST = np.float32(temporal.LEAST_FRAMES)
_MEAN, _MISFIT, _IMAGE = temporal.MEAN, temporal.MISFIT, temporal.IMAGE
_STEEPEST = np.float32(temporal.STEEPEST)
_LEAST_WEIGHT = np.float32(temporal.LEAST_WEIGHT)
_DARK = np.uint8(temporal.DARK)
_FEW = np.float32(25e-6)  # pixels of a window, so that none is no division by 0
_BAND = 24  # rows that are fused together; those around a band are prepared twice


def bias_sums(d: np.ndarray, m: np.ndarray, past: np.ndarray, frames: np.ndarray,
              noise: NoiseModel) -> np.ndarray:
    """Return sums of relative residuals that may be bias, and their count, by blocks."""
    sums = np.zeros((2, -(-d.shape[0] // _BLOCK), -(-d.shape[1] // _BLOCK)), np.float32)
    _bias_sums(*wide_enough(d, m, past, frames), np.float32(noise.floor),
               np.float32(noise.share), d.shape[1], sums)
    return sums


@njit(parallel=True, **FUSED)
def _bias_sums(d, m, past, frames, floor, share, columns, sums):
    height, width = d.shape
    zero, one = spread_run(ZERO), spread_run(ONE)
    for row in prange(sums.shape[1]):
        lines = np.zeros((2, width), np.float32)
        for y in range(row * _BLOCK, min(height, (row + 1) * _BLOCK)):
            for start in range(0, width, LANES):
                x = U(min(start, width - LANES))
                now, old, n = load_run(d[y], x), load_run(past[y], x), load_run(frames[y], x)
                r = now - old
                sigma = (spread_run(floor) + spread_run(share) * now) \
                    * root_run(one + inverse_run(most_run(n, one)))
                counts = less_run(zero, load_run(m[y], x)) * less_run(zero, n) \
                    * less_run(abs_run(r), spread_run(_BIAS_GATE) * sigma)
                counts = inside_run(counts, np.int32(x) - np.int32(start), np.int32(LANES))
                store_run(lines[0], x, load_run(lines[0], x) + choose_run(
                    counts, r * inverse_run(old), zero))
                store_run(lines[1], x, load_run(lines[1], x) + counts)
        for x in range(columns):
            sums[0, row, x // _BLOCK] += lines[0, x]
            sums[1, row, x // _BLOCK] += lines[1, x]


def exposure_gain(grey: np.ndarray, seen: np.ndarray, frames: np.ndarray) -> float:
    """Return how many times brighter an image, H W uint8, is than before; 1 if black."""
    return float(_exposure_gain(grey, seen, frames, stride_for(grey.shape)))


@njit(**EXACT)
def _exposure_gain(grey, seen, frames, stride):
    height, width = grey.shape
    ratios, count = np.empty(-(-height // stride) * -(-width // stride), np.float32), 0
    for y in range(0, height, stride):
        for x in range(0, width, stride):
            if frames[y, x] > ZERO and seen[y, x] >= _DARK:
                ratios[count] = np.float32(grey[y, x]) / np.float32(seen[y, x])
                count += 1
    gain = upper_median(ratios[:count].view(np.uint32)) if count else ZERO
    return gain if gain > ZERO else ONE


def fuse(d: np.ndarray, m: np.ndarray, grey: np.ndarray, past: np.ndarray, frames: np.ndarray,
         seen: np.ndarray, gain: float, bias: np.ndarray, noise: NoiseModel, flow: float,
         limit: float, means: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the running mean, its frames, the history without bias, H W each, and counts."""
    columns = d.shape[1]
    d, m, grey, past, frames, seen = wide_enough(d, m, grey, past, frames, seen)
    results = np.empty((3, *d.shape), np.float32)
    counts = np.zeros((len(d), 2), np.float32)
    numbers = np.array([noise.floor, noise.share, flow * _MISPLACED, limit,
                        temporal.unseen_share(flow), 1 / means, gain], np.float32)
    _fuse(d, m, grey, past, frames, seen, bias, numbers, columns, results, counts)
    fused, left, value = (np.ascontiguousarray(one[:, :columns]) for one in results)
    return fused, left, value, counts.sum(axis=0, dtype=np.int64)


@njit(parallel=True, **FUSED)
def _fuse(d, m, grey, past, frames, seen, bias, numbers, columns, results, counts):
    """Fuse bands of rows, so that what is between residuals and result stays near the core."""
    height, width = d.shape
    for band in prange(-(-height // _BAND)):
        top = np.int64(band) * _BAND
        bottom = min(height, top + _BAND)
        first, end = max(0, top - _REACH), min(height, bottom + _REACH)
        rows = np.empty((end - first, 6, width), np.float32)  # value, weight, and four maps
        lines = np.zeros((2, width + 2), np.float32)
        biases = np.zeros(max(width, bias.shape[1] * _BLOCK) + _BLOCK, np.float32)
        for y in range(first, end):
            _bias_row(bias, y, biases)
            lines[0, 1:-1] = past[y]
            lines[1, 1:-1] = frames[y]
            _residuals(d, m, grey, past, frames, seen, y, biases, lines, numbers,
                       rows[y - first])
        sums = np.empty((4, width + 2 * _REACH), np.float32)
        around = np.empty(2 * _REACH + 1, np.int64)
        for y in range(top, bottom):
            for dy in range(-_REACH, _REACH + 1):
                around[dy + _REACH] = _mirrored(y + dy, height) - first
            _sum_rows(rows, around, columns, sums)
            results[2, y] = rows[y - first, 0]
            counts[y, 0], counts[y, 1] = _decide(
                d[y], m[y], rows[y - first], sums, numbers, results[0, y], results[1, y])


@njit(**INLINE)
def _bias_row(bias, y, line):
    """
    Interpolate the bias of blocks along a row; it goes on beyond the outer centres.

    The line begins half a block before the row, at the centre of a block beyond its border.
    """
    rows, columns = bias.shape
    share, half = np.float32(1 / _BLOCK), np.float32(0.5)
    v = max(ZERO, min((np.float32(y) + half) * share - half, np.float32(rows - 1)))
    v0 = min(int(v), max(0, rows - 2))
    v1 = min(v0 + 1, rows - 1)
    av = v - np.float32(v0)
    before = (ONE - av) * bias[v0, 0] + av * bias[v1, 0]
    for c in range(columns + 1):  # from the centre of the block before to its own
        right = min(c, columns - 1)
        value = (ONE - av) * bias[v0, right] + av * bias[v1, right]
        step = (value - before) * share
        for x in range(U(_BLOCK)):
            line[U(c * _BLOCK) + x] = before + step * (np.float32(x) + half)
        before = value


@njit(**INLINE)
def _residuals(d, m, grey, past, frames, seen, y, biases, lines, numbers, out):
    """Free a row of the history of bias, weigh it, and give residuals in deviations."""
    height, width = d.shape
    zero, one, steepest = spread_run(ZERO), spread_run(ONE), spread_run(_STEEPEST)
    floor, share = spread_run(numbers[0]), spread_run(numbers[1])
    misplaced, limit = spread_run(numbers[2]), spread_run(numbers[3])
    clip, low, gain = spread_run(_CLIP), spread_run(-_CLIP), spread_run(numbers[6])
    for start in range(0, width, LANES):
        x = U(min(start, width - LANES))
        old, n = load_run(past[y], x), least_run(load_run(frames[y], x), limit)
        twice = old + old
        rough = _bend(twice, load_run(lines[0], x), load_run(lines[1], x),
                      load_run(lines[0], x + U(2)), load_run(lines[1], x + U(2)))
        if 0 < y < height - 1:
            rough = most_run(rough, _bend(
                twice, load_run(past[y - 1], x), load_run(frames[y - 1], x),
                load_run(past[y + 1], x), load_run(frames[y + 1], x)))
        known = less_run(zero, n) * less_run(zero, old)
        old = choose_run(known, old * (one + load_run(biases, x + U(_BLOCK // 2))), zero)
        sigma = choose_run(known, floor + share * old, one)
        error = misplaced * least_run(rough, steepest * old) * inverse_run(sigma)
        n = choose_run(known, n * inverse_run(one + n * error * error), zero)
        both = less_run(zero, load_run(m[y], x)) * less_run(zero, n)
        spread = sigma * root_run(one + inverse_run(most_run(n, spread_run(_LEAST_WEIGHT))))
        r = most_run(low, least_run(clip, (load_run(d[y], x) - old) * inverse_run(spread)))
        r = choose_run(both, r, zero)
        change = abs_run(load_bytes(grey[y], x) - gain * load_bytes(seen[y], x)) \
            * spread_run(np.float32(1 / 255))
        store_run(out[0], x, old)
        store_run(out[1], x, n)
        store_run(out[2], x, both)
        store_run(out[3], x, r)
        store_run(out[4], x, abs_run(r))
        store_run(out[5], x, choose_run(less_run(zero, n), change, zero))


@njit(**INLINE)
def _bend(twice, one, frames, other, more_frames):
    """Return how much the step changes between two neighbours, both with a history."""
    zero = spread_run(ZERO)
    both = less_run(zero, frames) * less_run(zero, more_frames)
    return choose_run(both, abs_run(one + other - twice), zero)


@njit(**INLINE)
def _sum_rows(rows, around, columns, sums):
    """Sum four maps over the rows around one; the image is mirrored beyond its border."""
    one, two, three, four, five = (
        rows[around[0]], rows[around[1]], rows[around[2]], rows[around[3]], rows[around[4]])
    for start in range(0, rows.shape[2], LANES):
        x = U(min(start, rows.shape[2] - LANES))
        for k in range(3):
            total = load_run(one[2 + k], x) + load_run(two[2 + k], x) + load_run(three[2 + k], x)
            store_run(sums[k], x + U(_REACH),
                      total + load_run(four[2 + k], x) + load_run(five[2 + k], x))
        store_run(sums[3], x + U(_REACH),  # of the image those at most one away
                  load_run(two[5], x) + load_run(three[5], x) + load_run(four[5], x))
    for x in (-2, -1, columns, columns + 1):
        for k in range(4):
            sums[k, x + _REACH] = sums[k, _mirrored(x, columns) + _REACH]


@njit(**INLINE)
def _decide(d, m, row, sums, numbers, fused, left):
    """Fuse a row by the means around every pixel; return how many saw a history and kept it."""
    width = d.size
    zero, least = spread_run(ZERO), spread_run(_LEAST)
    limit, unseen, inverse = (
        spread_run(numbers[3]), spread_run(numbers[4]), spread_run(numbers[5]))
    seen = kept = zero
    for start in range(0, width, LANES):
        x = U(min(start, width - LANES))
        value, weight = load_run(row[0], x), load_run(row[1], x)
        now, w = load_run(d, x), load_run(m, x)
        count = inverse_run(most_run(_five(sums[0], x), spread_run(_FEW))) * inverse
        image = load_run(sums[3], x + U(1)) + load_run(sums[3], x + U(2)) \
            + load_run(sums[3], x + U(3))
        n = weight * _falling(image * spread_run(np.float32(1 / 9)), _IMAGE)
        measured = less_run(zero, w)
        n = choose_run(
            measured, n * _falling(abs_run(_five(sums[1], x)) * count, _MEAN) * _falling(
                _five(sums[2], x) * count - spread_run(_EXPECTED) * inverse, _MISFIT), n)
        agrees = measured * less_run(zero, n) * less_run(
            load_run(row[4], x), spread_run(_GATE))
        # what is left to a history: after an outlier amid neighbours that agree, or unseen
        rest = n * choose_run(measured, spread_run(_OUTLIER), unseen)
        lasts = at_most_run(least, rest)
        mean = (n * value + w * now) * inverse_run(n + w)
        other = choose_run(lasts, value, choose_run(measured, now, zero))
        store_run(fused, x, choose_run(agrees, mean, other))
        store_run(left, x, choose_run(
            agrees, least_run(n + w, limit), choose_run(lasts, rest, w)))
        new = inside_run(measured, np.int32(x) - np.int32(start), np.int32(LANES))
        seen = seen + new * less_run(zero, weight)
        kept = kept + new * most_run(agrees, lasts)
    return sum_run(seen), sum_run(kept)


@njit(**INLINE)
def _mirrored(i, n):
    while not 0 <= i < n:
        i = -1 - i if i < 0 else 2 * n - 1 - i
    return i


@njit(**INLINE)
def _five(sums, x):
    """Return the sums of five neighbours."""
    return load_run(sums, x) + load_run(sums, x + U(1)) + load_run(sums, x + U(2)) \
        + load_run(sums, x + U(3)) + load_run(sums, x + U(4))


@njit(**INLINE)
def _falling(value, limits):
    """Return 1 below the first limit, 0 beyond the second, linear between."""
    part = (spread_run(np.float32(limits[1])) - value) \
        * spread_run(np.float32(1 / (limits[1] - limits[0])))
    return least_run(spread_run(ONE), most_run(spread_run(ZERO), part))
