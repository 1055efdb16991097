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
a flat array of bytes, for `ros.messages` to fill a live message with and for bags alike. They
write into an array that `room` gives for a shape and a type: new memory, or that of a message
which is published again and again.
"""

from __future__ import annotations

from collections.abc import Callable
import sys
from typing import Any

import cv2
import numpy as np

from graph_depth_refiner.config import Points
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
FIELD_COUNTS = {'xyz': 3, 'xyzrgb': 4, 'all': len(POINT_FIELDS)}
ALL_POINTS = Points()
NO_COLORS = np.zeros((1, 1), np.uint32)
BIG_ENDIAN = sys.byteorder == 'big'
Room = Callable[[tuple[int, ...], Any], np.ndarray]


def image_fields(array: np.ndarray, encoding: str, room: Room = np.empty) -> dict[str, Any]:
    """Return the fields of an Image message that holds a copy of the array (H W or H W C)."""
    stored = room(array.shape, array.dtype)
    np.copyto(stored, array)
    return _image_of(stored, encoding)


def _image_of(stored: np.ndarray, encoding: str) -> dict[str, Any]:
    """Return the fields of an Image message of this very array, contiguous."""
    return {
        'height': stored.shape[0], 'width': stored.shape[1], 'encoding': encoding,
        'is_bigendian': int(BIG_ENDIAN), 'step': stored.strides[0],
        'data': stored.reshape(-1).view(np.uint8),
    }


def depth_fields(depth: np.ndarray, encoding: str, room: Room = np.empty) -> dict[str, Any]:
    """Return depth (H W float32 metres) in the encoding it came in; unknown is 0 or NaN."""
    if encoding in ('16UC1', 'mono16'):
        stored = room(depth.shape, np.uint16)
        kernels().millimetres(depth, stored)
    else:
        stored = room(depth.shape, {'32FC1': np.float32, '64FC1': np.float64}[encoding])
        np.copyto(stored, depth)
    return _image_of(stored, encoding)


def compressed_depth_fields(depth: np.ndarray, encoding: str, room: Room = np.empty
                            ) -> dict[str, Any]:
    """Return the same as a CompressedImage of the transport compressedDepth."""
    return compressed.depth_fields(depth, depth_fields(depth, encoding))


def normals_fields(normals: np.ndarray, room: Room = np.empty) -> dict[str, Any]:
    """Return normals (H W 3 float32) as 32FC3."""
    return image_fields(normals, '32FC3', room)


def normal_color_fields(normals: np.ndarray, room: Room = np.empty) -> dict[str, Any]:
    """Return normals (H W 3 float32) as an rgb8 picture."""
    return _image_of(normal_colors(normals, room), 'rgb8')


def normal_colors(normals: np.ndarray, room: Room = np.empty) -> np.ndarray:
    """
    Return the usual colours of normals (H W 3) as H W 3 uint8, black where unknown.

    Red points right, green up and blue at the camera: a wall ahead is (128, 128, 255).
    """
    colors = room(normals.shape, np.uint8)
    kernels().normal_colors(np.require(normals, np.float32, ('C', 'W')), colors)
    return colors


def disparity_fields(depth: np.ndarray, source: Any, room: Room = np.empty) -> dict[str, Any]:
    """Return the fields of a DisparityImage like its source; `image` is an Image's."""
    with np.errstate(divide='ignore'):
        disparity = np.divide(
            np.float32(source.f * source.t), depth, out=room(depth.shape, np.float32))
    unknown = np.isnan(disparity)
    low, high = float(source.min_disparity), float(source.max_disparity)
    if not unknown.all():
        low = min(low, float(np.nanmin(disparity)))
        high = max(high, float(np.nanmax(disparity)))
    disparity[unknown] = low - 1  # how stereo_image_proc marks what it does not know
    return {
        'image': _image_of(disparity, '32FC1'), 'f': source.f, 't': source.t,
        'valid_window': source.valid_window, 'min_disparity': low, 'max_disparity': high,
        'delta_d': source.delta_d,
    }


def camera_info_fields(source: Any, camera: CameraModel | None = None) -> dict[str, Any]:
    """Return the fields of a CameraInfo like its source, after any undistortion."""
    names = ('height', 'width', 'distortion_model', 'd', 'k', 'r', 'p', 'binning_x',
             'binning_y', 'roi')
    changed = camera.camera_info(source) if camera else {}
    return {**{name: getattr(source, name) for name in names}, **changed}


def cloud_fields(frame: Frame, refined: Refined, config: Points = ALL_POINTS,
                 room: Room = np.empty) -> dict[str, Any]:
    """Return the fields of an organised PointCloud2."""
    step, count = config.decimation, FIELD_COUNTS[config.fields]
    height, width = (-(-side // step) for side in refined.depth.shape)
    points = room((height, width, count), np.float32)
    i = frame.intrinsics
    finite = kernels().cloud_points(
        refined.depth, refined.normals, packed_colors(frame.image) if count > 3 else NO_COLORS,
        np.array([i.fx, i.fy, i.cx, i.cy], np.float32), step, points, points.view(np.uint32))
    return {
        'height': height, 'width': width, 'fields': POINT_FIELDS[:count],
        'is_bigendian': BIG_ENDIAN, 'point_step': 4 * count, 'row_step': 4 * count * width,
        'is_dense': bool(finite), 'data': points.reshape(-1).view(np.uint8),
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
    """Return the colours of an image as H W uint32, 0xAARRGGBB, where A is anything."""
    if image.dtype == np.uint16:
        image = (image >> 8).astype(np.uint8)
    elif image.dtype != np.uint8:
        image = (np.clip(np.nan_to_num(image), 0, 1) * 255).astype(np.uint8)
    code = cv2.COLOR_GRAY2BGRA if image.ndim == 2 else cv2.COLOR_RGB2BGRA
    return cv2.cvtColor(np.ascontiguousarray(image), code).view('<u4')[..., 0]
