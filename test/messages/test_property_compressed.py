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
"""Compressed payloads, whole, cut or tampered with, are decoded or refused in words."""

import struct
import zlib

import cv2
from hostile import bounded, outcome, singles, tampered
from hypothesis import example, given
from hypothesis import strategies as st
import numpy as np
import pytest

from graph_depth_refiner.messages import compressed, kernels
from graph_depth_refiner.messages.compressed import JPEG, PNG

MAX_PIXELS = 4096
FORMATS = [
    '16UC1; compressedDepth png', '32FC1; compressedDepth png', '16UC1; compressedDepth rvl',
    '32FC1; compressedDepth rvl', 'mono16; compressedDepth', '16UC1; compressedDepth',
    '16UC1; png compressed', '32FC1; tiff compressed', '16UC1; tiff compressed']
RAMP = (np.arange(63, dtype=np.uint16) * 900).reshape(7, 9)


def png_of(array):
    """Return an array as a PNG file."""
    return cv2.imencode('.png', array)[1].tobytes()


PICTURES = {
    'png16': png_of(RAMP),
    'png8': png_of((RAMP >> 8).astype(np.uint8)),
    'png color': png_of(np.dstack([RAMP, RAMP, RAMP])),
    'jpeg': cv2.imencode('.jpg', (RAMP >> 8).astype(np.uint8))[1].tobytes(),
    'tiff16': cv2.imencode('.tiff', RAMP)[1].tobytes(),
    'tiff float': cv2.imencode('.tiff', RAMP.astype(np.float32))[1].tobytes(),
    'jpeg color': cv2.imencode('.jpg', np.full((7, 9, 3), 90, np.uint8))[1].tobytes(),
}


def nibbles(numbers):
    """Return numbers in the RVL code: three bits a nibble, low first, bit 3 for more."""
    stream = []
    for number in numbers:
        while True:
            number, part = number >> 3, number & 7
            stream.append(part | (8 if number else 0))
            if not number:
                break
    stream += [0] * (-len(stream) % 8)
    words = [sum(n << 4 * (7 - k) for k, n in enumerate(stream[at:at + 8]))
             for at in range(0, len(stream), 8)]
    return struct.pack(f'<{len(words)}I', *words)


def rvl_of(array):
    """Return an image as an RVL payload, written plainly."""
    numbers, before, at, flat = [], 0, 0, array.ravel().tolist()
    while at < len(flat):
        start = at
        while at < len(flat) and flat[at] == 0:
            at += 1
        zeros, start = at - start, at
        while at < len(flat) and flat[at]:
            at += 1
        numbers += [zeros, at - start]
        for value in flat[start:at]:
            difference, before = value - before, value
            numbers.append((difference << 1) ^ (difference >> 31))
    return struct.pack('<II', array.shape[1], array.shape[0]) + nibbles(numbers)


def with_size(picture, width, height):
    """Return a PNG whose header claims another size, its checksum put right."""
    chunk = b'IHDR' + struct.pack('>II', width, height) + picture[24:29]
    return PNG + struct.pack('>I', 13) + chunk + struct.pack('>I', zlib.crc32(chunk)) + \
        picture[33:]


def check(result):
    """Check what a depth payload was decoded to."""
    if result is not None:
        stored, encoding = result
        assert stored.ndim == 2
        assert 1 <= stored.size <= MAX_PIXELS
        assert stored.dtype == (np.float32 if encoding == '32FC1' else np.uint16)


COMPILED, REFERENCE = kernels.kernels().decode_rvl, kernels.numpy_kernels().decode_rvl
COMPILED(bytes(4), 0)  # loads the compiled walk, so that no example is billed for it

payloads = st.sampled_from([PICTURES['png16'], PICTURES['png8'], rvl_of(RAMP),
                            rvl_of(np.zeros_like(RAMP))]).flatmap(tampered)
forms = st.one_of(st.sampled_from(FORMATS), st.text(max_size=30))
headers = st.builds(struct.Struct('<iff').pack, st.integers(-9, 9), singles, singles)


@given(forms, headers, payloads)
def test_depth_payloads(form, head, payload):
    check(bounded(
        MAX_PIXELS, len(payload), compressed.depth, form, head + payload, MAX_PIXELS))


@given(forms, st.binary(max_size=64))
@example('16UC1; compressedDepth png', b'')
def test_arbitrary_bytes_as_depth(form, data):
    check(bounded(MAX_PIXELS, len(data), compressed.depth, form, data, MAX_PIXELS))


@given(st.sampled_from(list(PICTURES.values())).flatmap(tampered))
def test_picture_payloads(data):
    decoded = bounded(MAX_PIXELS, len(data), compressed.picture, 'image', data, MAX_PIXELS)
    if decoded is not None:
        assert decoded.dtype in (np.uint8, np.uint16, np.float32)
        assert 1 <= decoded.shape[0] * decoded.shape[1] <= MAX_PIXELS


@given(st.binary(max_size=48), st.integers(1, 200))
def test_both_rvl_decoders_agree_on_anything(data, count):
    plain = outcome(REFERENCE, data, count)
    compiled = outcome(COMPILED, data, count)
    assert (plain is None) == (compiled is None)
    if plain is not None:
        assert np.array_equal(plain, compiled)


@given(st.lists(st.integers(0, 2 ** 30), max_size=40), st.integers(1, 200))
def test_rvl_runs_never_leave_the_image(numbers, count):
    bounded(count, 4 * len(numbers), REFERENCE, nibbles(numbers), count)
    bounded(count, 4 * len(numbers), COMPILED, nibbles(numbers), count)


@pytest.mark.parametrize('zeros', [0, 40, 63])
def test_whole_payloads_are_decoded(zeros):
    stored = RAMP.copy()
    stored.ravel()[:zeros] = 0
    for form, payload in (('png', png_of(stored)), ('rvl', rvl_of(stored))):
        decoded, _ = compressed.depth(
            f'16UC1; compressedDepth {form}', bytes(12) + payload, MAX_PIXELS)
        assert np.array_equal(decoded, stored)


@pytest.mark.parametrize('width, height', [(2 ** 31, 1), (1, 2 ** 31), (46341, 46341)])
def test_a_claim_of_two_billion_pixels_takes_no_memory(width, height):
    claims = {
        'png': with_size(PICTURES['png16'], min(width, 2 ** 31 - 1), min(height, 2 ** 31 - 1)),
        'rvl': struct.pack('<II', width, height) + bytes(64)}
    for form, payload in claims.items():
        assert bounded(
            0, len(payload), compressed.depth, f'16UC1; compressedDepth {form}',
            bytes(12) + payload, 16777216) is None


def test_a_jpeg_cannot_hide_its_size_behind_a_marker_without_length():
    # A decoder skips FF D0, which has no length; whoever reads one there jumps over the true
    # size (65500x65500) to the false one.
    true = b'\xff\xc0\x00\x0b\x08\xff\xdc\xff\xdc\x01\x01\x11\x00'
    false = b'\xff\xc0\x00\x0b\x08\x00\x02\x00\x02\x01\x01\x11\x00'
    hidden = JPEG + b'\xff\xd0' + struct.pack('>H', len(true) + 2) + true + false + bytes(16)
    with pytest.raises(ValueError, match='expected a JPEG with a size'):
        compressed.picture('image', hidden, MAX_PIXELS)


def test_many_empty_rvl_runs_take_no_memory():
    # a megabyte of pairs "no zeros, nothing measured" for an image of one pixel
    assert bounded(1, 0, COMPILED, bytes(1 << 20), 1) is None
