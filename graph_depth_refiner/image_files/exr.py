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
"""OpenEXR maps, through the OpenEXR package or an OpenCV that has it."""

from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np

DEPTH_CHANNELS = ('Z', 'Y', 'R')  # where one channel of several is the depth
NEEDED = 'pip install OpenEXR, or an OpenCV built with it'


def read_exr(path: Path) -> np.ndarray:
    """Read the depth channel of an EXR file as H W float32."""
    if not path.is_file():
        raise ValueError(f'{path}: expected a file, got nothing there')
    try:
        import OpenEXR
    except ImportError:
        return _read_opencv(path)
    try:
        channels = OpenEXR.File(str(path), separate_channels=True).channels()
        name = next((n for n in DEPTH_CHANNELS if n in channels), next(iter(channels)))
        return np.asarray(channels[name].pixels, np.float32)
    except (RuntimeError, ValueError, StopIteration):
        raise ValueError(f'{path}: expected an EXR image, got a file that is none') from None


def write_exr(path: Path, values: np.ndarray) -> None:
    """Write H W as channel Z, or H W 3 as RGB, in float32."""
    values = np.ascontiguousarray(values, np.float32)
    try:
        import OpenEXR
    except ImportError:
        return _write_opencv(path, values)
    header = {'compression': OpenEXR.ZIP_COMPRESSION, 'type': OpenEXR.scanlineimage}
    OpenEXR.File(header, {'Z' if values.ndim == 2 else 'RGB': values}).write(str(path))


def _read_opencv(path: Path) -> np.ndarray:
    _enable()
    try:
        values = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    except cv2.error:
        values = None
    if values is None:
        raise ValueError(f'{path}: expected an EXR image and a reader for it ({NEEDED}), got none')
    return values if values.ndim == 2 else values[..., 2]  # OpenCV has R last


def _write_opencv(path: Path, values: np.ndarray) -> None:
    _enable()
    try:
        done = cv2.imwrite(str(path), values if values.ndim == 2 else values[..., ::-1])
    except cv2.error:
        done = False
    if not done:
        raise ValueError(f'{path}: expected a writer for EXR ({NEEDED}), got none')


def _enable() -> None:
    os.environ.setdefault('OPENCV_IO_ENABLE_OPENEXR', '1')  # OpenCV reads it at first use
