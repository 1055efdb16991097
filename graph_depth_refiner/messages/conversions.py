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
From messages to arrays.

Nothing here imports ROS: anything with the fields of the message will do, so that live
messages and those read from bags take the same way. Whatever is wrong with a message ends
as one sentence in a ValueError.
"""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np

from graph_depth_refiner.messages import compressed
from graph_depth_refiner.messages.compressed import check_size

MILLIMETRE = np.float32(0.001)
OUTLIERS = 0.001  # share of the pixels of an image that may lie beyond its range
LEAST_BITS = 8
# powers of two between which the range of a float image may lie
LEAST_EXPONENT, MOST_EXPONENT = -20, 40

# encoding: type of a channel, channels
LAYOUTS = {
    'mono8': ('u1', 1), '8UC1': ('u1', 1), 'mono16': ('u2', 1), '16UC1': ('u2', 1),
    '32FC1': ('f4', 1), '64FC1': ('f8', 1),
    'rgb8': ('u1', 3), 'bgr8': ('u1', 3), '8UC3': ('u1', 3),
    'rgba8': ('u1', 4), 'bgra8': ('u1', 4),
    'yuv422': ('u1', 2), 'uyvy': ('u1', 2), 'yuv422_yuy2': ('u1', 2), 'yuyv': ('u1', 2),
    'bayer_rggb8': ('u1', 1), 'bayer_bggr8': ('u1', 1),
    'bayer_gbrg8': ('u1', 1), 'bayer_grbg8': ('u1', 1),
}
DEPTH_ENCODINGS = ('16UC1', 'mono16', '32FC1', '64FC1')
CONFIDENCE_ENCODINGS = ('mono8', '8UC1', *DEPTH_ENCODINGS)
# None: used as it is. OpenCV names a Bayer pattern by its second row, ROS by its first
TO_RGB = {
    'mono8': None, '8UC1': None, 'mono16': None, 'rgb8': None,
    # infrared and amplitude of time-of-flight cameras
    '16UC1': None, '32FC1': None, '64FC1': None,
    'bgr8': cv2.COLOR_BGR2RGB, '8UC3': cv2.COLOR_BGR2RGB,
    'rgba8': cv2.COLOR_RGBA2RGB, 'bgra8': cv2.COLOR_BGRA2RGB,
    'yuv422': cv2.COLOR_YUV2RGB_UYVY, 'uyvy': cv2.COLOR_YUV2RGB_UYVY,
    'yuv422_yuy2': cv2.COLOR_YUV2RGB_YUY2, 'yuyv': cv2.COLOR_YUV2RGB_YUY2,
    'bayer_rggb8': cv2.COLOR_BayerBG2RGB, 'bayer_bggr8': cv2.COLOR_BayerRG2RGB,
    'bayer_gbrg8': cv2.COLOR_BayerGR2RGB, 'bayer_grbg8': cv2.COLOR_BayerGB2RGB,
}


def seconds(stamp: Any) -> float:
    """Return a stamp in seconds."""
    return stamp.sec + stamp.nanosec * 1e-9


def pixels(name: str, message: Any, max_pixels: int) -> np.ndarray:
    """Return the pixels of an Image message as H W or H W C, a view wherever possible."""
    if message.encoding not in LAYOUTS:
        raise ValueError(
            f'{name}.encoding: expected one of {", ".join(LAYOUTS)}, got {message.encoding!r}')
    kind, channels = LAYOUTS[message.encoding]
    height, width, step = int(message.height), int(message.width), int(message.step)
    check_size(name, height, width, max_pixels)
    dtype = np.dtype(('>' if message.is_bigendian else '<') + kind)
    row = width * channels * dtype.itemsize
    if step < row:
        raise ValueError(f'{name}.step: expected at least {row} bytes a row, got {step}')
    data = memoryview(message.data).cast('B')
    if len(data) < step * height:
        raise ValueError(f'{name}.data: expected {step * height} bytes, got {len(data)}')
    shape, strides = (height, width), (step, channels * dtype.itemsize)
    if channels > 1:
        shape, strides = (*shape, channels), (*strides, dtype.itemsize)
    view = np.ndarray(shape, dtype, data, strides=strides)
    return view.astype(dtype.newbyteorder('=')) if not dtype.isnative else view


def decode_depth(message: Any, max_pixels: int, scale: float = 0.0) -> tuple[np.ndarray, str]:
    """Return metres (H W float32) of an Image message, and the encoding they came in."""
    if message.encoding not in DEPTH_ENCODINGS:
        raise ValueError(
            f'depth.encoding: expected one of {", ".join(DEPTH_ENCODINGS)}, '
            f'got {message.encoding!r}')
    return metres(pixels('depth', message, max_pixels), scale), message.encoding


def decode_compressed_depth(message: Any, max_pixels: int,
                            scale: float = 0.0) -> tuple[np.ndarray, str]:
    """Return metres (H W float32) of a compressed depth, and their encoding."""
    stored, encoding = compressed.depth(message.format, bytes(message.data), max_pixels)
    return metres(stored, scale), encoding


def metres(stored: np.ndarray, scale: float = 0.0) -> np.ndarray:
    """
    Return depth as it is stored as contiguous float32 metres.

    Scale is the length of its unit; 0 is a millimetre for integers and a metre for floats.
    """
    with np.errstate(over='ignore', invalid='ignore'):
        if stored.dtype == np.uint16:
            return np.multiply(stored, np.float32(scale) or MILLIMETRE, dtype=np.float32)
        if scale:
            return np.multiply(stored, scale).astype(np.float32)
        return np.ascontiguousarray(stored, np.float32)


def decode_image(message: Any, max_pixels: int) -> np.ndarray:
    """Return an Image message as H W (grey, of any type) or H W 3 (RGB), uint8 or uint16."""
    encoding = message.encoding
    if encoding not in TO_RGB:
        return _by_cv_bridge(message, max_pixels)
    array = pixels('image', message, max_pixels)
    code = TO_RGB[encoding]
    if code is None:
        return np.ascontiguousarray(array)
    if array.shape[1] % 2 and LAYOUTS[encoding][1] == 2:
        raise ValueError(f'image.width: expected an even one for {encoding}, got {array.shape[1]}')
    if encoding.startswith('bayer') and min(array.shape) < 2:
        raise ValueError(f'image: expected at least 2x2 pixels of {encoding}, got {array.shape}')
    return cv2.cvtColor(array, code)


def decode_compressed_image(message: Any, max_pixels: int) -> np.ndarray:
    """Return a CompressedImage message (PNG, JPEG) as H W or H W 3 (RGB)."""
    array = compressed.picture('image', bytes(message.data), max_pixels)
    if array.ndim == 2:
        return array
    return cv2.cvtColor(
        array, cv2.COLOR_BGRA2RGB if array.shape[2] == 4 else cv2.COLOR_BGR2RGB)


def decode_confidence(message: Any, max_pixels: int) -> np.ndarray:
    """Return the values of a confidence image, as they are, as H W float32."""
    if message.encoding not in CONFIDENCE_ENCODINGS:
        raise ValueError(
            f'confidence.encoding: expected one of {", ".join(CONFIDENCE_ENCODINGS)}, '
            f'got {message.encoding!r}')
    with np.errstate(over='ignore', invalid='ignore'):
        return pixels('confidence', message, max_pixels).astype(np.float32)


def decode_disparity(message: Any, max_pixels: int) -> tuple[np.ndarray, float]:
    """Return metres (H W float32, 0 where unknown) of a DisparityImage, and the baseline."""
    if message.image.encoding != '32FC1':
        raise ValueError(
            f'disparity.image.encoding: expected 32FC1, got {message.image.encoding!r}')
    for name in ('f', 't'):
        value = getattr(message, name)
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f'disparity.{name}: expected a positive number, got {value}')
    disparity = pixels('disparity', message.image, max_pixels)
    known = (disparity > 0) & (disparity >= message.min_disparity)
    depth = np.zeros(disparity.shape, np.float32)
    with np.errstate(over='ignore'):
        np.divide(np.float32(message.f * message.t), disparity, out=depth, where=known)
    return depth, float(message.t)


def bits_in_use(image: np.ndarray, least: int = LEAST_BITS) -> int:
    """Return how many bits hold almost all values of a uint16 image, at least some."""
    allowed = OUTLIERS * image.size
    return next(
        bits for bits in range(least, 17)
        if bits == 16 or np.count_nonzero(image >> bits) <= allowed)


def exponent_in_use(image: np.ndarray, least: int = LEAST_EXPONENT) -> int:
    """Return the power of two below which almost all values of a float image lie."""
    known = image[np.isfinite(image) & (image > 0)]
    if not known.size:
        return least
    beyond = min(int(OUTLIERS * image.size), known.size - 1)
    largest = float(np.partition(known, known.size - 1 - beyond)[known.size - 1 - beyond])
    return max(least, min(MOST_EXPONENT, math.frexp(largest)[1]))


def full_range(image: np.ndarray, bits: int) -> np.ndarray:
    """
    Stretch a uint16 image of some bits, or a float one below 2^bits, to all sixteen bits.

    What lies beyond becomes white, what is no number black.
    """
    if image.dtype != np.uint16:
        with np.errstate(over='ignore'):
            share = np.nan_to_num(image * (0.5 ** bits), nan=0.0, posinf=1.0, neginf=0.0)
        return (np.clip(share, 0, 1) * 65535).astype(np.uint16)
    return np.minimum(image, np.uint16(2 ** bits - 1)) << np.uint16(16 - bits)


def fit_image(image: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Resize an image to the size of the depth; refuse it where that would distort it."""
    height, width = image.shape[:2]
    if height * shape[1] != width * shape[0]:
        raise ValueError(
            f'image: expected the size of the depth {shape[1]}x{shape[0]} or an exact multiple '
            f'or part of it, got {width}x{height}')
    return resize_image(image, shape)


def resize_image(image: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return the image in another size (height, width), without aliasing."""
    if image.shape[:2] == shape:
        return image
    smaller = shape[0] < image.shape[0]
    return cv2.resize(
        image, shape[::-1], interpolation=cv2.INTER_AREA if smaller else cv2.INTER_LINEAR)


def _by_cv_bridge(message: Any, max_pixels: int) -> np.ndarray:
    """Leave unusual encodings to cv_bridge where there is one."""
    check_size('image', int(message.height), int(message.width), max_pixels)
    try:
        from cv_bridge import CvBridge
        bridge = CvBridge()
    except Exception:  # cv_bridge built for NumPy 1 raises AttributeError under NumPy 2
        raise ValueError(
            f'image.encoding: expected one of {", ".join(TO_RGB)}, got {message.encoding!r} '
            '(others need cv_bridge, which does not import)') from None
    try:
        return bridge.imgmsg_to_cv2(message, desired_encoding='rgb8')
    except Exception as error:
        raise ValueError(
            f'image.encoding: expected one that cv_bridge turns into rgb8, '
            f'got {message.encoding!r} ({" ".join(str(error).split())})') from None
