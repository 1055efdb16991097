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
"""Slopes of planes over the graph in closed form: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.jit.options import FUSED, ONE, U, ZERO
from graph_depth_refiner.core.rows_numba import for_graph, step_to
from graph_depth_refiner.core.slope_fit import LEAST_SPREAD, RIDGE


def fit_slopes(z: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the slopes, 2 H W, of the least-squares plane through every pixel of the map."""
    slopes = np.empty((2, *z.shape), np.float32)
    _fit(for_graph(z[None], w), w, slopes)
    return slopes


@njit(parallel=True, **FUSED)
def _fit(z, w, slopes):
    edges, height, width = w.shape
    r = (z.shape[1] - height) // 2
    n = U(width)
    for y in prange(height):
        sums = np.zeros((5, width), np.float32)
        xx, xy, yy, xz, yz = sums[0], sums[1], sums[2], sums[3], sums[4]
        values = z[0, y + r]
        for o in range(edges):
            dy, dx = step_to(o, edges, r)
            fx, fy = np.float32(dx), np.float32(dy)
            others, row = z[0, y + r + dy], w[o, y]
            s, t = U(r), U(r + dx)
            for x in range(n):
                weight = row[x]
                step = others[t + x] - values[s + x]
                xx[x] += weight * fx * fx
                xy[x] += weight * fx * fy
                yy[x] += weight * fy * fy
                xz[x] += weight * fx * step
                yz[x] += weight * fy * step
        ux, uy = slopes[0, y], slopes[1, y]
        for x in range(n):
            spread = xx[x] + yy[x]
            p, q = xx[x] + np.float32(RIDGE) * spread, yy[x] + np.float32(RIDGE) * spread
            det = p * q - xy[x] * xy[x]
            scale = ONE / det if spread > np.float32(LEAST_SPREAD) else ZERO
            ux[x] = (q * xz[x] - xy[x] * yz[x]) * scale
            uy[x] = (p * yz[x] - xy[x] * xz[x]) * scale
