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
"""From depth to inverse depth: CPU kernel."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.jit.options import EXACT, ONE, U, ZERO
from graph_depth_refiner.core.jit.simd import (
    inside_run,
    LANES,
    less_run,
    load_run,
    spread_run,
    store_run,
    sum_run,
)
from graph_depth_refiner.core.rows_numba import wide_enough


def inverse_depth(depth: np.ndarray, least: float, most: float
                  ) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse of depth, H W, 0 where it is not from least to most, and 1 elsewhere."""
    d, m = np.empty(depth.shape, np.float32), np.empty(depth.shape, np.float32)
    _inverse_depth(np.ascontiguousarray(depth), np.float32(least), np.float32(most), d, m)
    return d, m


def weigh(m: np.ndarray, confidence: np.ndarray) -> tuple[np.ndarray, tuple[float, int, int]]:
    """Return the confidence of valid pixels, H W, its sum, and two counts; see the reference."""
    columns = m.shape[1]
    m, confidence = wide_enough(m, confidence)
    weighed, rows = np.empty_like(m), np.empty((len(m), 3))
    _weigh(m, np.ascontiguousarray(confidence), weighed, rows)
    total, sure, valid = rows.sum(axis=0)
    return np.ascontiguousarray(weighed[:, :columns]), (float(total), int(sure), int(valid))


@njit(parallel=True, **EXACT)
def _weigh(m, confidence, weighed, rows):
    height, width = m.shape
    zero = spread_run(ZERO)
    for y in prange(height):
        total = sure = valid = zero
        for start in range(0, width, LANES):
            x = min(start, width - LANES)
            fresh = np.int32(x - start)  # what overlaps the run before counts there
            there = load_run(m[y], U(x))
            value = there * load_run(confidence[y], U(x))
            store_run(weighed[y], U(x), value)
            total = total + inside_run(value, fresh, np.int32(LANES))
            sure = sure + inside_run(less_run(zero, value), fresh, np.int32(LANES))
            valid = valid + inside_run(there, fresh, np.int32(LANES))
        rows[y, 0], rows[y, 1], rows[y, 2] = sum_run(total), sum_run(sure), sum_run(valid)


@njit(parallel=True, **EXACT)
def _inverse_depth(depth, least, most, d, m):
    height, width = depth.shape
    for y in prange(height):
        for x in range(U(width)):
            value = depth[y, x]
            valid = (value >= least) & (value <= most)  # false for NaN
            m[y, x] = ONE if valid else ZERO
            d[y, x] = ONE / (value if valid else ONE) if valid else ZERO
