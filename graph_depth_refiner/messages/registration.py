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
"""
Bring an image into the depth camera where the two are different cameras.

Every pixel of the depth takes the colour at its projection into the image, unless a nearer
surface is in front of it there (z-buffer; Catmull, 1974). Such pixels, those outside the image
and those that look into it from behind take the colour of the neighbour nearest in depth.
"""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np

from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.messages.kernels import kernels

SAME = 1e-4  # metres, and radians: a transform of less is none


def is_identity(motion: np.ndarray) -> bool:
    """Say whether a transform (4 4) is none."""
    return bool(np.abs(motion - np.eye(4)).max() < SAME)


def registered(image: np.ndarray, depth: np.ndarray, motion: np.ndarray, depth_camera: Intrinsics,
               image_camera: Intrinsics) -> np.ndarray:
    """
    Return the image as the depth camera would see it, H W or H W 3, in the type it came in.

    Image (h w or h w 3, uint8 or uint16) and depth (H W metres) are undistorted; `motion` (4 4)
    takes points of the depth camera to the camera of the image, P' = R P + t.
    """
    image, image_camera = _reduced(image, depth_camera, image_camera)
    known = np.isfinite(depth) & (depth > 0)
    filled = _nearest_depth(depth, known)
    channels = np.ascontiguousarray(image).reshape(*image.shape[:2], -1)
    colors = np.zeros((*depth.shape, channels.shape[2]), image.dtype)
    cameras = np.array([
        number for i in (depth_camera, image_camera) for number in (i.fx, i.fy, i.cx, i.cy)])
    seen = kernels().project_colors(
        channels, filled, known, np.ascontiguousarray(motion[:3], np.float64), cameras, colors)
    if seen.any():
        kernels().spread_colors(filled, seen, colors)
    return colors.reshape(*depth.shape, *image.shape[2:])


def warm_up() -> None:
    """Load or compile the kernels."""
    camera, aside = Intrinsics(2.0, 2.0, 0.5, 0.5), np.eye(4)
    aside[0, 3] = 1.0  # metres: half of the image is out of sight
    for shape in ((2, 2), (2, 2, 3)):
        registered(np.zeros(shape, np.uint8), np.ones((2, 2), np.float32), aside, camera, camera)


def _reduced(image: np.ndarray, depth_camera: Intrinsics,
             camera: Intrinsics) -> tuple[np.ndarray, Intrinsics]:
    """Reduce an image to about the resolution of the depth, so that no detail aliases."""
    scale = min(camera.fx / depth_camera.fx, camera.fy / depth_camera.fy)
    height, width = image.shape[:2]
    size = round(width / max(scale, 1)), round(height / max(scale, 1))
    if size == (width, height) or min(size) < 1:
        return image, camera
    x, y = size[0] / width, size[1] / height
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA), replace(
        camera, fx=camera.fx * x, fy=camera.fy * y,
        cx=(camera.cx + 0.5) * x - 0.5, cy=(camera.cy + 0.5) * y - 0.5)


def _nearest_depth(depth: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the depth (H W float32), where there is none that of the nearest known pixel."""
    if known.all() or not known.any():
        return np.where(known, depth, 0).astype(np.float32)
    holes = (~known).astype(np.uint8)
    labels = cv2.distanceTransformWithLabels(
        holes, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)[1]
    by_label = np.zeros(labels.max() + 1, np.float32)
    by_label[labels[known]] = depth[known]
    return by_label[labels]
