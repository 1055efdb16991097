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
"""Payloads of compressed images: PNG, JPEG and TIFF colour, PNG, TIFF and RVL depth."""

from __future__ import annotations

import struct
from typing import Any

import cv2
import numpy as np

from graph_depth_refiner.frame import MAX_SIDE
from graph_depth_refiner.messages.kernels import kernels

PNG = b'\x89PNG\r\n\x1a\n'
JPEG = b'\xff\xd8'
TIFF = {b'II*\0': '<', b'MM\0*': '>'}  # and the order of its bytes
TIFF_WIDTH, TIFF_HEIGHT = 256, 257  # tags
TIFF_NUMBERS = {3: 'H', 4: 'I'}  # types of those tags
# int32 kind, float32 parameters a and b of the inverse-depth quantisation
DEPTH_HEADER = struct.Struct('<iff')
RVL_SIZE = struct.Struct('<II')
STEPS = 2 ** 16 - 2  # of the quantisation, from 1 at the farthest depth to 65535 at the nearest
NEAREST, FARTHEST = 1e-6, 1e6  # metres: what depth.min and depth.max can be


def check_size(name: str, height: int, width: int, max_pixels: int) -> None:
    """Refuse images without pixels or with too many, before anything is allocated."""
    if height < 1 or width < 1:
        raise ValueError(f'{name}: expected at least 1x1 pixels, got {width}x{height}')
    if max(height, width) > MAX_SIDE:
        raise ValueError(
            f'{name}: expected sides of at most {MAX_SIDE} pixels, got {width}x{height}')
    if height * width > max_pixels:
        raise ValueError(
            f'{name}: expected at most {max_pixels} pixels (max_pixels), got {width}x{height}')


def picture(name: str, data: bytes, max_pixels: int) -> np.ndarray:
    """Decode PNG, JPEG or TIFF as stored: H W or H W C, uint8, uint16 or float32, BGR."""
    check_size(name, *picture_size(name, data), max_pixels)
    flags = cv2.IMREAD_UNCHANGED
    try:
        decoded = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error:
        decoded = None
    if decoded is None:
        raise ValueError(f'{name}: expected a readable picture, got {len(data)} damaged bytes')
    if decoded.dtype not in (np.uint8, np.uint16, np.float32):
        raise ValueError(
            f'{name}: expected a picture of uint8, uint16 or float32, got {decoded.dtype}')
    return decoded


def depth(form: str, data: bytes, max_pixels: int) -> tuple[np.ndarray, str]:
    """Decode a `compressedDepth` payload; return uint16 or float32 H W and its encoding."""
    encoding, codec = _depth_format(form)
    if codec == 'plain':
        return _plain(encoding, picture('depth', data, max_pixels))
    if len(data) <= DEPTH_HEADER.size:
        raise ValueError(
            f'depth: expected more than {DEPTH_HEADER.size} bytes of compressedDepth, '
            f'got {len(data)}')
    _, a, b = DEPTH_HEADER.unpack_from(data)
    payload = data[DEPTH_HEADER.size:]
    if codec == 'rvl':
        stored = _rvl_image(payload, max_pixels)
    else:
        stored = picture('depth', payload, max_pixels)
    if stored.dtype != np.uint16 or stored.ndim != 2:
        raise ValueError(
            f'depth: expected 16-bit single-channel {codec}, got {stored.dtype} {stored.shape}')
    if encoding != '32FC1':
        return stored, encoding
    return _from_inverse(stored, a, b), encoding


def picture_fields(image: dict[str, Any], codec: str) -> dict[str, Any]:
    """Return the fields of a CompressedImage, png or jpeg, of those of an rgb8 or mono8 Image."""
    encoding = image['encoding']
    pixels = image['data'].reshape(image['height'], image['width'], -1)[..., ::-1]  # rgb to bgr
    data = cv2.imencode(f'.{codec}', np.ascontiguousarray(pixels))[1].reshape(-1)
    stored = 'mono8' if encoding == 'mono8' else 'bgr8'
    return {'format': f'{encoding}; {codec} compressed {stored}', 'data': data}


def depth_fields(metres: np.ndarray, image: dict[str, Any]) -> dict[str, Any]:
    """Return depth (H W metres) whose Image has these fields as one of compressedDepth."""
    encoding = '32FC1' if image['encoding'] == '64FC1' else image['encoding']
    a, b = 0.0, 0.0
    if encoding == '32FC1':
        stored, a, b = _to_inverse(metres)
    else:
        stored = image['data'].view(np.uint16).reshape(metres.shape)
    fast = (cv2.IMWRITE_PNG_COMPRESSION, 1)
    data = DEPTH_HEADER.pack(0, a, b) + cv2.imencode('.png', stored, fast)[1].tobytes()
    return {'format': f'{encoding}; compressedDepth png', 'data': np.frombuffer(data, np.uint8)}


