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


def inverse_depth(depth: np.ndarray, least: float, most: float
                  ) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse of depth, H W, 0 where it is not from least to most, and 1 elsewhere."""
    d, m = np.empty(depth.shape, np.float32), np.empty(depth.shape, np.float32)
    _inverse_depth(np.ascontiguousarray(depth), np.float32(least), np.float32(most), d, m)
    return d, m


@njit(parallel=True, **EXACT)
def _inverse_depth(depth, least, most, d, m):
    height, width = depth.shape
    for y in prange(height):
        for x in range(U(width)):
            value = depth[y, x]
            valid = (value >= least) & (value <= most)  # false for NaN
            m[y, x] = ONE if valid else ZERO
            d[y, x] = ONE / (value if valid else ONE) if valid else ZERO
