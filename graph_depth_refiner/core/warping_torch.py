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
"""Forward warping of planes along a rigid motion, with a z-buffer: the reference."""

from __future__ import annotations

import numpy as np

from graph_depth_refiner.core import camera
from graph_depth_refiner.core.warping import EDGE_ON
from graph_depth_refiner.frame import Intrinsics


def warp(x: np.ndarray, n: np.ndarray, color: np.ndarray, motion: np.ndarray,
          intrinsics: Intrinsics) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Return planes 3 H W, evidence H W and colour C H W as seen after P' = R P + t.

    A plane <q, P> = 1 becomes q' = R q / (1 + <R q, t>), exactly. Of the planes that land
    on a pixel the nearest stays; a crack between them takes the nearest of its neighbours.
    """
    height, width = n.shape
    target, moved = _aim(x, n, motion, intrinsics)
    landed = np.flatnonzero(target >= 0)
    # the last write wins: nearest last, and of equally near ones the first
    order = landed[np.lexsort((-landed, moved[0].ravel()[landed]))]
    source = np.full(n.size, -1)
    source[target.ravel()[order]] = order
    source = source.reshape(n.shape)
    source, dy, dx = _without_cracks(source, moved[0].ravel())
    found = source >= 0
    warped = moved.reshape(3, -1)[:, source] * found  # 3 H W
    warped[0] += warped[1] * dx + warped[2] * dy
    frame_count = n.ravel()[source] * found
    seen = color.reshape(len(color), -1)[:, source] * found
    return warped.astype(np.float32), frame_count.astype(np.float32), seen.astype(np.uint8)


def _aim(x, n, motion, intrinsics):
    """Return the pixel each plane lands on (-1 none), and its d, ux, uy there."""
    height, width = n.shape
    k, rotation, translation = intrinsics, motion[:3, :3], motion[:3, 3]
    across, down = camera.pixel_offsets(n.shape, intrinsics)
    rays = np.stack(np.broadcast_arrays(across / k.fx, down / k.fy, np.float32(1)))  # 3 H W
    here = (x[0] > 0) & (n > 0)
    point = np.einsum('ij,jhw->ihw', rotation, rays) + x[0] * translation[:, None, None]
    here &= point[2] > 0
    depth = np.where(here, point[2], 1)
    column = np.rint(k.fx * point[0] / depth + k.cx)
    row = np.rint(k.fy * point[1] / depth + k.cy)
    here &= (column >= 0) & (column < width) & (row >= 0) & (row < height)
    q = np.einsum('ij,jhw->ihw', rotation, camera.plane_vectors(x, intrinsics))
    scale = 1 + np.einsum('ihw,i->hw', q, translation)
    here &= scale > 0
    q = q / np.where(here, scale, 1)
    value = q[0] * (column - k.cx) / k.fx + q[1] * (row - k.cy) / k.fy + q[2]
    straight = x[0] / depth  # inverse depth of the point itself
    # seen edge-on a plane is elsewhere half a pixel aside
    here &= (value >= EDGE_ON * straight) & (EDGE_ON * value <= straight)
    target = np.where(here, row * width + column, -1).astype(np.int64)
    return target, np.stack([value, q[0] / k.fx, q[1] / k.fy])


def _without_cracks(source, near):
    """Let pixels that nothing landed on take the nearest plane of their four neighbours."""
    dy, dx = np.zeros(source.shape), np.zeros(source.shape)
    best = np.zeros(source.shape)
    filled = source.copy()
    padded = np.pad(source, 1, constant_values=-1)
    height, width = source.shape
    for sy, sx in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        other = padded[1 + sy:1 + sy + height, 1 + sx:1 + sx + width]
        value = np.where(other >= 0, near[other], 0)
        better = (source < 0) & (value > best)
        best = np.where(better, value, best)
        filled = np.where(better, other, filled)
        dy, dx = np.where(better, -sy, dy), np.where(better, -sx, dx)
    return filled, dy, dx
