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

from graph_depth_refiner.core.jit.options import EXACT


@njit(**EXACT)
def cloud_points(depth, normals, colors, camera, points, colors_out):
    """
    Fill points (H W 8 float32), of which colors_out is the uint32 view.

    Camera is fx, fy, cx, cy as float32. Return for each row whether all of it is finite.
    """
    height, width = depth.shape
    fx, fy, cx, cy = camera
    finite = np.ones(height, np.uint8)
    for row in range(height):
        sums = _column_sums(normals, row)
        y = (np.float32(row) - cy) / fy
        all_finite = True
        for column in range(width):
            z = depth[row, column]
            points[row, column, 0] = z * ((np.float32(column) - cx) / fx)
            points[row, column, 1] = z * y
            points[row, column, 2] = z
            colors_out[row, column, 3] = colors[row, column]
            points[row, column, 4] = normals[row, column, 0]
            points[row, column, 5] = normals[row, column, 1]
            points[row, column, 6] = normals[row, column, 2]
            length = np.float32(0)
            for axis in range(3):
                total = sums[axis, column] + sums[axis, column + 1] + sums[axis, column + 2]
                length += total * total
            count = sums[3, column] + sums[3, column + 1] + sums[3, column + 2]
            # NaN where the normal is
            variation = np.float32(1) - np.sqrt(length) / max(count, np.float32(1)) \
                + np.float32(0) * normals[row, column, 0]
            if variation < 0:
                variation = np.float32(0)
            points[row, column, 7] = variation
            all_finite &= np.isfinite(z) and np.isfinite(variation)
        finite[row] = all_finite
    return finite


@njit(**EXACT)
def _column_sums(normals, row):
    """Add up three rows of normals and how many are known: 4 (W + 2), zero at both ends."""
    height, width = normals.shape[:2]
    sums = np.zeros((4, width + 2), np.float32)
    for i in range(max(row - 1, 0), min(row + 2, height)):
        for column in range(width):
            x = normals[i, column, 0]
            if x == x:
                sums[0, column + 1] += x
                sums[1, column + 1] += normals[i, column, 1]
                sums[2, column + 1] += normals[i, column, 2]
                sums[3, column + 1] += np.float32(1)
    return sums


@njit(**EXACT)
def normal_colors(normals, colors):
    """Fill colors (H W 3 uint8): red right, green up, blue at the camera, black unknown."""
    height, width = normals.shape[:2]
    half, middle = np.float32(127.5), np.float32(128)
    for row in range(height):
        for column in range(width):
            x = normals[row, column, 0]
            if x == x:
                colors[row, column, 0] = np.uint8(middle + half * x)
                colors[row, column, 1] = np.uint8(middle - half * normals[row, column, 1])
                colors[row, column, 2] = np.uint8(middle - half * normals[row, column, 2])
            else:
                colors[row, column, 0] = 0
                colors[row, column, 1] = 0
                colors[row, column, 2] = 0


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
