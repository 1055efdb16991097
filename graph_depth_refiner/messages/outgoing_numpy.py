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
                 camera: np.ndarray, points: np.ndarray, colors_out: np.ndarray) -> np.ndarray:
    """
    Fill points (H W 8 float32), of which colors_out is the uint32 view.

    Camera is fx, fy, cx, cy as float32. Return for each row whether all of it is finite.
    """
    fx, fy, cx, cy = camera
    height, width = depth.shape
    np.multiply(depth, (np.arange(width, dtype=np.float32) - cx) / fx, out=points[..., 0])
    np.multiply(
        depth, ((np.arange(height, dtype=np.float32) - cy) / fy)[:, None], out=points[..., 1])
    points[..., 2] = depth
    colors_out[..., 3] = colors
    points[..., 4:7] = normals
    points[..., 7] = curvature(normals)
    return np.isfinite(points[..., [2, 7]]).all(axis=(1, 2))


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
