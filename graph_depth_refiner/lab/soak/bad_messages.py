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
"""Messages that are wrong in one way each, and what may become of their frames."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from random import Random
import struct
from typing import Any

from builtin_interfaces.msg import Time
from sensor_msgs.msg import RegionOfInterest
from std_msgs.msg import Header

from graph_depth_refiner.lab.soak.ledger import GOOD, LONE, MALFORMED

Change = Callable[[Any, Random], None]


def _set(**fields: Any) -> Change:
    def change(message: Any, rng: Random) -> None:
        for name, value in fields.items():
            setattr(message, name, value)
    return change


def _truncate(message: Any, rng: Random) -> None:
    message.data = message.data[:rng.randrange(len(message.data))]


def _noise(message: Any, rng: Random) -> None:
    message.data = array('B', rng.randbytes(len(message.data)))


def _invalid_depth(message: Any, rng: Random) -> None:
    message.data = array('B', bytes(len(message.data)))


def _short_step(message: Any, rng: Random) -> None:
    message.step = rng.randrange(message.step)


def _other_size(message: Any, rng: Random) -> None:
    message.width, message.height = message.width - 1, message.height + 2
    if hasattr(message, 'step'):
        message.data = array('B', bytes(message.step * message.height))


def _stamp(sec: int, nanosec: int) -> Change:
    def change(message: Any, rng: Random) -> None:
        message.header = Header(
            stamp=Time(sec=sec, nanosec=nanosec), frame_id=message.header.frame_id)
    return change


def _payload(build: Callable[[bytes, Random], bytes]) -> Change:
    def change(message: Any, rng: Random) -> None:
        message.data = array('B', build(bytes(message.data), rng))
    return change


def _both(*changes: Change) -> Change:
    def change(message: Any, rng: Random) -> None:
        for one in changes:
            one(message, rng)
    return change


def _flipped(data: bytes, rng: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(8):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _huge(data: bytes, rng: Random) -> bytes:
    at = data.index(b'IHDR') + 4
    return data[:at] + struct.pack('>II', 2 ** 31 - 1, 1) + data[at + 8:]


# name: topic, change, what may become of the frame
BAD: dict[str, tuple[str, Change, frozenset[str]]] = {
    'no data': ('depth', _set(data=array('B')), MALFORMED),
    'truncated depth': ('depth', _truncate, MALFORMED),
    'truncated image': ('image', _truncate, MALFORMED),
    'truncated confidence': ('confidence', _truncate, MALFORMED),
    'step too small': ('depth', _short_step, MALFORMED),
    'image step too small': ('image', _short_step, MALFORMED),
    'step beyond the data': ('depth', _set(step=2 ** 32 - 1), MALFORMED),
    'no pixels': ('depth', _set(height=0, width=0), MALFORMED),
    'two billion pixels': ('depth', _set(height=2 ** 31, width=1), MALFORMED),
    'all the pixels there are': ('image', _set(height=2 ** 32 - 1, width=2 ** 32 - 1), MALFORMED),
    'unknown encoding': ('depth', _set(encoding='jpeg'), MALFORMED),
    'unknown image encoding': ('image', _set(encoding='no such thing'), MALFORMED),
    'empty encoding': ('confidence', _set(encoding=''), MALFORMED),
    'image of another size': ('image', _other_size, MALFORMED),
    'confidence of another size': ('confidence', _other_size, MALFORMED),
    'camera of another size': ('camera_info', _other_size, MALFORMED),
    'no focal length': ('camera_info', _set(k=[0.0] * 9, p=[0.0] * 12), MALFORMED),
    'NaN camera': ('camera_info', _set(k=[float('nan')] * 9, p=[float('nan')] * 12), MALFORMED),
    'infinite camera': ('camera_info', _set(p=[float('inf')] * 12), MALFORMED),
    'distorted camera': ('camera_info', _set(d=[0.1] * 5), MALFORMED),
    'unknown distortion': (
        'camera_info', _set(distortion_model='fisheye', d=[0.1] * 4), MALFORMED),
    'binned to nothing': ('camera_info', _set(binning_x=2 ** 31, binning_y=7), MALFORMED),
    'region outside': (
        'camera_info', _set(roi=RegionOfInterest(x_offset=9, width=3, height=2)), MALFORMED),
    'negative stamp': ('depth', _stamp(-5, 0), frozenset({'malformed'})),
    'stamp beyond a second': ('depth', _stamp(5, 2 ** 32 - 1), frozenset({'malformed'})),
    'image from elsewhere': ('image', _set(header=Header(frame_id='elsewhere')), MALFORMED),
    'image with a negative stamp': ('image', _stamp(-1, 0), LONE),
    # nothing is wrong with the form of these
    'noise for depth': ('depth', _noise, GOOD),
    'noise for an image': ('image', _noise, GOOD),
    'no valid depth': ('depth', _invalid_depth, GOOD),
    'byte order of others': ('depth', _set(is_bigendian=1), GOOD),
    'camera of another frame': ('camera_info', _set(header=Header(frame_id='elsewhere')), GOOD),
}

# the same for compressed transports: what is wrong with the payload or its name
BAD_COMPRESSED: dict[str, tuple[str, Change, frozenset[str]]] = {
    **{name: bad for name, bad in BAD.items()
       if bad[0] in ('camera_info', 'confidence') or 'stamp' in name or 'elsewhere' in name},
    'no payload': ('depth', _set(data=array('B')), MALFORMED),
    'no image payload': ('image', _set(data=array('B')), MALFORMED),
    'header only': ('depth', _payload(lambda data, rng: data[:12]), MALFORMED),
    'PNG cut in its header': (
        'depth', _payload(lambda data, rng: data[:rng.randrange(36)]), MALFORMED),
    'cut PNG': ('depth', _payload(lambda data, rng: data[:-rng.randrange(1, 200)]),
                MALFORMED | GOOD),
    'flipped bytes': ('depth', _payload(_flipped), MALFORMED | GOOD),
    'flipped bytes of an image': ('image', _payload(_flipped), MALFORMED | GOOD),
    'noise': ('depth', _payload(lambda data, rng: rng.randbytes(300)), MALFORMED),
    'noise for a JPEG': ('image', _payload(lambda data, rng: rng.randbytes(300)), MALFORMED),
    'two billion pixels in a PNG': ('depth', _payload(_huge), MALFORMED),
    'two billion pixels in RVL': (
        'depth', _both(_set(format='16UC1; compressedDepth rvl'), _payload(
            lambda data, rng: bytes(12) + struct.pack('<II', 2 ** 31, 1) + bytes(40))),
        MALFORMED),
    'noise in RVL': (
        'depth', _both(_set(format='16UC1; compressedDepth rvl'), _payload(
            lambda data, rng: bytes(12) + struct.pack('<II', 40, 30) + rng.randbytes(300))),
        MALFORMED),
    'JPEG depth': ('depth', _set(format='16UC1; jpeg compressed'), MALFORMED),
    'unknown format': ('depth', _set(format='x' * 500), MALFORMED),
}
