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
"""Registration of an image to the depth camera; the reference is `registration_numpy`."""

from __future__ import annotations

from numba import njit
import numpy as np

from graph_depth_refiner.core.jit.options import EXACT
from graph_depth_refiner.messages.registration_numpy import HIDDEN, NEIGHBOURS


@njit(**EXACT)
def _projected(row, column, z, motion, cameras):
    """Return the place of a pixel in the image, and its distance from the image's camera."""
    x = (column - cameras[2]) / cameras[0] * z
    y = (row - cameras[3]) / cameras[1] * z
    there_x = motion[0, 0] * x + motion[0, 1] * y + motion[0, 2] * z + motion[0, 3]
    there_y = motion[1, 0] * x + motion[1, 1] * y + motion[1, 2] * z + motion[1, 3]
    there = motion[2, 0] * x + motion[2, 1] * y + motion[2, 2] * z + motion[2, 3]
    return (cameras[4] * (there_x / there) + cameras[6],
            cameras[5] * (there_y / there) + cameras[7], there)


@njit(**EXACT)
def project_colors(image, depth, measured, motion, cameras, colors):
    """Fill colors (H W C) where a pixel is seen in the image (h w C); return where (H W)."""
    height, width, channels = image.shape
    nearest = _nearest(depth, measured, motion, cameras, (height, width))
    seen = np.zeros(depth.shape, np.bool_)
    for row in range(depth.shape[0]):
        for column in range(depth.shape[1]):
            u, v, z = _projected(row, column, np.float64(depth[row, column]), motion, cameras)
            # also false for NaN
            if not (z > 0 and -0.5 <= u < width - 0.5 and -0.5 <= v < height - 0.5):
                continue
            u, v = min(max(u, 0.0), width - 1.0), min(max(v, 0.0), height - 1.0)
            if z > HIDDEN * nearest[int(np.floor(v + 0.5)), int(np.floor(u + 0.5))]:
                continue
            seen[row, column] = True
            x, y = int(u), int(v)
            right, below = min(x + 1, width - 1), min(y + 1, height - 1)
            p, q = u - x, v - y
            for c in range(channels):
                upper = (1 - p) * image[y, x, c] + p * image[y, right, c]
                lower = (1 - p) * image[below, x, c] + p * image[below, right, c]
                colors[row, column, c] = int((1 - q) * upper + q * lower + 0.5)
    return seen


@njit(**EXACT)
def _nearest(depth, measured, motion, cameras, shape):
    """Return the distance of the nearest surface by pixel of the image: the z-buffer."""
    nearest = np.full(shape, np.inf)
    for row in range(depth.shape[0]):
        for column in range(depth.shape[1]):
            if not measured[row, column]:
                continue
            u, v, z = _projected(row, column, np.float64(depth[row, column]), motion, cameras)
            # also false for NaN
            if not (z > 0 and -1 <= u < shape[1] and -1 <= v < shape[0]):
                continue
            left, top = int(np.floor(u)), int(np.floor(v))
            for y in range(max(top, 0), min(top + 2, shape[0])):
                for x in range(max(left, 0), min(left + 2, shape[1])):
                    nearest[y, x] = min(nearest[y, x], z)
    return nearest


@njit(**EXACT)
def spread_colors(depth, seen, colors):
    """Give pixels without a colour, ring by ring, that of the neighbour nearest in depth."""
    height, width = depth.shape
    known = seen.astype(np.uint8)  # 0 not, 1 known, 2 in the ring at hand or the next
    ring = np.empty(depth.size, np.int64)
    source = np.empty(depth.size, np.int64)
    first, last = 0, 0
    for row in range(height):
        for column in range(width):
            if known[row, column] == 0 and _beside_known(known, row, column):
                ring[last] = row * width + column
                last += 1
    for k in range(last):
        known[ring[k] // width, ring[k] % width] = 2
    while first < last:
        for k in range(first, last):
            source[k] = _nearest_in_depth(depth, known, ring[k] // width, ring[k] % width)
        for k in range(first, last):
            colors[ring[k] // width, ring[k] % width] = colors[
                source[k] // width, source[k] % width]
            known[ring[k] // width, ring[k] % width] = 1
        end = last
        for k in range(first, last):
            end = _queue_unknown(known, ring[k] // width, ring[k] % width, ring, end)
        first, last = last, end


@njit(**EXACT)
def _beside_known(known, row, column):
    for dy, dx in NEIGHBOURS:
        y, x = row + dy, column + dx
        if 0 <= y < known.shape[0] and 0 <= x < known.shape[1] and known[y, x] == 1:
            return True
    return False


@njit(**EXACT)
def _nearest_in_depth(depth, known, row, column):
    """Return the place of the known neighbour nearest in depth."""
    least = np.float32(np.inf)
    found = 0
    for dy, dx in NEIGHBOURS:
        y, x = row + dy, column + dx
        if 0 <= y < known.shape[0] and 0 <= x < known.shape[1] and known[y, x] == 1:
            apart = abs(depth[y, x] - depth[row, column])
            if apart < least:
                least = apart
                found = y * known.shape[1] + x
    return found


@njit(**EXACT)
def _queue_unknown(known, row, column, ring, end):
    for dy, dx in NEIGHBOURS:
        y, x = row + dy, column + dx
        if 0 <= y < known.shape[0] and 0 <= x < known.shape[1] and known[y, x] == 0:
            known[y, x] = 2
            ring[end] = y * known.shape[1] + x
            end += 1
    return end
