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

from collections.abc import Iterator
import os
from pathlib import Path
import struct

import cv2
import numpy as np

from graph_depth_refiner.frame import MAX_SIDE
from graph_depth_refiner.messages.compressed import check_size

MAGIC = b'\x76\x2f\x31\x01'
MAX_SAMPLES = 4 * MAX_SIDE ** 2  # of all channels together, as many as a PNG may have
DEPTH_CHANNELS = ('Z', 'Y', 'R')  # where one channel of several is the depth
MULTIPLE_PARTS = 0x1000  # flag of the version
CHANNEL_BYTES = 16  # type, linearity and sampling of a channel
NEEDED = 'pip install OpenEXR, or an OpenCV built with it'


def read_exr(path: Path) -> np.ndarray:
    """Read the depth channel of an EXR file as H W float32."""
    if not path.is_file():
        raise ValueError(f'{path}: expected a file, got nothing there')
    _check_header(path)
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


def _check_header(path: Path) -> None:
    """Refuse an image that claims to be too large, before it is decoded."""
    pixels = channels = 0
    try:
        for name, value in _attributes(path.read_bytes()):
            if name == b'dataWindow':
                left, top, right, bottom = struct.unpack('<4i', value)
                check_size(str(path), bottom - top + 1, right - left + 1, MAX_SIDE ** 2)
                pixels = max(pixels, (bottom - top + 1) * (right - left + 1))
            elif name == b'channels':
                channels += _count_channels(value)
            elif name == b'type' and value.startswith(b'deep'):
                raise ValueError(f'{path}: expected a flat EXR image, got a deep one')
    except (struct.error, IndexError):
        raise ValueError(f'{path}: expected an EXR image, got a file that is none') from None
    if pixels * channels > MAX_SAMPLES:
        raise ValueError(
            f'{path}: expected at most {MAX_SAMPLES} values in all channels, '
            f'got {pixels * channels}')


def _attributes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield name and value of the attributes of every part: name, type, length, value."""
    version, = struct.unpack_from('<I', data, len(MAGIC))
    if not data.startswith(MAGIC):
        raise IndexError
    at, in_part = len(MAGIC) + 4, False
    while True:
        start, at = at, _after_text(data, at)
        name = data[start:at - 1]
        if not name:  # a part ends; where there may be several, another empty name ends all
            if not in_part or not version & MULTIPLE_PARTS:
                return
            in_part = False
            continue
        in_part = True
        at = _after_text(data, at)  # its type
        size, = struct.unpack_from('<I', data, at)
        yield name, data[at + 4:at + 4 + size]
        at += 4 + size


def _count_channels(value: bytes) -> int:
    """Return the length of a list of channels: name, then 16 bytes, an empty name at the end."""
    count = at = 0
    while value[at]:
        at = _after_text(value, at) + CHANNEL_BYTES
        count += 1
    return count


def _after_text(data: bytes, at: int) -> int:
    """Return where a text that ends with a zero byte is over."""
    end = data.find(b'\0', at)
    if end < 0:
        raise IndexError
    return end + 1


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