def _to_inverse(metres: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Quantise to a / depth + b, all steps between the nearest and the farthest; 0 is unknown."""
    known = (metres >= NEAREST) & (metres <= FARTHEST)
    inverse = 1 / metres[known].astype(np.float64)
    least, most = (inverse.min(), inverse.max()) if inverse.size else (1.0, 1.0)
    a = STEPS / max(most - least, STEPS * 1e-9 * most)
    b = 1 - a * least
    stored = np.zeros(metres.shape, np.uint16)
    stored[known] = np.rint(a * inverse + b)
    return stored, float(a), float(b)


def _plain(encoding: str, stored: np.ndarray) -> tuple[np.ndarray, str]:
    """Return what `compressed` stores losslessly: 16-bit PNG or TIFF, floats as TIFF."""
    kind = np.float32 if encoding == '32FC1' else np.uint16
    if stored.dtype != kind or stored.ndim != 2:
        raise ValueError(
            f'depth: expected a picture of one channel of {np.dtype(kind)} for {encoding}, got '
            f'{stored.dtype} {stored.shape}')
    return stored, encoding


def _rvl_image(payload: bytes, max_pixels: int) -> np.ndarray:
    if len(payload) < RVL_SIZE.size:
        raise ValueError(f'depth: expected an RVL size of 8 bytes, got {len(payload)}')
    width, height = RVL_SIZE.unpack_from(payload)
    check_size('depth', height, width, max_pixels)
    return kernels().decode_rvl(payload[RVL_SIZE.size:], height * width).reshape(height, width)


def _from_inverse(stored: np.ndarray, a: float, b: float) -> np.ndarray:
    """Undo the quantisation a / depth + b; 0 stands for no depth."""
    if not (np.isfinite(a) and np.isfinite(b)):
        raise ValueError(f'depth: expected finite quantisation parameters, got {a} and {b}')
    inverse = stored.astype(np.float32) - np.float32(b)
    metres = np.full(stored.shape, np.nan, np.float32)
    with np.errstate(over='ignore'):
        np.divide(np.float32(a), inverse, out=metres, where=(stored > 0) & (inverse != 0))
    return metres


def _depth_format(form: str) -> tuple[str, str]:
    """Split a format such as `16UC1; compressedDepth png` into encoding and codec."""
    encoding, _, rest = (part.strip() for part in form.partition(';'))
    codec = rest.removeprefix('compressedDepth').strip() or 'png'
    if rest.split(' ')[0] in ('png', 'tiff'):
        codec = 'plain'  # of image_transport's `compressed`
    known = encoding in ('16UC1', 'mono16', '32FC1') and codec in ('png', 'rvl', 'plain')
    if not known or (rest and codec != 'plain' and not rest.startswith('compressedDepth')):
        raise ValueError(
            'depth: expected format "16UC1|mono16|32FC1; compressedDepth png|rvl" or '
            f'"16UC1|32FC1; png|tiff compressed" (JPEG destroys depth), got {form!r}')
    return encoding, codec


def picture_size(name: str, data: bytes) -> tuple[int, int]:
    """Read height and width from the header alone."""
    if data[:8] == PNG and len(data) >= 24:
        width, height = struct.unpack_from('>II', data, 16)
        return height, width
    if data[:2] == JPEG:
        return _jpeg_size(name, data)
    if data[:4] in TIFF:
        return _tiff_size(name, data, TIFF[data[:4]])
    raise ValueError(f'{name}: expected PNG, JPEG or TIFF, got bytes {bytes(data[:4])!r}')


def _tiff_size(name: str, data: bytes, order: str) -> tuple[int, int]:
    """Read height and width of a TIFF, and refuse one of several pictures."""
    sizes = {}
    try:
        at, = struct.unpack_from(f'{order}I', data, 4)
        count, = struct.unpack_from(f'{order}H', data, at)
        for entry in range(at + 2, at + 2 + 12 * count, 12):
            tag, kind = struct.unpack_from(f'{order}HH', data, entry)
            if tag in (TIFF_WIDTH, TIFF_HEIGHT):
                if tag in sizes:  # which of the two a decoder takes is anybody's guess
                    raise KeyError(tag)
                sizes[tag], = struct.unpack_from(order + TIFF_NUMBERS[kind], data, entry + 8)
        following, = struct.unpack_from(f'{order}I', data, at + 2 + 12 * count)
        if following == 0:
            return sizes[TIFF_HEIGHT], sizes[TIFF_WIDTH]
    except (struct.error, KeyError):
        pass
    raise ValueError(f'{name}: expected a TIFF of one picture with a size, got another')


def _jpeg_size(name: str, data: bytes) -> tuple[int, int]:
    """Walk the markers up to the start of frame, which holds the size."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # padding
            at += 1
            continue
        if marker == 0x01 or 0xD0 <= marker <= 0xD9:
            break  # without a length: decoders skip it, so that a size could hide behind it
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return struct.unpack_from('>HH', data, at + 5)
        at += 2 + struct.unpack_from('>H', data, at + 2)[0]
    raise ValueError(f'{name}: expected a JPEG with a size, got a damaged one')
