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
"""Consistency gate and running mean: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.temporal import (
    BIAS,
    CLIP,
    IMAGE,
    IMAGE_RADIUS,
    MISFIT,
    OUTLIER,
    RADIUS,
    SAME,
    SAME_SLOPE,
)

_RADII = (RADIUS, RADIUS, RADIUS, IMAGE_RADIUS)  # of the means of the maps
# The sums along a row are written out for these radii; unsigned indices are fast.
_ONE, _TWO, _THREE, _FOUR = (np.uint64(k) for k in (1, 2, 3, 4))
_FAST = {'parallel': True, 'nogil': True, 'cache': True, 'fastmath': True}


def consistency_gate(d: np.ndarray, m: np.ndarray, color: np.ndarray, warped: np.ndarray,
                     frame_count: np.ndarray, warped_color: np.ndarray, sigma: float
                     ) -> np.ndarray:
    """Return the weight of the warped planes, H W in [0, 1]."""
    maps = np.empty((4, *d.shape), np.float32)
    _residuals(d, m, color, warped[0], frame_count, warped_color, np.float32(1 / sigma), maps)
    result = np.empty(d.shape, np.float32)
    _consistency_gate(maps, frame_count, result)
    return result


@njit(**_FAST)
def _residuals(d, m, color, warped, frame_count, warped_color, inverse, maps):
    height, width = d.shape
    channels = color.shape[0]
    clip, shade = np.float32(CLIP), np.float32(1 / (255.0 * channels))
    for y in prange(height):
        for x in range(width):
            both = np.float32((m[y, x] > 0) & (frame_count[y, x] > 0))
            r = both * max(-clip, min(clip, (d[y, x] - warped[y, x]) * inverse))
            maps[0, y, x] = both
            maps[1, y, x] = r
            maps[2, y, x] = abs(r)
            color_distance = 0
            for c in range(channels):
                color_distance += abs(int(color[c, y, x]) - int(warped_color[c, y, x]))
            maps[3, y, x] = np.float32(color_distance) * shade


@njit(**_FAST)
def _consistency_gate(maps, frame_count, result):
    """Weigh by the means of the maps around every pixel; the image is mirrored beyond."""
    height, width = frame_count.shape
    for row in prange(height):
        y = np.int64(row)
        sums = np.zeros((4, width + 4), np.float32)
        for k in range(4):
            radius = _RADII[k]
            for dy in range(-radius, radius + 1):
                _add(maps[k, _mirrored(y + dy, height)], sums[k])
            for x in (-2, -1, width, width + 1):
                sums[k, x + 2] = sums[k, _mirrored(x, width) + 2]
        both, bias, misfit, color_distance = sums[0], sums[1], sums[2], sums[3]
        for x in range(np.uint64(width)):
            share = np.float32(1) / max(_five(both, x), np.float32(25e-6))
            image = (color_distance[x + _ONE] + color_distance[x + _TWO]
                     + color_distance[x + _THREE]) / np.float32(9)
            history_weight = _falling(abs(_five(bias, x)) * share, BIAS) \
                * _falling(_five(misfit, x) * share, MISFIT) * _falling(image, IMAGE)
            result[y, x] = history_weight if frame_count[y, x] > 0 else np.float32(0)


@njit(inline='always')
def _mirrored(i, n):
    while not 0 <= i < n:
        i = -1 - i if i < 0 else 2 * n - 1 - i
    return i


@njit(inline='always')
def _add(row, sums):
    for x in range(np.uint64(row.size)):
        sums[x + _TWO] += row[x]


@njit(inline='always')
def _five(sums, x):
    """Return the sum of five neighbours."""
    return sums[x] + sums[x + _ONE] + sums[x + _TWO] + sums[x + _THREE] + sums[x + _FOUR]


@njit(inline='always')
def _falling(value, limits):
    """Return 1 below the first limit, 0 beyond the second, linear between."""
    part = (np.float32(limits[1]) - value) * np.float32(1 / (limits[1] - limits[0]))
    return min(np.float32(1), max(np.float32(0), part))


def fuse(d: np.ndarray, m: np.ndarray, chosen: np.ndarray, warped: np.ndarray,
         frame_count: np.ndarray, sigma: float, limit: float
         ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return planes 3 H W to start from, data d and m, and the frames they count for, H W."""
    planes, data = np.empty_like(chosen), np.empty_like(d)
    weight, left = np.empty_like(m), np.empty_like(m)
    _fuse(d, m, chosen, warped, frame_count, np.float32(sigma), np.float32(limit), planes, data,
          weight, left)
    return planes, data, weight, left


@njit(**_FAST)
def _fuse(d, m, chosen, warped, frame_count, sigma, limit, planes, data, weight, left):
    height, width = d.shape
    same, steep, outlier = np.float32(SAME) * sigma, sigma, np.float32(OUTLIER) * sigma
    for y in prange(height):
        for x in range(width):
            off = abs(warped[0, y, x] - chosen[0, y, x])
            slope_change = (abs(warped[1, y, x] - chosen[1, y, x])
                            + abs(warped[2, y, x] - chosen[2, y, x])) * np.float32(SAME_SLOPE)
            n = min(frame_count[y, x], limit) if off < same and slope_change < steep \
                else np.float32(0)
            gain = np.float32(1) / (np.float32(1) + n)
            for k in range(3):
                old = warped[k, y, x] if n > 0 else chosen[k, y, x]
                planes[k, y, x] = old + gain * (chosen[k, y, x] - old)
            kept = m[y, x] if abs(d[y, x] - chosen[0, y, x]) <= outlier else np.float32(0)
            total = kept + n
            old = warped[0, y, x]
            data[y, x] = (kept * d[y, x] + n * old) / total if total > 0 else planes[0, y, x]
            weight[y, x] = max(kept, min(n, np.float32(1)))
            left[y, x] = min(total, limit)
