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
"""Flying pixels: the kernel for a CPU."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.flying import REACH, SUPPORT
from graph_depth_refiner.core.jit.options import FUSED, ONE, U, ZERO
from graph_depth_refiner.core.jit.simd import (
    abs_run,
    at_most_run,
    LANES,
    less_run,
    load_run,
    most_run,
    spread_run,
    store_run,
)
from graph_depth_refiner.core.rows_numba import padded, wide_enough

_SUPPORT = np.float32(SUPPORT)


def not_flying(planes: np.ndarray, d: np.ndarray, frames: np.ndarray, width: np.ndarray
               ) -> np.ndarray:
    """
    Return 0 where a pixel flies, 1 elsewhere, H W.

    planes, 3 H W, and d are inverse depth, frames what stands behind it, 0 where unknown; width,
    all H W, is how far a plane that agrees may be off.
    """
    columns = d.shape[1]
    planes, d, frames, width = wide_enough(planes, d, frames, width)
    kept = np.empty(d.shape, np.float32)
    _not_flying(padded(REACH, *planes, frames), d, width, kept)
    return np.ascontiguousarray(kept[:, :columns])


@njit(parallel=True, **FUSED)
def _not_flying(around, d, width, kept):
    height, wide = d.shape
    zero = spread_run(ZERO)
    for y in prange(height):
        for start in range(0, wide, LANES):
            first = min(start, wide - LANES)
            x = U(first)
            here, limit = load_run(d[y], x), load_run(width[y], x)
            agreeing, before, behind = zero, zero, zero
            for v in range(2 * REACH + 1):
                row = y + v
                dy = spread_run(np.float32(v - REACH))
                for u in range(2 * REACH + 1):
                    if v == REACH and u == REACH:
                        continue
                    at, dx = U(first + u), spread_run(np.float32(u - REACH))
                    known = less_run(zero, load_run(around[3, row], at))
                    off = load_run(around[0, row], at) - load_run(around[1, row], at) * dx \
                        - load_run(around[2, row], at) * dy - here
                    agreeing = agreeing + known * at_most_run(abs_run(off), limit)
                    before = most_run(before, known * less_run(limit, off))
                    behind = most_run(behind, known * less_run(off, zero - limit))
            own = less_run(zero, load_run(around[3, y + REACH], U(first + REACH)))
            flies = own * at_most_run(agreeing, spread_run(_SUPPORT)) * before * behind
            store_run(kept[y], x, spread_run(ONE) - flies)
