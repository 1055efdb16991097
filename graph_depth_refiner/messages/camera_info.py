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
"""From a CameraInfo message to intrinsics, and to undistorted images where asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from graph_depth_refiner.frame import Intrinsics

# numbers of coefficients that OpenCV takes; drivers call 8 of them plumb_bob, too
BROWN = (4, 5, 8, 12, 14)
FISHEYE = 'equidistant'
COEFFICIENTS = {'plumb_bob': BROWN, 'rational_polynomial': BROWN, FISHEYE: (4,)}


@dataclass(frozen=True, eq=False)
class CameraModel:
    """The camera as the refinement sees it, after any undistortion."""

    intrinsics: Intrinsics
    maps: tuple[np.ndarray, np.ndarray] | None = None  # where each pixel comes from

    def undistorted(self, array: np.ndarray, nearest: bool = False) -> np.ndarray:
        """Undistort an image; nearest keeps depth from being mixed. Outside becomes 0."""
        if self.maps is None:
            return array
        return cv2.remap(
            array, *self.maps, cv2.INTER_NEAREST if nearest else cv2.INTER_LINEAR)

    def camera_info(self, message: Any) -> dict[str, Any]:
        """Return the fields of CameraInfo that undistortion changes."""
        if self.maps is None:
            return {}
        height, width = self.maps[0].shape
        i = self.intrinsics
        return {
            'height': height, 'width': width, 'binning_x': 0, 'binning_y': 0,
            'roi': type(message.roi)(
                x_offset=0, y_offset=0, height=0, width=0, do_rectify=False),
            'd': [0.0] * len(message.d),
            'k': [i.fx, 0.0, i.cx, 0.0, i.fy, i.cy, 0.0, 0.0, 1.0],
            'r': [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            'p': [i.fx, 0.0, i.cx, 0.0, 0.0, i.fy, i.cy, 0.0, 0.0, 0.0, 1.0, 0.0],
        }


class Cameras:
    """Turns CameraInfo messages into models; unchanged ones cost nothing."""

    def __init__(self, name: str = 'camera_info', of: str = 'depth') -> None:
        """Start knowing no camera; messages of this name are of that image."""
        self._name, self._of = name, of
        self._key: Any = None
        self._model: CameraModel | None = None

    def model(self, info: Any, shape: tuple[int, int], distortion: str) -> CameraModel:
        """Return the model for images of this shape; `distortion` as in NodeConfig."""
        roi = info.roi
        key = (shape, distortion, info.height, info.width, info.distortion_model,
               bytes(np.asarray(info.d, float)), bytes(np.asarray(info.k, float)),
               bytes(np.asarray(info.p, float)), info.binning_x, info.binning_y,
               roi.x_offset, roi.y_offset, roi.height, roi.width)
        if key != self._key:
            self._model = camera_model(info, shape, distortion, self._name, self._of)
            self._key = key
        return self._model


def camera_model(info: Any, shape: tuple[int, int], distortion: str, name: str = 'camera_info',
                 of: str = 'depth') -> CameraModel:
    """Check a CameraInfo message against an image of this shape and turn it into a model."""
    try:
        return _camera_model(info, shape, distortion, of)
    except ValueError as error:
        raise ValueError(f'{name}{error}') from None


def _camera_model(info: Any, shape: tuple[int, int], distortion: str, of: str) -> CameraModel:
    matrix = _window(info, shape, of)
    coefficients = np.asarray(info.d, float)
    distorted = bool(np.any(coefficients)) or not is_pinhole(info.distortion_model)
    if not distorted or distortion == 'rectified':
        return CameraModel(_intrinsics(_projection(info), matrix))
    if distortion == 'refuse':
        raise ValueError(
            ': expected no distortion, got '
            f'{info.distortion_model} {np.round(coefficients, 4).tolist()}; set `distortion` to '
            'undistort, or to rectified where the images are rectified already')
    _check_coefficients(info.distortion_model, coefficients)
    intrinsics = _intrinsics(np.asarray(info.k, float).reshape(3, 3), matrix)
    camera = np.array([
        [intrinsics.fx, 0, intrinsics.cx], [0, intrinsics.fy, intrinsics.cy], [0, 0, 1]])
    # the same camera without its distortion; a rotation would change what depth means
    maps = _undistortion(info.distortion_model)(
        camera, coefficients, np.eye(3), camera, shape[::-1], cv2.CV_32FC1)
    return CameraModel(intrinsics, maps)


def is_pinhole(model: str) -> bool:
    """Say whether a camera of this model and no coefficients but 0 has no distortion."""
    return model in ('plumb_bob', 'rational_polynomial', '', 'none')


def _undistortion(model: str) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    return (cv2.fisheye if model == FISHEYE else cv2).initUndistortRectifyMap


def _check_coefficients(model: str, coefficients: np.ndarray) -> None:
    if model not in COEFFICIENTS:
        raise ValueError(
            f'.distortion_model: expected {", ".join(COEFFICIENTS)} or no '
            f'distortion, got {model!r}')
    if coefficients.size not in COEFFICIENTS[model] or not np.isfinite(coefficients).all():
        raise ValueError(
            f'.d: expected {", ".join(map(str, COEFFICIENTS[model]))} finite '
            f'numbers for {model}, got {coefficients.tolist()}')


def _projection(info: Any) -> np.ndarray:
    """Return the camera matrix of rectified images: P where it is filled in, else K."""
    projection = np.asarray(info.p, float).reshape(3, 4)[:, :3]
    return projection if projection[0, 0] else np.asarray(info.k, float).reshape(3, 3)


def _intrinsics(camera: np.ndarray, window: np.ndarray) -> Intrinsics:
    """Move a camera matrix (3 3) of the full image into the window; refuses no camera."""
    with np.errstate(invalid='ignore', over='ignore'):  # what is not finite is refused below
        fx, fy = camera[0, 0] * window[0, 0], camera[1, 1] * window[1, 1]
        cx, cy = (window @ camera[:, 2])[:2]
    try:
        return Intrinsics(float(fx), float(fy), float(cx), float(cy))
    except ValueError as error:
        raise ValueError(f': {error}') from None


def _window(info: Any, shape: tuple[int, int], of: str) -> np.ndarray:
    """Return the matrix (3 3) from pixels of the full image to those of ROI and binning."""
    roi = info.roi
    binning_x, binning_y = max(1, info.binning_x), max(1, info.binning_y)
    height = (roi.height or info.height) // binning_y
    width = (roi.width or info.width) // binning_x
    if (height, width) != shape:
        raise ValueError(
            f': expected the size of the {of} {shape[1]}x{shape[0]} after binning '
            f'and region of interest, got {width}x{height}')
    return np.array([
        [1 / binning_x, 0, -roi.x_offset / binning_x],
        [0, 1 / binning_y, -roi.y_offset / binning_y],
        [0, 0, 1]])
