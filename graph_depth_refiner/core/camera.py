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
"""The pinhole camera: pixels, planes of inverse depth, and surface normals."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from graph_depth_refiner.frame import Intrinsics


def pixel_offsets(shape: tuple[int, int], intrinsics: Intrinsics) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns and rows of an image, counted from the principal point."""
    rows, columns = shape
    x = np.arange(columns, dtype=np.float32) - np.float32(intrinsics.cx)  # W
    y = np.arange(rows, dtype=np.float32) - np.float32(intrinsics.cy)  # H
    return x, y[:, None]


def plane_vectors(planes: np.ndarray, intrinsics: Intrinsics) -> np.ndarray:
    """
    Return for each pixel the vector q for which <q, P> = 1 on its plane in space.

    With the paper's Eq. 6, a = rho fx ux and b = rho fy uy; put into Eq. 5 with d = 1 / Z
    this gives c = rho (d - ux (x - cx) - uy (y - cy)). So q = n / rho needs no division,
    no sign and no case for ux = 0 or uy = 0.
    """
    d, ux, uy = planes  # H W each
    x, y = pixel_offsets(d.shape, intrinsics)
    return np.stack([intrinsics.fx * ux, intrinsics.fy * uy, d - ux * x - uy * y])  # 3 H W


def normals(planes: np.ndarray, intrinsics: Intrinsics) -> np.ndarray:
    """Return the unit normals of planes, facing the camera: the solution of Eq. 7."""
    q = plane_vectors(planes, intrinsics)
    # facing the camera means rho = <n, P> < 0 (supplement), hence the sign
    with np.errstate(invalid='ignore'):  # there is no normal where there is no plane
        return np.moveaxis(-q / np.linalg.norm(q, axis=0), 0, -1)  # H W 3


def points(depth: np.ndarray, intrinsics: Intrinsics) -> np.ndarray:
    """Return the point in space of every pixel, in metres."""
    x, y = pixel_offsets(depth.shape, intrinsics)
    return np.stack(
        [x / intrinsics.fx * depth, y / intrinsics.fy * depth, depth], axis=-1)  # H W 3


def pinhole(intrinsics: Intrinsics) -> np.ndarray:
    """Return fx, fy, cx and cy as kernels take them, float32."""
    return np.array([intrinsics.fx, intrinsics.fy, intrinsics.cx, intrinsics.cy], np.float32)


def image_flow(motion: np.ndarray, intrinsics: Intrinsics, shape: tuple[int, int], d: float
               ) -> float:
    """Return by how many pixels a motion moves the image of things of inverse depth d, median."""
    k, (pixels, rays) = intrinsics, _grid(intrinsics, *shape)
    moved = motion[:3, :3] @ rays + d * motion[:3, 3:]  # 3 63
    ahead = np.maximum(moved[2], 1e-6)
    flow = np.hypot(k.fx * moved[0] / ahead + k.cx - pixels[0],
                    k.fy * moved[1] / ahead + k.cy - pixels[1])
    return float(np.sort(flow)[len(flow) // 2])


@lru_cache(maxsize=16)
def _grid(k: Intrinsics, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 63 pixels all over an image, 2 63, and their rays, 3 63."""
    x, y = (side.ravel() for side in np.meshgrid(
        np.linspace(0, width - 1, 9), np.linspace(0, height - 1, 7)))
    return np.stack([x, y]), np.stack(
        [(x - k.cx) / k.fx, (y - k.cy) / k.fy, np.ones_like(x)])
