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
"""Merging of blocks of pixels: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.jit.options import FUSED, INLINE, ONE, U, ZERO
from graph_depth_refiner.core.jit.simd import (
    abs_run,
    at_most_run,
    choose_run,
    even_run,
    inverse_run,
    LANES,
    less_run,
    load_run,
    odd_run,
    spread_run,
    store_run,
)


def merge_blocks(d: np.ndarray, m: np.ndarray, close: float) -> tuple[np.ndarray, np.ndarray]:
    """Average the largest group of pixels of every 2x2 block that are close together."""
    height, width = d.shape[0] // 2, d.shape[1] // 2
    missing = LANES - width
    if missing > 0:
        d, m = (np.pad(one[:, :2 * width], [(0, 0), (0, 2 * missing)]) for one in (d, m))
    merged = np.empty((2, height, max(width, LANES)), np.float32)
    _merge_blocks(d, m, np.float32(close), merged)
    return tuple(np.ascontiguousarray(merged[:, :, :width]))


@njit(parallel=True, **FUSED)
def _merge_blocks(d, m, close, merged):
    width = merged.shape[2]
    for row in prange(merged.shape[1]):
        y = np.int64(row)
        for start in range(0, width, LANES):
            x = min(start, width - LANES)
            d0, d1 = _pairs(d[2 * y], x)
            d2, d3 = _pairs(d[2 * y + 1], x)
            m0, m1 = _pairs(m[2 * y], x)
            m2, m3 = _pairs(m[2 * y + 1], x)
            # of the pixels with the most support the first
            most, mean = _support(d0, m0, d1, m1, d2, m2, d3, m3, close)
            for total, own in (_support(d1, m1, d0, m0, d2, m2, d3, m3, close),
                               _support(d2, m2, d0, m0, d1, m1, d3, m3, close),
                               _support(d3, m3, d0, m0, d1, m1, d2, m2, close)):
                more = less_run(most, total)
                most, mean = choose_run(more, total, most), choose_run(more, own, mean)
            store_run(merged[0, y], U(x), mean)
            store_run(merged[1, y], U(x), spread_run(np.float32(0.25)) * most)


@njit(**INLINE)
def _pairs(row, x):
    """Return the left and the right pixels of the blocks of a run."""
    one, other = load_run(row, U(2 * x)), load_run(row, U(2 * x + LANES))
    return even_run(one, other), odd_run(one, other)


@njit(**INLINE)
def _support(d, m, d1, m1, d2, m2, d3, m3, close):
    """Return the weight of a pixel and of those of three that are close to it, and their mean."""
    zero, known = spread_run(ZERO), less_run(spread_run(ZERO), m)
    w1, w2, w3 = _near(d, d1, m1, close), _near(d, d2, m2, close), _near(d, d3, m3, close)
    total = choose_run(known, m + w1 + w2 + w3, zero)
    mean = (m * d + w1 * d1 + w2 * d2 + w3 * d3) \
        * inverse_run(choose_run(known, total, spread_run(ONE)))
    return total, choose_run(known, mean, zero)


@njit(**INLINE)
def _near(d, other, weight, close):
    return choose_run(
        at_most_run(abs_run(other - d), spread_run(close)), weight, spread_run(ZERO))
