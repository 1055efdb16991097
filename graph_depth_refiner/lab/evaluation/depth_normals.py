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
"""Normals from a finished depth map, for methods that have none of their own."""

from __future__ import annotations

import cv2
import numpy as np

from graph_depth_refiner.core.camera import normals
from graph_depth_refiner.frame import Intrinsics

SHARPNESS = 40.0  # how clearly the straighter side wins, relative to the bend
LEAST_BEND = 1e-6  # relative to the value
FLAT = 1e-3  # px^4, least spread of the pixels of a plane fit


def straight_normals(depth: np.ndarray, intrinsics: Intrinsics) -> np.ndarray:
    """
    Return normals from differences towards the straighter side, as D2NT (2023) proposed.

    A one-sided difference that crosses a depth edge bends; each pixel weights its two sides
    by how little they bend. Then it takes the slopes of whichever of itself and its four
    neighbours lies on the straightest ground, which is D2NT's refinement in short.
    """
    known = np.isfinite(depth) & (depth > 0)
    d = np.full(depth.shape, np.nan, np.float32)
    np.divide(np.float32(1), depth, out=d, where=known)
    ux, bend_x = _slope(d)
    uy, bend_y = (part.T for part in _slope(np.ascontiguousarray(d.T)))
    ux, uy = _straightest(ux, uy, bend_x + bend_y)
    return normals(np.stack([d, ux, uy]), intrinsics).astype(np.float32)  # H W 3


def fitted_normals(depth: np.ndarray, intrinsics: Intrinsics, radius: int = 7) -> np.ndarray:
    """Return normals of least-squares planes over a window, the way to take on noisy depth."""
    known = np.isfinite(depth) & (depth > 0)
    d = np.zeros(depth.shape)
    np.divide(1.0, depth, out=d, where=known)
    y, x = np.indices(depth.shape, np.float64)

    def total(values: np.ndarray) -> np.ndarray:
        side = 2 * radius + 1
        return cv2.boxFilter(values * known, -1, (side, side), normalize=False,
                             borderType=cv2.BORDER_CONSTANT)

    count = np.maximum(total(np.ones_like(d)), 1)
    mean_x, mean_y, mean_d = total(x) / count, total(y) / count, total(d) / count
    xx, yy = total(x * x) / count - mean_x ** 2, total(y * y) / count - mean_y ** 2
    xy = total(x * y) / count - mean_x * mean_y
    xd, yd = total(x * d) / count - mean_x * mean_d, total(y * d) / count - mean_y * mean_d
    det = xx * yy - xy * xy
    flat = det > FLAT  # fewer pixels than a plane needs, or all in a row
    scale = np.divide(1.0, det, out=np.full(d.shape, np.nan), where=flat & known)
    planes = np.stack([d, (yy * xd - xy * yd) * scale, (xx * yd - xy * xd) * scale])  # 3 H W
    return normals(planes, intrinsics).astype(np.float32)  # H W 3


def _slope(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the slope along rows and how much the map bends there."""
    padded = np.pad(d, ((0, 0), (2, 2)), mode='reflect', reflect_type='odd')
    step = np.diff(padded, axis=1)  # H W+3
    bend = np.abs(np.diff(step, axis=1))  # H W+2, at the middle of two steps
    backward, forward = step[:, 1:-2], step[:, 2:-1]  # H W each
    least = LEAST_BEND * np.abs(d) + np.finfo(np.float32).tiny
    before, after = bend[:, :-2] + least, bend[:, 2:] + least
    share = 1 / (1 + np.exp(np.clip(SHARPNESS * (before - after) / (before + after), -50, 50)))
    # a missing neighbour leaves the other side; no neighbour leaves nothing
    slope = np.where(np.isnan(backward), forward, np.where(
        np.isnan(forward), backward, np.where(
            np.isnan(share), (backward + forward) / 2, share * backward + (1 - share) * forward)))
    return slope.astype(np.float32), np.nan_to_num(bend[:, 1:-1], nan=np.inf)


def _straightest(
        ux: np.ndarray, uy: np.ndarray, bend: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Take the slopes of the straightest of a pixel and its four neighbours."""
    shifts = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))
    around = np.pad(bend, 1, constant_values=np.inf)
    rows, columns = bend.shape
    choices = np.stack([
        around[1 + dy:1 + dy + rows, 1 + dx:1 + dx + columns] for dy, dx in shifts])  # 5 H W
    best = np.argmin(choices, axis=0)
    y, x = np.indices(bend.shape)
    dy, dx = np.array(shifts).T
    y, x = y + dy[best], x + dx[best]
    return ux[y, x], uy[y, x]
