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
"""Registration of an image to the depth camera, in numpy: the reference."""

from __future__ import annotations

import numpy as np

# a pixel further away than this many times what is seen there is hidden behind it
HIDDEN = 1.04
NEIGHBOURS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))


def project_colors(image: np.ndarray, depth: np.ndarray, measured: np.ndarray, motion: np.ndarray,
                   cameras: np.ndarray, colors: np.ndarray) -> np.ndarray:
    """
    Fill colors (H W C) where a pixel is seen in the image (h w C); return where that is (H W).

    Depth is H W metres, of which the `measured` hide what is behind; motion 3 4 from the depth
    camera to the image's; cameras are fx, fy, cx, cy of both.
    """
    u, v, z = _projected(depth, motion, cameras)
    height, width, _ = image.shape
    nearest = np.full((height, width), np.inf)
    front = measured & (z > 0)
    with np.errstate(invalid='ignore'):
        left, top = np.floor(u[front]), np.floor(v[front])
    for dy in (0, 1):
        for dx in (0, 1):
            x, y = left + dx, top + dy
            within = (x >= 0) & (x < width) & (y >= 0) & (y < height)
            np.minimum.at(
                nearest, (y[within].astype(int), x[within].astype(int)), z[front][within])
    seen = (z > 0) & (u >= -0.5) & (u < width - 0.5) & (v >= -0.5) & (v < height - 0.5)
    u, v, z = np.clip(u[seen], 0, width - 1), np.clip(v[seen], 0, height - 1), z[seen]
    hidden = z > HIDDEN * nearest[np.floor(v + 0.5).astype(int), np.floor(u + 0.5).astype(int)]
    seen[seen] = ~hidden
    colors[seen] = _bilinear(image, u[~hidden], v[~hidden])
    return seen


def _projected(depth: np.ndarray, motion: np.ndarray,
               cameras: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where pixels of the depth lie in the image, and their distance from its camera."""
    y, x = np.mgrid[:depth.shape[0], :depth.shape[1]].astype(np.float64)
    z = depth.astype(np.float64)
    point = (x - cameras[2]) / cameras[0] * z, (y - cameras[3]) / cameras[1] * z, z
    there = [m[0] * point[0] + m[1] * point[1] + m[2] * point[2] + m[3] for m in motion]
    with np.errstate(divide='ignore', invalid='ignore'):
        return (cameras[4] * (there[0] / there[2]) + cameras[6],
                cameras[5] * (there[1] / there[2]) + cameras[7], there[2])


def _bilinear(image: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    height, width, _ = image.shape
    x, y = u.astype(int), v.astype(int)
    right, below = np.minimum(x + 1, width - 1), np.minimum(y + 1, height - 1)
    p, q = (u - x)[:, None], (v - y)[:, None]
    upper = (1 - p) * image[y, x] + p * image[y, right]
    lower = (1 - p) * image[below, x] + p * image[below, right]
    return ((1 - q) * upper + q * lower + 0.5).astype(image.dtype)


def spread_colors(depth: np.ndarray, seen: np.ndarray, colors: np.ndarray) -> None:
    """Give pixels without a colour, ring by ring, that of the neighbour nearest in depth."""
    known = np.pad(seen, 1)
    room = np.pad(depth, 1)
    padded = np.pad(colors, ((1, 1), (1, 1), (0, 0)))
    inner = (slice(1, -1), slice(1, -1))
    while not known[inner].all():
        least = np.full(depth.shape, np.inf, np.float32)
        found = padded[inner].copy()
        for dy, dx in NEIGHBOURS:
            at = (slice(1 + dy, 1 + dy + depth.shape[0]), slice(1 + dx, 1 + dx + depth.shape[1]))
            apart = np.where(known[at], np.abs(room[at] - depth), np.float32(np.inf))
            nearer = ~known[inner] & (apart < least)
            least[nearer] = apart[nearer]
            found[nearer] = padded[at][nearer]
        padded[inner] = found
        known[inner] |= np.isfinite(least)
    colors[:] = padded[inner]
