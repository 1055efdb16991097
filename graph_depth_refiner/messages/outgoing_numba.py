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
"""The arrays of outgoing messages, each in one pass; the reference is `outgoing_numpy`."""

from __future__ import annotations

from numba import njit
import numpy as np

from graph_depth_refiner.core.jit.options import EXACT, EXACT_INLINE, ONE, U, ZERO

LARGEST = np.finfo(np.float32).max


@njit(**EXACT)
def cloud_points(depth, normals, colors, camera, step, points, colors_out):
    """
    Fill points (H W F float32), of which colors_out is the uint32 view; every step-th pixel.

    F is 3 for x, y, z; 4 with the colour; 8 with normal and curvature, too. Camera is fx, fy, cx,
    cy as float32. Return whether all of it is finite.
    """
    height, width = depth.shape
    fields = points.shape[2]
    fx, fy, cx, cy = camera
    ray, variation = np.empty(width, np.float32), np.empty(width, np.float32)
    for column in range(width):
        ray[column] = (np.float32(column) - cx) / fx
    ring = np.zeros((3, 4, width + 2), np.float32)  # of rows of normals
    taken = -1  # the last row in it
    finite = True
    for row in range(0, height, step):
        if fields == 8:
            for i in range(max(taken + 1, row - 1), min(row + 2, height)):
                _take(normals[i], ring[i % 3])
            taken = row + 1
            if row == height - 1:
                ring[(row + 1) % 3] = 0
            finite &= _variation(
                ring[(row + 2) % 3], ring[row % 3], ring[(row + 1) % 3], variation)
        y = (np.float32(row) - cy) / fy
        finite &= _row(depth[row], normals[row], colors[min(row, len(colors) - 1)], variation, ray,
                       y, step, points[row // step], colors_out[row // step])
    return finite


@njit(**EXACT_INLINE)
def _take(normals, taken):
    """Take a row of normals (W 3) apart: 4 (W + 2), the last how many are known, 0 or 1."""
    x, y, z, count = taken[0], taken[1], taken[2], taken[3]
    for column in range(U(len(normals))):
        first = normals[column, U(0)]
        known = first == first
        x[column + U(1)] = first if known else ZERO
        y[column + U(1)] = normals[column, U(1)] if known else ZERO
        z[column + U(1)] = normals[column, U(2)] if known else ZERO
        count[column + U(1)] = ONE if known else ZERO


@njit(**EXACT_INLINE)
def _variation(above, here, below, variation):
    """Fill the curvature of a row, NaN where there is no normal; return whether there is one."""
    sums = np.empty_like(here)
    for k in range(4):
        total, a, b, c = sums[k], above[k], here[k], below[k]
        for column in range(U(len(total))):
            total[column] = a[column] + b[column] + c[column]
    x, y, z, count, known = sums[0], sums[1], sums[2], sums[3], here[3]
    missing = 0
    for column in range(U(len(variation))):
        b, c = column + U(1), column + U(2)
        tx, ty, tz = x[column] + x[b] + x[c], y[column] + y[b] + y[c], z[column] + z[b] + z[c]
        n = count[column] + count[b] + count[c]
        length = np.sqrt(tx * tx + ty * ty + tz * tz) / max(n, ONE)
        variation[column] = max(ONE - length, ZERO) if known[b] > ZERO else np.float32(np.nan)
        missing += known[b] == ZERO
    return missing == 0


@njit(**EXACT_INLINE)
def _row(depth, normals, colors, variation, ray, y, step, points, colors_out):
    """Fill a row of points (W F); return whether all depth is finite."""
    fields = points.shape[1]
    missing = 0
    for place in range(U(len(points))):
        column = place * U(step)
        z = depth[column]
        missing += not (abs(z) <= LARGEST)
        points[place, U(0)] = z * ray[column]
        points[place, U(1)] = z * y
        points[place, U(2)] = z
        if fields > 3:
            colors_out[place, U(3)] = colors[column] & np.uint32(0xFFFFFF)
        if fields > 4:
            points[place, U(4)] = normals[column, U(0)]
            points[place, U(5)] = normals[column, U(1)]
            points[place, U(6)] = normals[column, U(2)]
            points[place, U(7)] = variation[column]
    return missing == 0


@njit(**EXACT)
def normal_colors(normals, colors):
    """Fill colors (H W 3 uint8): red right, green up, blue at the camera, black unknown."""
    height, width = normals.shape[:2]
    gain = np.empty(3 * width, np.float32)
    for k in range(len(gain)):
        gain[k] = 127.5 if k % 3 == 0 else -127.5
    for row in range(height):
        # all numbers alike, whatever they are of, so that several go at once
        given, filled = normals[row].reshape(-1), colors[row].reshape(-1)
        for k in range(U(len(gain))):
            value = given[k]
            color = np.float32(128) + gain[k] * value
            filled[k] = np.uint8(np.int32(color if value == value else ZERO))


@njit(**EXACT)
def millimetres(depth, stored):
    """Fill stored (H W uint16) with rounded millimetres, 0 where they do not fit or are none."""
    height, width = depth.shape
    for row in range(height):
        for column in range(width):
            value = depth[row, column] * np.float32(1000) + np.float32(0.5)
            # false for NaN
            fits = value < np.float32(65536)
            stored[row, column] = np.uint16(value if fits else np.float32(0))
