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
"""Graph weights that know of depth: CPU kernels."""

from __future__ import annotations

import math

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.edge_gating import LEAST_WEIGHT
from graph_depth_refiner.core.jit.fast_exp import fading
from graph_depth_refiner.core.jit.options import FUSED, ONE, U, ZERO
from graph_depth_refiner.core.rows_numba import for_graph, step_to


def gate_depth_edges(w: np.ndarray, x: np.ndarray, sigma: float) -> np.ndarray:
    """Return the weights times how well the planes x of two pixels predict each other."""
    aware = np.empty_like(w)
    _weigh(for_graph(x, w), w, np.float32(0.5 / sigma ** 2), aware)
    return aware


def relax_at_curvature(w: np.ndarray, x: np.ndarray, half: float) -> np.ndarray:
    """Return the weights of every pixel scaled down by how its slopes differ around it."""
    scaled = np.empty_like(w)
    _relax_at_curvature(for_graph(x, w), w, np.float32(1 / half), scaled)
    return scaled


@njit(parallel=True, **FUSED)
def _weigh(x, w, fade, aware):
    edges, height, width = w.shape
    r = (x.shape[1] - height) // 2
    n = U(width)
    for y in prange(height):
        d, ux, uy = x[0, y + r], x[1, y + r], x[2, y + r]
        s = U(r)
        for o in range(edges):
            dy, dx = step_to(o, edges, r)
            fx, fy, t = np.float32(dx), np.float32(dy), U(r + dx)
            e, ex, ey = x[0, y + r + dy], x[1, y + r + dy], x[2, y + r + dy]
            old, new = w[o, y], aware[o, y]
            for i in range(n):
                step = e[t + i] - d[s + i]
                other = step - ux[s + i] * fx - uy[s + i] * fy
                back = step - ex[t + i] * fx - ey[t + i] * fy
                weight = old[i] * fading(max(other * other, back * back) * fade)
                new[i] = weight if weight >= np.float32(LEAST_WEIGHT) else ZERO


@njit(parallel=True, **FUSED)
def _relax_at_curvature(x, w, steep, scaled):
    edges, height, width = w.shape
    r = (x.shape[1] - height) // 2
    n = U(width)
    for y in prange(height):
        slope_change, total = np.zeros(width, np.float32), np.zeros(width, np.float32)
        ux, uy, s = x[1, y + r], x[2, y + r], U(r)
        for o in range(edges):
            dy, dx = step_to(o, edges, r)
            vx, vy, t, row = x[1, y + r + dy], x[2, y + r + dy], U(r + dx), w[o, y]
            for i in range(n):
                a, b = vx[t + i] - ux[s + i], vy[t + i] - uy[s + i]
                slope_change[i] += row[i] * math.sqrt(a * a + b * b)
                total[i] += row[i]
        for i in range(n):
            mean = slope_change[i] / max(total[i], np.float32(LEAST_WEIGHT)) * steep
            total[i] = ONE / (ONE + mean * mean)
        for o in range(edges):
            for i in range(n):
                scaled[o, y, i] = w[o, y, i] * total[i]
