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

from numba import get_num_threads, njit, prange
import numpy as np

from graph_depth_refiner.core.camera import pinhole
from graph_depth_refiner.core.jit.options import FUSED, INLINE, ONE, U, ZERO
from graph_depth_refiner.core.jit.simd import (
    choose_run,
    LANES,
    less_run,
    load_bytes,
    load_run,
    most_run,
    spread_run,
    store_bytes,
    store_run,
    sum_run,
)
from graph_depth_refiner.core.warping import CRACK_SHARE, EDGE_ON
from graph_depth_refiner.frame import Intrinsics

_CRACK_SHARE = np.float32(CRACK_SHARE)


@njit(parallel=True, **FUSED)
def _warp(x, n, color, rotation, translation, camera, bands, depth, warped, frame_count, seen):
    """
    Keep for every pixel the nearest plane that lands on it; depth is 0 where none does.

    Every band of rows is landed on row after row, so that the first of equals is the same for
    any number of bands.
    """
    (height, width), channels = n.shape, U(len(color))
    for band in prange(bands):
        top, bottom = height * band // bands, height * (band + 1) // bands
        first, end = U(top * width), U(bottom * width)
        depth[first:end] = 0
        target, moved = np.empty(width, np.int32), np.empty((3, width), np.float32)
        for y in range(height):
            if bands > 1 and not _reaches(x[0, y], n[y], rotation, translation, camera, y, top,
                                          bottom):
                continue
            _project(x, n, rotation, translation, camera, y, target, moved)
            for start in range(0, width, LANES):
                if start + LANES <= width and _in_order(target, start, first, end):
                    _land_run(U(target[start]), U(start), moved, n[y], color[:, y], depth,
                              warped, frame_count, seen)
                    continue
                for u in range(U(start), U(min(start + LANES, width))):
                    place = target[u]
                    if place < np.int32(first) or place >= np.int32(end):
                        continue
                    t = U(place)
                    near = moved[0, u]
                    if near > depth[t]:
                        depth[t] = warped[0, t] = near
                        warped[1, t], warped[2, t] = moved[1, u], moved[2, u]
                        frame_count[t] = n[y, u]
                        seen[0, t] = color[0, y, u]
                        if channels > 1:  # rarely, and a loop costs even where there is but one
                            for c in range(U(1), channels):
                                seen[c, t] = color[c, y, u]


@njit(**INLINE)
def _in_order(target, start, first, end):
    """Tell whether a run lands within a band, and on neighbouring pixels as it came."""
    begin, apart = target[start], np.int32(0)
    for lane in range(LANES):
        apart |= (target[U(start + lane)] - begin) ^ np.int32(lane)
    return apart == 0 and begin >= np.int32(first) and begin + LANES <= np.int32(end)


@njit(**INLINE)
def _land_run(t, u, moved, n, color, depth, warped, frame_count, seen):
    """Let a run land on neighbouring pixels where it is nearer than what landed before."""
    near, before = load_run(moved[0], u), load_run(depth, t)
    nearer = less_run(before, near)
    near = choose_run(nearer, near, before)
    store_run(depth, t, near)
    store_run(warped[0], t, near)
    for k in range(1, 3):
        store_run(warped[k], t, choose_run(nearer, load_run(moved[k], u), load_run(warped[k], t)))
    store_run(frame_count, t, choose_run(nearer, load_run(n, u), load_run(frame_count, t)))
    for c in range(seen.shape[0]):
        value = choose_run(nearer, load_bytes(color[c], u), load_bytes(seen[c], t))
        store_bytes(seen[c], t, value)


@njit(**FUSED)
def _project(x, n, rotation, translation, camera, y, target, moved):
    """Move the planes of a row: target is the pixel (-1 none), moved their d, ux, uy there."""
    height, width = n.shape
    fx, fy, cx, cy = camera[0], camera[1], camera[2], camera[3]
    edge_on, none = np.float32(EDGE_ON), np.float32(0)
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
        target[u] = np.int32(row) * np.int32(width) + np.int32(column) if lands \
            else np.int32(-1)
        moved[0, u] = value
        moved[1, u] = qa / fx
        moved[2, u] = qb / fy


