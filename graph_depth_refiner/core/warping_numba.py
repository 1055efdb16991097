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
"""Forward warping of planes along a rigid motion, with a z-buffer: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.camera import pinhole
from graph_depth_refiner.core.jit.options import FUSED, INLINE, ONE, U
from graph_depth_refiner.core.warping import CRACK_SHARE, EDGE_ON
from graph_depth_refiner.frame import Intrinsics

_CRACK_SHARE = np.float32(CRACK_SHARE)


@njit(parallel=True, **FUSED)
def _project(x, n, rotation, translation, camera, target, moved):
    """Move every plane: target is the pixel it lands on (-1 none), moved its d, ux, uy there."""
    height, width = n.shape
    fx, fy, cx, cy = camera[0], camera[1], camera[2], camera[3]
    edge_on, none = np.float32(EDGE_ON), np.float32(0)
    for y in prange(height):
        down = np.float32(y) - cy
        ry = down / fy
        for u in range(U(width)):
            d, ux, uy = x[0, y, u], x[1, y, u], x[2, y, u]
            across = np.float32(u) - cx
            rx = across / fx
            # the point in the new camera, times d
            px = rotation[0, 0] * rx + rotation[0, 1] * ry + rotation[0, 2] + d * translation[0]
            py = rotation[1, 0] * rx + rotation[1, 1] * ry + rotation[1, 2] + d * translation[1]
            pz = rotation[2, 0] * rx + rotation[2, 1] * ry + rotation[2, 2] + d * translation[2]
            hu, hv = np.rint(fx * px / pz + cx), np.rint(fy * py / pz + cy)
            a, b, c = fx * ux, fy * uy, d - ux * across - uy * down
            qa = rotation[0, 0] * a + rotation[0, 1] * b + rotation[0, 2] * c
            qb = rotation[1, 0] * a + rotation[1, 1] * b + rotation[1, 2] * c
            qc = rotation[2, 0] * a + rotation[2, 1] * b + rotation[2, 2] * c
            scale = ONE + qa * translation[0] + qb * translation[1] + qc * translation[2]
            qa, qb, qc = qa / scale, qb / scale, qc / scale
            value = qa * (hu - cx) / fx + qb * (hv - cy) / fy + qc
            straight = d / pz  # inverse depth of the point itself
            # comparisons with NaN are false; seen edge-on, half a pixel aside a plane is elsewhere
            lands = (d > none) & (n[y, u] > none) & (pz > none) & (scale > none) \
                & (hu >= none) & (hu < np.float32(width)) \
                & (hv >= none) & (hv < np.float32(height)) \
                & (value >= edge_on * straight) & (edge_on * value <= straight)
            column, row = (hu, hv) if lands else (none, none)
            target[y, u] = np.int32(row) * np.int32(width) + np.int32(column) if lands \
                else np.int32(-1)
            moved[0, y, u] = value
            moved[1, y, u] = qa / fx
            moved[2, y, u] = qb / fy


@njit(nogil=True, cache=True)
def _splat_nearest(target, near, source, depth):
    """Keep for every pixel the nearest plane that lands on it; source -1 where none does."""
    source[:] = -1
    depth[:] = 0
    for i in range(target.size):
        t = target[i]
        if t >= 0 and near[i] > depth[t]:
            depth[t] = near[i]
            source[t] = i


@njit(parallel=True, **FUSED)
def _gather(source, moved, n, color, warped, frame_count, seen):
    """Bring what lands on each pixel there; all but the source lie as N, or C N."""
    height, width = source.shape
    none = np.float32(0)
    for y in prange(height):
        first = U(y * width)
        for x in range(U(width)):
            best, here = source[y, x], first + x
            if best >= 0:
                i = U(best)
                warped[0, here] = moved[0, i]
                warped[1, here], warped[2, here] = moved[1, i], moved[2, i]
                frame_count[here] = n[i]
                for c in range(color.shape[0]):
                    seen[c, here] = color[c, i]
            else:
                warped[0, here] = warped[1, here] = warped[2, here] = frame_count[here] = none
                for c in range(color.shape[0]):
                    seen[c, here] = 0
        for x in range(width):
            if source[y, x] < 0 and _between(source, y, x):
                _close_crack(source, y, x, moved, n, color, warped, frame_count, seen)


@njit(**INLINE)
def _between(source, y, x):
    """Tell whether something landed on two opposite sides of a pixel."""
    height, width = source.shape
    return (0 < x < width - 1 and source[y, x - 1] >= 0 and source[y, x + 1] >= 0) or (
        0 < y < height - 1 and source[y - 1, x] >= 0 and source[y + 1, x] >= 0)


@njit(**FUSED)
def _close_crack(source, y, x, moved, n, color, warped, frame_count, seen):
    """Give a pixel the nearest of what landed beside it, with a share of its frames."""
    height, width = source.shape
    best, near, aside, down = 0, np.float32(0), 0, 0
    for side in range(4):
        dy, dx = (side == 0) - (side == 1), (side == 2) - (side == 3)
        v, u = y + dy, x + dx
        if 0 <= v < height and 0 <= u < width and source[v, u] >= 0 \
                and moved[0, source[v, u]] > near:
            best, near, aside, down = source[v, u], moved[0, source[v, u]], dx, dy
    here = y * width + x
    ux, uy = moved[1, best], moved[2, best]
    warped[0, here] = near - ux * np.float32(aside) - uy * np.float32(down)
    warped[1, here], warped[2, here] = ux, uy
    frame_count[here] = _CRACK_SHARE * n[best]
    for c in range(color.shape[0]):
        seen[c, here] = color[c, best]


def warp(x: np.ndarray, n: np.ndarray, color: np.ndarray, motion: np.ndarray,
         intrinsics: Intrinsics) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return planes 3 H W, frame count H W and colour C H W as seen after P' = R P + t."""
    motion = motion.astype(np.float32)
    target = np.empty(n.shape, np.int32)
    moved = np.empty_like(x)
    _project(x, n, motion[:3, :3], motion[:3, 3], pinhole(intrinsics), target, moved)
    source = np.empty(n.shape, np.int32)
    depth = np.empty(n.size, np.float32)
    _splat_nearest(target.ravel(), moved[0].ravel(), source.ravel(), depth)
    warped, frame_count, seen = np.empty_like(x), np.empty_like(n), np.empty_like(color)
    _gather(source, moved.reshape(3, -1), n.ravel(), color.reshape(len(color), -1),
            warped.reshape(3, -1), frame_count.ravel(), seen.reshape(len(color), -1))
    return warped, frame_count, seen
