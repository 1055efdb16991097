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
"""COLMAP's dense workspace: its sparse model, and its arrays of depth and normals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
import re
import struct
from typing import Any, NamedTuple

import numpy as np

from graph_depth_refiner.frame import Intrinsics, MAX_SIDE

HEADER = re.compile(rb'(\d{1,9})&(\d{1,9})&(\d{1,9})&')  # width, height, channels
HEADER_BYTES = 64
MAX_CHANNELS = 3
# number of a camera model in cameras.bin, its name and number of parameters
MODELS = (
    ('SIMPLE_PINHOLE', 3), ('PINHOLE', 4), ('SIMPLE_RADIAL', 4), ('RADIAL', 5), ('OPENCV', 8),
    ('OPENCV_FISHEYE', 8), ('FULL_OPENCV', 12), ('FOV', 5), ('SIMPLE_RADIAL_FISHEYE', 4),
    ('RADIAL_FISHEYE', 5), ('THIN_PRISM_FISHEYE', 12))
UNDISTORTED = 2  # of them, the first
NAME_BYTES = 4096  # of an image, at most
POINT_BYTES = 24  # of an observation in images.bin: x, y, number of the point


class Listed(NamedTuple):
    """A camera as the sparse model lists it."""

    model: str
    width: int
    height: int
    values: tuple[float, ...]


class Camera(NamedTuple):
    """A camera of the sparse model; its images have this size."""

    width: int
    height: int
    intrinsics: Intrinsics


@dataclass(frozen=True)
class View:
    """An image of the sparse model."""

    name: str  # below images/
    camera: Camera


def read_array(path: Path) -> np.ndarray:
    """
    Read one of COLMAP's arrays as H W, or as H W C where it has channels; float32.

    The file is the text WIDTH&HEIGHT&CHANNELS& and then little-endian floats, channel by channel.
    """
    data = path.read_bytes()
    found = HEADER.match(data[:HEADER_BYTES])
    if found is None:
        raise ValueError(f'{path}: expected WIDTH&HEIGHT&CHANNELS& of COLMAP, got another start')
    width, height, channels = map(int, found.groups())
    if not (1 <= min(width, height) and max(width, height) <= MAX_SIDE
            and 1 <= channels <= MAX_CHANNELS):
        raise ValueError(
            f'{path}: expected sides from 1 to {MAX_SIDE} and up to {MAX_CHANNELS} channels, '
            f'got {width}x{height}x{channels}')
    body = data[found.end():]
    if len(body) != 4 * width * height * channels:
        raise ValueError(
            f'{path}: expected {4 * width * height * channels} bytes of floats, got {len(body)}')
    values = np.frombuffer(body, '<f4').reshape(channels, height, width)
    return np.ascontiguousarray(values[0] if channels == 1 else np.moveaxis(values, 0, -1))


def write_array(path: Path, values: np.ndarray) -> None:
    """Write H W or H W C in the form that read_array reads; what is not finite becomes 0."""
    values = np.where(np.isfinite(values), values, 0).astype('<f4')
    planes = values[None] if values.ndim == 2 else np.moveaxis(values, -1, 0)  # C H W
    channels, height, width = planes.shape
    path.write_bytes(f'{width}&{height}&{channels}&'.encode('ascii') + planes.tobytes())


def read_views(folder: Path) -> list[View]:
    """Read the images of a sparse model, cameras and images in .bin or .txt, sorted by name."""
    if (folder / 'images.bin').is_file():
        cameras = _parsed(folder / 'cameras.bin', _binary_cameras)
        images = _parsed(folder / 'images.bin', _binary_images)
    elif (folder / 'images.txt').is_file():
        cameras = _parsed(folder / 'cameras.txt', _text_cameras)
        images = _parsed(folder / 'images.txt', _text_images)
    else:
        raise ValueError(f'{folder}: expected images.bin or images.txt of COLMAP, got neither')
    for name, number in images.items():
        if number not in cameras:
            raise ValueError(f'{folder}: expected camera {number} of {name!r}, got none')
        if Path(name).is_absolute() or '..' in Path(name).parts:
            raise ValueError(f'{folder}: expected the name of an image below images, got {name!r}')
    known = {number: _camera(folder, listed) for number, listed in cameras.items()}
    return [View(name, known[images[name]]) for name in sorted(images)]


def _parsed(path: Path, parse: Callable[[bytes], Any]) -> Any:
    """Parse a file; say its name where it is damaged."""
    if not path.is_file():
        raise ValueError(f'{path}: expected a file, got nothing there')
    try:
        return parse(path.read_bytes())
    except (struct.error, ValueError, IndexError, OverflowError):
        raise ValueError(f'{path}: expected a sparse model of COLMAP, got a damaged one') from None


def _camera(folder: Path, listed: Listed) -> Camera:
    """Return the camera; refuse one with distortion."""
    if (listed.model, len(listed.values)) not in MODELS[:UNDISTORTED]:
        raise ValueError(
            f'{folder}: expected pinhole cameras, as image_undistorter makes them, '
            f'got {listed.model}')
    *focal, cx, cy = listed.values
    return Camera(listed.width, listed.height, Intrinsics(focal[0], focal[-1], cx, cy))


def _binary_cameras(data: bytes) -> dict[int, Listed]:
    """Return the cameras of cameras.bin by their number."""
    cameras, at = {}, 8
    for _ in range(*struct.unpack_from('<Q', data)):
        number, model, width, height = struct.unpack_from('<iiQQ', data, at)
        name, count = MODELS[model]
        values = struct.unpack_from(f'<{count}d', data, at + 24)
        at += 24 + 8 * count
        cameras[number] = Listed(name, width, height, values)
    return cameras


def _binary_images(data: bytes) -> dict[str, int]:
    """Return the number of the camera of every image of images.bin, by name."""
    images, at = {}, 8
    for _ in range(*struct.unpack_from('<Q', data)):
        camera, = struct.unpack_from('<i', data, at + 60)  # behind number, rotation and position
        end = data.index(b'\0', at + 64, at + 64 + NAME_BYTES)
        points, = struct.unpack_from('<Q', data, end + 1)
        images[data[at + 64:end].decode()] = camera
        at = end + 9 + POINT_BYTES * points
    return images


def _text_cameras(data: bytes) -> dict[int, Listed]:
    """Return the cameras of cameras.txt by their number."""
    rows = [line.split() for line in _lines(data) if line]
    return {int(row[0]): Listed(row[1], int(row[2]), int(row[3]), tuple(map(float, row[4:])))
            for row in rows}


def _text_images(data: bytes) -> dict[str, int]:
    """Return the number of the camera of every image of images.txt, by name."""
    rows = [line.split(maxsplit=9) for line in _lines(data)[::2] if line]  # points between them
    return {row[9]: int(row[8]) for row in rows}


def _lines(data: bytes) -> list[str]:
    return [line.strip() for line in data.decode().splitlines() if not line.startswith('#')]