@njit(**FUSED)
def _reaches(d, n, rotation, translation, camera, y, top, bottom):
    """Tell whether any point of a row may land in a band: its corners span where it lands."""
    nearest, farthest = ZERO, np.float32(np.inf)
    for u in range(U(d.size)):
        there = (d[u] > ZERO) & (n[u] > ZERO)
        nearest = max(nearest, d[u] if there else ZERO)
        farthest = min(farthest, d[u] if there else np.float32(np.inf))
    above, below = np.float32(np.inf), -np.float32(np.inf)
    ry = (np.float32(y) - camera[3]) / camera[1]
    for corner in range(4):
        rx = (np.float32(corner % 2 * (d.size - 1)) - camera[2]) / camera[0]
        away = nearest if corner < 2 else farthest
        py = rotation[1, 0] * rx + rotation[1, 1] * ry + rotation[1, 2] + away * translation[1]
        pz = rotation[2, 0] * rx + rotation[2, 1] * ry + rotation[2, 2] + away * translation[2]
        if pz <= ZERO:
            return nearest > ZERO
        v = camera[1] * py / pz + camera[3]
        above, below = min(above, v), max(below, v)
    # a pixel for what is rounded
    return nearest > ZERO and above < np.float32(bottom + 1) and below > np.float32(top - 2)


@njit(parallel=True, **FUSED)
def _close_cracks(depth, warped, frame_count, seen):
    """Close cracks between pixels that something landed on, two of them on opposite sides."""
    height, width = depth.shape
    for y in prange(height):
        for start in range(0, width, LANES):
            inner = 0 < y < height - 1 and 0 < start < width - LANES
            if inner and _clear_run(depth, y, U(start), warped, frame_count, seen):
                continue
            for x in range(start, min(start + LANES, width)):
                if depth[y, x] > ZERO:
                    continue
                if _between(depth, y, x):
                    _close_crack(depth, y, x, warped, frame_count, seen)
                else:
                    warped[0, y, x] = warped[1, y, x] = warped[2, y, x] = ZERO
                    frame_count[y, x] = ZERO
                    for c in range(seen.shape[0]):
                        seen[c, y, x] = 0


@njit(**INLINE)
def _clear_run(depth, y, x, warped, frame_count, seen):
    """Clear where nothing landed in a run inside the image, unless there is a crack in it."""
    zero, one = spread_run(ZERO), spread_run(ONE)
    landed = less_run(zero, load_run(depth[y], x))
    empty = one - landed
    if sum_run(empty) == ZERO:
        return True
    aside = less_run(zero, load_run(depth[y], x - U(1))) \
        * less_run(zero, load_run(depth[y], x + U(1)))
    along = less_run(zero, load_run(depth[y - 1], x)) * less_run(zero, load_run(depth[y + 1], x))
    if sum_run(empty * most_run(aside, along)) > ZERO:
        return False
    for k in range(3):
        store_run(warped[k, y], x, choose_run(landed, load_run(warped[k, y], x), zero))
    store_run(frame_count[y], x, choose_run(landed, load_run(frame_count[y], x), zero))
    for c in range(seen.shape[0]):
        store_bytes(seen[c, y], x, choose_run(landed, load_bytes(seen[c, y], x), zero))
    return True


@njit(**INLINE)
def _between(depth, y, x):
    """Tell whether something landed on two opposite sides of a pixel."""
    height, width = depth.shape
    return (0 < x < width - 1 and depth[y, x - 1] > ZERO and depth[y, x + 1] > ZERO) or (
        0 < y < height - 1 and depth[y - 1, x] > ZERO and depth[y + 1, x] > ZERO)


@njit(**FUSED)
def _close_crack(depth, y, x, warped, frame_count, seen):
    """Give a pixel the nearest of what landed beside it, with a share of its frames."""
    height, width = depth.shape
    near, aside, down = ZERO, 0, 0
    for side in range(4):
        dy, dx = (side == 0) - (side == 1), (side == 2) - (side == 3)
        v, u = y + dy, x + dx
        if 0 <= v < height and 0 <= u < width and depth[v, u] > near:
            near, aside, down = depth[v, u], dx, dy
    v, u = y + down, x + aside
    ux, uy = warped[1, v, u], warped[2, v, u]
    warped[0, y, x] = near - ux * np.float32(aside) - uy * np.float32(down)
    warped[1, y, x], warped[2, y, x] = ux, uy
    frame_count[y, x] = _CRACK_SHARE * frame_count[v, u]
    for c in range(seen.shape[0]):
        seen[c, y, x] = seen[c, v, u]


def warp(x: np.ndarray, n: np.ndarray, color: np.ndarray, motion: np.ndarray,
         intrinsics: Intrinsics) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return planes 3 H W, frame count H W and colour C H W as seen after P' = R P + t."""
    motion = motion.astype(np.float32)
    depth, warped = np.empty_like(n), np.empty_like(x)
    frame_count, seen = np.empty_like(n), np.empty_like(color)
    _warp(x, n, color, motion[:3, :3], motion[:3, 3], pinhole(intrinsics), get_num_threads(),
          depth.ravel(), warped.reshape(3, -1), frame_count.ravel(),
          seen.reshape(len(color), -1))
    _close_cracks(depth, warped, frame_count, seen)
    return warped, frame_count, seen
