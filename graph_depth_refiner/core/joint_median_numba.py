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
"""A joint weighted median of similar pixels: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.inpainting import HALF
from graph_depth_refiner.core.inpainting_numba import weighted_median
from graph_depth_refiner.core.jit.fast_exp import fading
from graph_depth_refiner.core.jit.options import FUSED, ONE, U, ZERO
from graph_depth_refiner.core.joint_median import PLANE_SIDE, SIDE

_REACH, _PLANE_REACH = SIDE // 2, PLANE_SIDE // 2


def joint_weighted_median(z: np.ndarray, color: np.ndarray, stride: int, limit: float,
                          share: float, sigma: float) -> np.ndarray:
    """Return the map z, H W, with pixels replaced that similar ones around them contradict."""
    result = z.copy()
    _vote(
        z, color, stride, np.float32(limit), np.float32(share),
        np.float32(0.5 / (color.shape[0] * sigma * sigma)), result)
    return result


@njit(parallel=True, **FUSED)
def _vote(z, color, stride, limit, share, fade, result):
    height, width = z.shape
    for y in prange(height):
        total = np.zeros(width, np.float32)
        below = np.zeros(width, np.float32)
        above = np.zeros(width, np.float32)
        for a in range(-_REACH, _REACH + 1):
            v = y + a * stride
            if v < 0 or v >= height:
                continue
            for b in range(-_REACH, _REACH + 1):
                _poll(z, color, y, v, b * stride, limit, fade, total, below, above)
        values = np.empty(SIDE * SIDE, np.float32)
        weights = np.empty(SIDE * SIDE, np.float32)
        for x in range(width):
            against = max(below[x], above[x])
            if total[x] - below[x] - above[x] < share * total[x] and 2 * against >= total[x]:
                result[y, x] = _elected(z, color, y, x, stride, fade, values, weights)


@njit(**{**FUSED, 'forceinline': True})
def _poll(z, color, y, v, shift, limit, fade, total, below, above):
    """Add the weights of one pixel of the support of each pixel of a row."""
    here, there = U(max(0, -shift)), U(max(0, shift))
    mine, its = z[y], z[v]
    r, g, b = color[0, y], color[1, y], color[2, y]
    p, q, s = color[0, v], color[1, v], color[2, v]
    for x in range(U(max(0, z.shape[1] - abs(shift)))):
        i, j = here + x, there + x
        color_distance = (r[i] - p[j]) ** 2 + (g[i] - q[j]) ** 2 + (b[i] - s[j]) ** 2
        weight = fading(color_distance * fade)
        rise = its[j] - mine[i]
        total[i] += weight
        below[i] += weight if rise < -limit else ZERO
        above[i] += weight if rise > limit else ZERO


@njit(**FUSED)
def _elected(z, color, y, x, stride, fade, values, weights):
    height, width = z.shape
    count = 0
    for a in range(-_REACH, _REACH + 1):
        for b in range(-_REACH, _REACH + 1):
            v, u = y + a * stride, x + b * stride
            if 0 <= v < height and 0 <= u < width:
                color_distance = (color[0, y, x] - color[0, v, u]) ** 2
                color_distance += (color[1, y, x] - color[1, v, u]) ** 2
                color_distance += (color[2, y, x] - color[2, v, u]) ** 2
                values[count] = z[v, u]
                weights[count] = fading(color_distance * fade)
                count += 1
    return weighted_median(values, weights, count)


def joint_plane_median(planes: np.ndarray, weight: np.ndarray, color: np.ndarray, stride: int,
                       sigma: float) -> np.ndarray:
    """Return planes, 3 H W, with those of a weight, H W, below 1 replaced by the joint median."""
    result = planes.copy()
    _plane_medians(planes, weight, color, stride,
                   np.float32(0.5 / (color.shape[0] * sigma * sigma)), result)
    return result


@njit(parallel=True, **FUSED)
def _plane_medians(planes, weight, color, stride, fade, result):
    height, width = weight.shape
    for row in prange(height):
        y = np.int64(row)
        values = np.empty(PLANE_SIDE * PLANE_SIDE, np.float32)
        weights = np.empty(PLANE_SIDE * PLANE_SIDE, np.float32)
        places = np.empty(PLANE_SIDE * PLANE_SIDE, np.int64)
        for x in range(width):
            if weight[y, x] < ONE:
                at = _plane_median(planes, weight, color, y, x, stride, fade, values, weights,
                                   places)
                v, u = places[at] // width, places[at] % width
                result[0, y, x] = values[at]
                result[1, y, x], result[2, y, x] = planes[1, v, u], planes[2, v, u]


@njit(**FUSED)
def _plane_median(planes, weight, color, y, x, stride, fade, values, weights, places):
    """Return which of the planes around a pixel, in the order of their values, is the median."""
    height, width = weight.shape
    count, total = 0, ZERO
    for a in range(-_PLANE_REACH, _PLANE_REACH + 1):
        for b in range(-_PLANE_REACH, _PLANE_REACH + 1):
            v, u = y + a * stride, x + b * stride
            if 0 <= v < height and 0 <= u < width:
                color_distance = (color[0, y, x] - color[0, v, u]) ** 2
                color_distance += (color[1, y, x] - color[1, v, u]) ** 2
                color_distance += (color[2, y, x] - color[2, v, u]) ** 2
                own = fading(color_distance * fade) * weight[v, u]
                value = planes[0, v, u] + planes[1, v, u] * np.float32(x - u) \
                    + planes[2, v, u] * np.float32(y - v)
                k = count
                while k > 0 and values[k - 1] > value:
                    values[k], weights[k], places[k] = values[k - 1], weights[k - 1], places[k - 1]
                    k -= 1
                values[k], weights[k], places[k] = value, own, v * width + u
                count += 1
                total += own
    below = ZERO
    for k in range(count):
        below += weights[k]
        if below >= np.float32(HALF) * total:
            return k
    return count - 1
