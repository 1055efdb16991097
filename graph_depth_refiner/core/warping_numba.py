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
    at_most_run,
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
from graph_depth_refiner.core.warping import CRACK_SHARE, CRACK_STEP, EDGE_ON
from graph_depth_refiner.frame import Intrinsics

_CRACK_SHARE, _CRACK_STEP = np.float32(CRACK_SHARE), np.float32(CRACK_STEP)
_HALF = np.float32(0.5)


@njit(parallel=True, **FUSED)
def _warp(d, n, color, slopes, rotation, translation, camera, bands, warped, frame_count, seen):
    """
    Keep for every pixel the nearest plane that lands on it; warped is 0 where none does.

    Every band of rows is landed on row after row, so that the first of equals is the same for
    any number of bands.
    """
    (height, width), channels = n.shape, U(len(color))
    rows = slopes.shape[1]
    scale = height // rows
    for band in prange(bands):
        top, bottom = height * band // bands, height * (band + 1) // bands
        first, end = U(top * width), U(bottom * width)
        warped[first:end] = 0
        target, moved = np.empty(width, np.int32), np.empty(width, np.float32)
        slope, row = np.empty((2, width), np.float32), -1
        for y in range(height):
            if bands > 1 and not _reaches(d[y], n[y], rotation, translation, camera, y, top,
                                          bottom):
                continue
            if row != min(y // scale, rows - 1):
                row = min(y // scale, rows - 1)
                _spread(slopes[0, row], scale, slope[0])
                _spread(slopes[1, row], scale, slope[1])
            _project(d[y], n[y], slope, rotation, translation, camera, y, height, target, moved)
            for start in range(0, width, LANES):
                if start + LANES <= width and _in_order(target, start, first, end):
                    _land_run(U(target[start]), U(start), moved, n[y], color[:, y],
                              warped, frame_count, seen)
                    continue
                for u in range(U(start), U(min(start + LANES, width))):
                    place = target[u]
                    if place < np.int32(first) or place >= np.int32(end):
                        continue
                    t = U(place)
                    if moved[u] > warped[t]:
                        warped[t] = moved[u]
                        frame_count[t] = n[y, u]
                        seen[0, t] = color[0, y, u]
                        if channels > 1:  # rarely, and a loop costs even where there is but one
                            for c in range(U(1), channels):
                                seen[c, t] = color[c, y, u]


@njit(**INLINE)
def _spread(cells, scale, slope):
    """Give the pixels of a row the slope of their cell, per pixel."""
    share = ONE / np.float32(scale)
    for c in range(U(cells.size)):
        for x in range(U(scale) * c, U(scale) * c + U(scale)):
            slope[x] = share * cells[c]
    for x in range(scale * cells.size, slope.size):
        slope[x] = share * cells[-1]


@njit(**INLINE)
def _in_order(target, start, first, end):
    """Tell whether a run lands within a band, and on neighbouring pixels as it came."""
    begin, apart = target[start], np.int32(0)
    for lane in range(LANES):
        apart |= (target[U(start + lane)] - begin) ^ np.int32(lane)
    return apart == 0 and begin >= np.int32(first) and begin + LANES <= np.int32(end)


@njit(**INLINE)
def _land_run(t, u, moved, n, color, warped, frame_count, seen):
    """Let a run land on neighbouring pixels where it is nearer than what landed before."""
    near, before = load_run(moved, u), load_run(warped, t)
    nearer = less_run(before, near)
    store_run(warped, t, choose_run(nearer, near, before))
    store_run(frame_count, t, choose_run(nearer, load_run(n, u), load_run(frame_count, t)))
    for c in range(seen.shape[0]):
        value = choose_run(nearer, load_bytes(color[c], u), load_bytes(seen[c], t))
        store_bytes(seen[c], t, value)


@njit(**FUSED)
def _project(d, n, slope, rotation, translation, camera, y, height, target, moved):
    """Move the planes of a row: target is the pixel (-1 none), moved their inverse depth there."""
    width = d.size
    fx, fy, cx, cy = camera[0], camera[1], camera[2], camera[3]
    edge_on, none = np.float32(EDGE_ON), np.float32(0)
    down = np.float32(y) - cy
    ry = down / fy
    for u in range(U(width)):
        here, ux, uy = d[u], slope[0, u], slope[1, u]
        across = np.float32(u) - cx
        rx = across / fx
        # the point in the new camera, times d
        px = rotation[0, 0] * rx + rotation[0, 1] * ry + rotation[0, 2] + here * translation[0]
        py = rotation[1, 0] * rx + rotation[1, 1] * ry + rotation[1, 2] + here * translation[1]
        pz = rotation[2, 0] * rx + rotation[2, 1] * ry + rotation[2, 2] + here * translation[2]
        hu, hv = np.rint(fx * px / pz + cx), np.rint(fy * py / pz + cy)
        a, b, c = fx * ux, fy * uy, here - ux * across - uy * down
        qa = rotation[0, 0] * a + rotation[0, 1] * b + rotation[0, 2] * c
        qb = rotation[1, 0] * a + rotation[1, 1] * b + rotation[1, 2] * c
        qc = rotation[2, 0] * a + rotation[2, 1] * b + rotation[2, 2] * c
        scale = ONE + qa * translation[0] + qb * translation[1] + qc * translation[2]
        value = (qa * (hu - cx) / fx + qb * (hv - cy) / fy + qc) / scale
        straight = here / pz  # inverse depth of the point itself
        # comparisons with NaN are false; seen edge-on, half a pixel aside a plane is elsewhere
        lands = (here > none) & (n[u] > none) & (pz > none) & (scale > none) \
            & (hu >= none) & (hu < np.float32(width)) \
            & (hv >= none) & (hv < np.float32(height)) \
            & (value >= edge_on * straight) & (edge_on * value <= straight)
        column, row = (hu, hv) if lands else (none, none)
        target[u] = np.int32(row) * np.int32(width) + np.int32(column) if lands \
            else np.int32(-1)
        moved[u] = value


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
def _close_cracks(warped, frame_count, seen, closed):
    """Close cracks between pixels that something landed on, two of them on opposite sides."""
    height, width = warped.shape
    for row in prange(height):
        y = np.int64(row)
        for start in range(0, width, LANES):
            if 0 < y < height - 1 and 0 < start < width - LANES:
                _close_run(warped, y, U(start), frame_count, seen, closed)
            else:
                for x in range(start, min(start + LANES, width)):
                    _close(warped, y, x, frame_count, seen, closed)


@njit(**INLINE)
def _close_run(warped, y, x, frame_count, seen, closed):
    """Close the cracks of a run inside the image."""
    zero, here = spread_run(ZERO), load_run(warped[y], x)
    landed = less_run(zero, here)
    if sum_run(landed) == LANES:
        store_run(closed[y], x, here)
        return
    left, right = load_run(warped[y], x - U(1)), load_run(warped[y], x + U(1))
    up, down = load_run(warped[y - 1], x), load_run(warped[y + 1], x)
    between = (spread_run(ONE) - landed) * most_run(
        less_run(zero, left) * less_run(zero, right), less_run(zero, up) * less_run(zero, down))
    near, opposite = down, up
    more = less_run(near, up)
    near, opposite = choose_run(more, up, near), choose_run(more, down, opposite)
    aside = less_run(near, right)
    near, opposite = choose_run(aside, right, near), choose_run(aside, left, opposite)
    last = less_run(near, left)
    near, opposite = choose_run(last, left, near), choose_run(last, right, opposite)
    alike = at_most_run(near - opposite, spread_run(_CRACK_STEP) * near)
    value = choose_run(alike, spread_run(_HALF) * (near + opposite), near)
    store_run(closed[y], x, choose_run(landed, here, choose_run(between, value, zero)))
    # nothing is closed beside a crack: those that it takes from are as they landed
    n = choose_run(more, load_run(frame_count[y - 1], x), load_run(frame_count[y + 1], x))
    n = choose_run(aside, load_run(frame_count[y], x + U(1)), n)
    n = choose_run(last, load_run(frame_count[y], x - U(1)), n)
    n = choose_run(between, spread_run(_CRACK_SHARE) * n, zero)
    store_run(frame_count[y], x, choose_run(landed, load_run(frame_count[y], x), n))
    for c in range(U(seen.shape[0])):
        shade = choose_run(more, load_bytes(seen[c, y - 1], x), load_bytes(seen[c, y + 1], x))
        shade = choose_run(aside, load_bytes(seen[c, y], x + U(1)), shade)
        shade = choose_run(last, load_bytes(seen[c, y], x - U(1)), shade)
        shade = choose_run(between, shade, zero)
        store_bytes(seen[c, y], x, choose_run(landed, load_bytes(seen[c, y], x), shade))


@njit(**INLINE)
def _close(warped, y, x, frame_count, seen, closed):
    """Close a pixel, if it is a crack; clear it, if nothing landed on it."""
    height, width = warped.shape
    closed[y, x] = warped[y, x]
    if warped[y, x] > ZERO:
        return
    frame_count[y, x] = ZERO
    for c in range(seen.shape[0]):
        seen[c, y, x] = 0
    if not ((0 < x < width - 1 and warped[y, x - 1] > ZERO and warped[y, x + 1] > ZERO) or (
            0 < y < height - 1 and warped[y - 1, x] > ZERO and warped[y + 1, x] > ZERO)):
        return
    near, row, column, opposite = ZERO, y, x, ZERO
    for side in range(4):
        dy, dx = (side == 0) - (side == 1), (side == 2) - (side == 3)
        v, u = y + dy, x + dx
        if 0 <= v < height and 0 <= u < width and warped[v, u] > near:
            near, row, column = warped[v, u], v, u
            inside = 0 <= y - dy < height and 0 <= x - dx < width
            opposite = warped[y - dy, x - dx] if inside else ZERO
    if near - opposite <= _CRACK_STEP * near:
        near = _HALF * (near + opposite)
    closed[y, x] = near
    frame_count[y, x] = _CRACK_SHARE * frame_count[row, column]
    for c in range(seen.shape[0]):
        seen[c, y, x] = seen[c, row, column]


def warp(d: np.ndarray, n: np.ndarray, color: np.ndarray, slopes: np.ndarray,
         motion: np.ndarray, intrinsics: Intrinsics
         ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Return inverse depth H W, frame count H W and colour C H W as seen after P' = R P + t.

    The slopes, 2 h w, are those of the planes at the same or a lower resolution.
    """
    motion = motion.astype(np.float32)
    warped, frame_count, seen = np.empty_like(n), np.empty_like(n), np.empty_like(color)
    _warp(d, n, color, slopes, motion[:3, :3], motion[:3, 3], pinhole(intrinsics),
          get_num_threads(), warped.ravel(), frame_count.ravel(), seen.reshape(len(color), -1))
    closed = np.empty_like(n)
    _close_cracks(warped, frame_count, seen, closed)
    return closed, frame_count, seen
