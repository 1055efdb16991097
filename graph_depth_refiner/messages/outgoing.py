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
From refined arrays to the fields of messages.

Nothing here imports ROS: every function returns the fields of a message by name, `data` as
a flat array of bytes, for `ros.messages` to fill a live message with and for bags alike.
"""

from __future__ import annotations

import sys
from typing import Any

import cv2
import numpy as np

from graph_depth_refiner.frame import Frame, Intrinsics, Refined, Status
from graph_depth_refiner.messages import compressed
from graph_depth_refiner.messages.camera_info import CameraModel
from graph_depth_refiner.messages.kernels import kernels

FLOAT32 = 7  # PointField.FLOAT32
POINT_FIELDS = [
    {'name': name, 'offset': 4 * place, 'datatype': FLOAT32, 'count': 1}
    for place, name in enumerate(
        ('x', 'y', 'z', 'rgb', 'normal_x', 'normal_y', 'normal_z', 'curvature'))
]
POINT_STEP = 4 * len(POINT_FIELDS)
BIG_ENDIAN = sys.byteorder == 'big'


def image_fields(array: np.ndarray, encoding: str) -> dict[str, Any]:
    """Return the fields of an Image message that holds the array (H W or H W C)."""
    array = np.ascontiguousarray(array)
    return {
        'height': array.shape[0], 'width': array.shape[1], 'encoding': encoding,
        'is_bigendian': int(BIG_ENDIAN), 'step': array.strides[0],
        'data': array.reshape(-1).view(np.uint8),
    }


def depth_fields(depth: np.ndarray, encoding: str) -> dict[str, Any]:
    """Return depth (H W float32 metres) in the encoding it came in; unknown is 0 or NaN."""
    if encoding in ('16UC1', 'mono16'):
        stored = np.empty(depth.shape, np.uint16)
        kernels().millimetres(depth, stored)
        return image_fields(stored, encoding)
    return image_fields(depth.astype({'32FC1': 'f4', '64FC1': 'f8'}[encoding], copy=False),
                        encoding)


def compressed_depth_fields(depth: np.ndarray, encoding: str) -> dict[str, Any]:
    """Return the same as a CompressedImage of the transport compressedDepth."""
    return compressed.depth_fields(depth, depth_fields(depth, encoding))


def normals_fields(normals: np.ndarray) -> dict[str, Any]:
    """Return normals (H W 3 float32) as 32FC3."""
    return image_fields(normals, '32FC3')


def normal_color_fields(normals: np.ndarray) -> dict[str, Any]:
    """Return normals (H W 3 float32) as an rgb8 picture."""
    return image_fields(normal_colors(normals), 'rgb8')


def normal_colors(normals: np.ndarray) -> np.ndarray:
    """
    Return the usual colours of normals (H W 3) as H W 3 uint8, black where unknown.

    Red points right, green up and blue at the camera: a wall ahead is (128, 128, 255).
    """
    colors = np.empty(normals.shape, np.uint8)
    kernels().normal_colors(np.require(normals, np.float32, ('C', 'W')), colors)
    return colors


def disparity_fields(depth: np.ndarray, source: Any) -> dict[str, Any]:
    """Return the fields of a DisparityImage like its source; `image` is an Image's."""
    with np.errstate(divide='ignore'):
        disparity = np.float32(source.f * source.t) / depth
    unknown = np.isnan(disparity)
    low, high = float(source.min_disparity), float(source.max_disparity)
    if not unknown.all():
        low = min(low, float(np.nanmin(disparity)))
        high = max(high, float(np.nanmax(disparity)))
    disparity[unknown] = low - 1  # how stereo_image_proc marks what it does not know
    return {
        'image': image_fields(disparity, '32FC1'), 'f': source.f, 't': source.t,
        'valid_window': source.valid_window, 'min_disparity': low, 'max_disparity': high,
        'delta_d': source.delta_d,
    }


def camera_info_fields(source: Any, camera: CameraModel | None = None) -> dict[str, Any]:
    """Return the fields of a CameraInfo like its source, after any undistortion."""
    names = ('height', 'width', 'distortion_model', 'd', 'k', 'r', 'p', 'binning_x',
             'binning_y', 'roi')
    changed = camera.camera_info(source) if camera else {}
    return {**{name: getattr(source, name) for name in names}, **changed}


def cloud_fields(frame: Frame, refined: Refined) -> dict[str, Any]:
    """Return the fields of an organised PointCloud2."""
    height, width = refined.depth.shape
    points = np.empty((height, width, len(POINT_FIELDS)), np.float32)  # H W 8
    i = frame.intrinsics
    camera = np.array([i.fx, i.fy, i.cx, i.cy], np.float32)
    finite = kernels().cloud_points(
        refined.depth, refined.normals, packed_colors(frame.image), camera, points,
        points.view(np.uint32))
    return {
        'height': height, 'width': width, 'fields': POINT_FIELDS, 'is_bigendian': BIG_ENDIAN,
        'point_step': POINT_STEP, 'row_step': POINT_STEP * width,
        'is_dense': bool(finite.all()), 'data': points.reshape(-1).view(np.uint8),
    }


def warm_up() -> None:
    """Load or compile the kernels."""
    depth = np.ones((2, 2), np.float32)
    normals = np.ones((2, 2, 3), np.float32)
    frame = Frame(np.zeros((2, 2), np.uint8), depth, Intrinsics(1.0, 1.0, 0.0, 0.0))
    cloud_fields(frame, Refined(
        depth, normals, depth, depth.astype(np.uint8), Status.REFINED, 0, 0.0))
    depth_fields(depth, '16UC1')
    normal_color_fields(normals)


def packed_colors(image: np.ndarray) -> np.ndarray:
    """Return the colours of an image as H W uint32, 0x00RRGGBB."""
    if image.dtype == np.uint16:
        image = (image >> 8).astype(np.uint8)
    elif image.dtype != np.uint8:
        image = (np.clip(np.nan_to_num(image), 0, 1) * 255).astype(np.uint8)
    code = cv2.COLOR_GRAY2BGRA if image.ndim == 2 else cv2.COLOR_RGB2BGRA
    bgra = cv2.cvtColor(np.ascontiguousarray(image), code)
    bgra[..., 3] = 0
    return bgra.view('<u4')[..., 0]
