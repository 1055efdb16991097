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

_FAST = {'parallel': True, 'nogil': True, 'cache': True, 'fastmath': True}


def merge_blocks(d: np.ndarray, m: np.ndarray, close: float) -> tuple[np.ndarray, np.ndarray]:
    """Average the largest group of pixels of every 2x2 block that are close together."""
    shape = (d.shape[0] // 2, d.shape[1] // 2)
    merged, weight = np.empty(shape, np.float32), np.empty(shape, np.float32)
    _merge_blocks(d, m, np.float32(close), merged, weight)
    return merged, weight


@njit(**_FAST)
def _merge_blocks(d, m, close, merged, weight):
    for y in prange(merged.shape[0]):
        values, weights = np.empty(4, np.float32), np.empty(4, np.float32)
        for x in range(merged.shape[1]):
            for k in range(4):
                values[k] = d[2 * y + k // 2, 2 * x + k % 2]
                weights[k] = m[2 * y + k // 2, 2 * x + k % 2]
            best, most = 0, np.float32(-1)
            for k in range(4):
                support = np.float32(0)
                for n in range(4):
                    if abs(values[n] - values[k]) <= close:
                        support += weights[n]
                if weights[k] <= 0:
                    support = np.float32(0)
                if support > most:
                    best, most = k, support
            total, weighted = np.float32(0), np.float32(0)
            for n in range(4):
                if abs(values[n] - values[best]) <= close:
                    total += weights[n]
                    weighted += weights[n] * values[n]
            merged[y, x] = weighted / total if total > 0 else np.float32(0)
            weight[y, x] = np.float32(0.25) * total
