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
"""Images and maps in files: any OpenCV image, and depth or disparity as PNG, PFM or NPY."""

from __future__ import annotations

import os
from pathlib import Path
import re

import cv2
import numpy as np

from graph_depth_refiner.files.exr import read_exr
from graph_depth_refiner.frame import MAX_SIDE
from graph_depth_refiner.messages.compressed import check_size, JPEG, picture_size, PNG

IMAGE_TYPES = (np.uint8, np.uint16, np.float32)
MAP_SUFFIXES = ('.png', '.pfm', '.npy', '.exr', '.tif', '.tiff')


def read_image(path: Path | str) -> np.ndarray:
    """Read a grey image as H W, or a colour image as H W 3 in RGB order."""
    image = _decoded(path)
    if image.dtype == np.float64:
        image = image.astype(np.float32)
    if image.dtype not in IMAGE_TYPES or image.shape[2:] not in ((), (3,), (4,)):
        raise ValueError(
            f'{path}: expected a grey or colour image of 8 or 16 bits or floats, '
            f'got {image.dtype} of shape {image.shape}')
    if image.ndim == 2:
        return image
    code = cv2.COLOR_BGRA2RGB if image.shape[2] == 4 else cv2.COLOR_BGR2RGB
    return cv2.cvtColor(image, code)


def read_map(path: Path | str, scale: float = 1.0) -> np.ndarray:
    """Read a map of one channel as float32, integers divided by `scale`; NaN where unknown."""
    path = Path(path)
    values = {'.npy': _loaded, '.pfm': _pfm, '.exr': read_exr}.get(
        path.suffix.lower(), _decoded)(path)
    if values.ndim != 2:
        raise ValueError(f'{path}: expected a map of one channel, got shape {values.shape}')
    if values.dtype.kind in 'ui':
        values = values.astype(np.float32) / np.float32(scale)
        values[values == 0] = np.nan  # integer maps mark the unknown by 0
    values = np.ascontiguousarray(values, np.float32)  # kernels are compiled for this order
    return np.where(np.isfinite(values), values, np.float32(np.nan))  # H W


def find_map(folder: Path, stem: str) -> Path | None:
    """Return the map of that stem in a folder, whatever its format, or None."""
    return next(
        (p for suffix in MAP_SUFFIXES if (p := folder / f'{stem}{suffix}').is_file()), None)


def read_text(path: Path) -> str:
    """Read a text file; refuse other bytes."""
    try:
        return _bytes(path).tobytes().decode()
    except UnicodeDecodeError:
        raise ValueError(f'{path}: expected a text file, got other bytes') from None


def _bytes(path: Path) -> np.ndarray:
    if not os.path.isfile(path):  # unlike Path.is_file() it bears any name
        raise ValueError(f'{path}: expected a file, got nothing there')
    return np.fromfile(path, np.uint8)


def _pfm(path: Path) -> np.ndarray:
    """Read PFM without OpenCV, which multiplies by the scale that Middlebury ignores."""
    header = re.match(rb'Pf\s+(\d+)\s+(\d+)\s+(-?[\d.eE+-]+)\s', data := _bytes(path).tobytes())
    if header is None:
        raise ValueError(f'{path}: expected a PFM map of one channel, got {data[:16]!r}')
    columns, rows = int(header[1]), int(header[2])
    kind = '<f4' if header[3].startswith(b'-') else '>f4'
    if len(data) - header.end() != 4 * rows * columns:
        raise ValueError(
            f'{path}: expected {4 * rows * columns} bytes of values, '
            f'got {len(data) - header.end()}')
    values = np.frombuffer(data, kind, offset=header.end()).reshape(rows, columns)
    return values[::-1].astype(np.float32)  # stored from the bottom row up


def _decoded(path: Path | str) -> np.ndarray:
    path = Path(path)
    data = _bytes(path)
    if data[:8].tobytes().startswith((PNG, JPEG)):
        check_size(str(path), *picture_size(str(path), data.tobytes()), MAX_SIDE ** 2)
    try:
        image = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
    except cv2.error:
        image = None
    if image is None:
        raise ValueError(f'{path}: expected an image OpenCV can read, got a file it cannot')
    return image


def _loaded(path: Path) -> np.ndarray:
    try:
        values = np.load(path, mmap_mode='r', allow_pickle=False)  # takes no memory yet
        check_size(str(path), *values.shape[:2], MAX_SIDE ** 2)
    except Exception:  # whatever comes of NumPy evaluating a damaged header
        raise ValueError(f'{path}: expected a NumPy array of two dimensions, got none') from None
    if values.dtype.kind not in 'uif':
        raise ValueError(f'{path}: expected numbers, got {values.dtype}')
    return np.array(values)
