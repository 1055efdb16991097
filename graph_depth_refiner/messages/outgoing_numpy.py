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
"""The arrays of outgoing messages in numpy; compiled in `outgoing_numba`."""

from __future__ import annotations

import cv2
import numpy as np


def cloud_points(depth: np.ndarray, normals: np.ndarray, colors: np.ndarray,
                 camera: np.ndarray, step: int, points: np.ndarray, colors_out: np.ndarray
                 ) -> bool:
    """
    Fill points (H W F float32), of which colors_out is the uint32 view; every step-th pixel.

    F is 3 for x, y, z; 4 with the colour; 8 with normal and curvature, too. Camera is fx, fy, cx,
    cy as float32. Return whether all of it is finite.
    """
    fx, fy, cx, cy = camera
    z = depth[::step, ::step]
    y, x = (np.arange(0, side, step, dtype=np.float32) for side in depth.shape)
    points[..., 0] = z * ((x - cx) / fx)
    points[..., 1] = z * ((y - cy) / fy)[:, None]
    points[..., 2] = z
    if points.shape[-1] > 3:
        colors_out[..., 3] = colors[::step, ::step] & 0xFFFFFF
    if points.shape[-1] > 4:
        points[..., 4:7] = normals[::step, ::step]
        points[..., 7] = curvature(normals)[::step, ::step]
    return bool(np.isfinite(points[..., [2, -1 if points.shape[-1] > 4 else 2]]).all())


def curvature(normals: np.ndarray) -> np.ndarray:
    """
    Return how much the normals of 3x3 pixels vary, from 0 on a plane to 1.

    One minus the length of their mean; unknown ones do not count.
    """
    known = ~np.isnan(normals[..., 0])
    outside = {'borderType': cv2.BORDER_CONSTANT}  # beyond the image nothing is known
    total = cv2.boxFilter(
        np.where(known[..., None], normals, 0), -1, (3, 3), normalize=False, **outside)
    count = cv2.boxFilter(known.astype(np.float32), -1, (3, 3), normalize=False, **outside)
    length = np.sqrt(np.einsum('hwc,hwc->hw', total, total)) / np.maximum(count, 1)
    return np.where(known, np.clip(1 - length, 0, 1), np.nan)


def normal_colors(normals: np.ndarray, colors: np.ndarray) -> None:
    """Fill colors (H W 3 uint8): red right, green up, blue at the camera, black unknown."""
    # optical frames have y down and z away from the camera
    turned = cv2.transform(normals, np.array(
        [[127.5, 0, 0, 128], [0, -127.5, 0, 128], [0, 0, -127.5, 128]], np.float32))
    colors[:] = np.nan_to_num(turned, copy=False)


def millimetres(depth: np.ndarray, stored: np.ndarray) -> None:
    """Fill stored (H W uint16) with rounded millimetres, 0 where they do not fit or are none."""
    rounded = depth * np.float32(1000) + np.float32(0.5)
    # the largest number would be taken for a distance
    stored[:] = np.where(rounded < 65536, rounded, 0)
