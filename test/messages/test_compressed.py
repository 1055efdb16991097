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
"""Compressed payloads come back, and damaged ones end in one sentence."""

import struct

import cv2
import numpy as np
import pytest

from graph_depth_refiner.messages import compressed, kernels, outgoing

ENOUGH = 10 ** 6


def png(array):
    """Encode as PNG."""
    return cv2.imencode('.png', array)[1].tobytes()


def rvl(pixels):
    """Encode as RVL: runs of zeros and of zigzag differences, three bits a nibble."""
    nibbles = []

    def put(number):
        while number > 7:
            nibbles.append(number & 7 | 8)
            number >>= 3
        nibbles.append(number)

    at = previous = 0
    pixels = [int(value) for value in pixels]
    while at < len(pixels):
        start = at
        while at < len(pixels) and not pixels[at]:
            at += 1
        put(at - start)
        start = at
        while at < len(pixels) and pixels[at]:
            at += 1
        put(at - start)
        for value in pixels[start:at]:
            difference = value - previous
            put(2 * difference if difference >= 0 else -2 * difference - 1)
            previous = value
    nibbles += [0] * (-len(nibbles) % 8)
    words = [
        sum(nibble << 28 - 4 * place for place, nibble in enumerate(nibbles[i:i + 8]))
        for i in range(0, len(nibbles), 8)]
    return struct.pack(f'<{len(words)}I', *words)


def depth_payload(body, a=0.0, b=0.0):
    """Put the header of compressedDepth before a body."""
    return struct.pack('<iff', 0, a, b) + body


def rvl_body(stored):
    """Put the size before RVL code."""
    return struct.pack('<II', *stored.shape[::-1]) + rvl(stored.ravel())


def some_depth():
    """Return millimetres with holes and jumps over the whole range."""
    rng = np.random.default_rng(2)
    stored = rng.integers(1, 65536, (9, 13)).astype(np.uint16)
    stored[rng.random(stored.shape) < 0.3] = 0
    stored[3] = 0
    return stored


@pytest.mark.parametrize('form, body', [
    ('16UC1; compressedDepth png', png),
    ('16UC1; compressedDepth', png),
    ('16UC1', png),
    ('mono16; compressedDepth rvl', rvl_body),
])
def test_millimetres_come_back(form, body):
    stored = some_depth()
    depth, encoding = compressed.depth(form, depth_payload(body(stored)), ENOUGH)
    assert encoding == form.split(';')[0]
    assert np.array_equal(depth, stored)


@pytest.mark.parametrize('form, suffix', [
    ('16UC1; png compressed ', '.png'), ('mono16; png compressed mono16', '.png'),
    ('16UC1; tiff compressed ', '.tiff')])
def test_lossless_pictures_of_depth_come_back(form, suffix):
    data = cv2.imencode(suffix, some_depth())[1].tobytes()
    depth, encoding = compressed.depth(form, data, ENOUGH)
    assert encoding == form.split(';')[0]
    assert np.array_equal(depth, some_depth())


def test_a_tiff_of_metres_comes_back():
    metres = np.array([[0.5, 1.25, np.nan]], np.float32)
    data = cv2.imencode('.tiff', metres)[1].tobytes()
    depth, encoding = compressed.depth('32FC1; tiff compressed ', data, ENOUGH)
    np.testing.assert_array_equal(depth, metres)
    assert encoding == '32FC1'


@pytest.mark.parametrize('codec, body', [('png', png), ('rvl', rvl_body)])
def test_metres_come_back(codec, body):
    # stored = a / depth + b, as compressed_depth_image_transport quantises:
    # with z0 = 100, max 10 m: a = 100 * 101, b = 1 - a / 10
    a, b = 10100.0, -1009.0
    metres = np.array([[0.5, 1.0, 2.0, 5.0, np.nan]])
    stored = np.nan_to_num(np.floor(a / metres + b)).astype(np.uint16)
    form = f'32FC1; compressedDepth {codec}'
    depth, encoding = compressed.depth(form, depth_payload(body(stored), a, b), ENOUGH)
    assert encoding == '32FC1'
    # one step of 1 / 10100 in inverse depth is 5 ** 2 / 10100 m at 5 m
    np.testing.assert_allclose(depth, metres, atol=25 / a)


@pytest.mark.parametrize('seed', range(5))
def test_both_rvl_decoders_agree(seed):
    pytest.importorskip('numba')
    decoders = [make().decode_rvl for make in (kernels.numba_kernels, kernels.numpy_kernels)]
    rng = np.random.default_rng(seed)
    stored = (rng.integers(0, 2 ** rng.integers(1, 17), 500)).astype(np.uint16)
    code = rvl(stored)
    damaged = bytes(rng.integers(0, 256, len(code)).astype(np.uint8))
    for decode in decoders:
        assert np.array_equal(decode(code, 500), stored)
        with pytest.raises(ValueError, match='depth: expected'):
            decode(damaged, 500)


GOOD = depth_payload(png(some_depth()))


@pytest.mark.parametrize('form, data, sentence', [
    ('16UC1; compressedDepth jpeg', GOOD, 'depth: expected format'),
    ('8UC1; compressedDepth png', GOOD, 'depth: expected format'),
    ('', GOOD, 'depth: expected format'),
    ('16UC1; jpeg compressed mono8', GOOD, 'JPEG destroys depth'),
    ('32FC1; png compressed ', png(some_depth()), 'one channel of float32 for 32FC1, got uint16'),
    ('16UC1; png compressed ', png(np.zeros((4, 4), np.uint8)), 'one channel of uint16'),
    ('16UC1; tiff compressed ', b'II*\0' + b'\xff' * 20, 'expected a TIFF of one picture'),
    ('16UC1; compressedDepth png', GOOD[:12], 'expected more than 12 bytes'),
    ('16UC1; compressedDepth png', GOOD[:30], 'depth: expected'),
    ('16UC1; compressedDepth png', depth_payload(png(np.zeros((4, 4), np.uint8))),
     'expected 16-bit single-channel png, got uint8'),
    ('16UC1; compressedDepth rvl', depth_payload(b'\1\0\0\0'), 'expected an RVL size'),
    ('16UC1; compressedDepth rvl', depth_payload(rvl_body(some_depth())[:20]), 'RVL'),
    ('16UC1; compressedDepth rvl', depth_payload(struct.pack('<II', 2 ** 14, 2 ** 14)),
     'expected at most 1000000 pixels'),
    ('16UC1; compressedDepth rvl', depth_payload(struct.pack('<II', 2 ** 31, 2 ** 31)),
     'expected sides of at most'),
    ('32FC1; compressedDepth png', depth_payload(png(some_depth()), float('nan')),
     'expected finite quantisation parameters'),
])
def test_bad_depth_is_refused(form, data, sentence):
    with pytest.raises(ValueError, match=sentence):
        compressed.depth(form, data, ENOUGH)


@pytest.mark.parametrize('suffix', ['.png', '.jpg', '.tiff'])
def test_size_is_read_before_the_pixels(suffix):
    data = cv2.imencode(suffix, np.zeros((300, 400, 3), np.uint8))[1].tobytes()
    assert compressed.picture('image', data, ENOUGH).shape == (300, 400, 3)
    with pytest.raises(ValueError, match='image: expected at most 1000 pixels .*got 400x300'):
        compressed.picture('image', data, 1000)


@pytest.mark.parametrize('data', [b'', b'GIF89a', b'\xff\xd8', b'\xff\xd8\xff\xe0\0\x10junk'])
def test_no_picture_is_refused(data):
    with pytest.raises(ValueError, match='image: expected'):
        compressed.picture('image', data, ENOUGH)


@pytest.mark.parametrize('encoding', ['16UC1', 'mono16'])
def test_outgoing_millimetres_are_kept(encoding):
    fields = outgoing.compressed_depth_fields(some_depth() / np.float32(1000), encoding)
    back, as_what = compressed.depth(fields['format'], fields['data'].tobytes(), ENOUGH)
    assert as_what == encoding
    np.testing.assert_array_equal(back, some_depth())


@pytest.mark.parametrize('encoding', ['32FC1', '64FC1'])
@pytest.mark.parametrize('far', [0.4, 0.4001, 8.0, 900.0])
def test_outgoing_metres_are_off_by_half_a_step_of_inverse_depth(encoding, far):
    metres = np.geomspace(0.4, far, 120).reshape(10, 12).astype(np.float32)
    metres[3, 4] = np.nan
    fields = outgoing.compressed_depth_fields(metres, encoding)
    back, as_what = compressed.depth(fields['format'], fields['data'].tobytes(), ENOUGH)
    assert as_what == '32FC1'
    np.testing.assert_array_equal(np.isnan(back), np.isnan(metres))
    step = (1 / 0.4 - 1 / far) / compressed.STEPS
    worst = metres ** 2 * step / 2 + 1e-6 * metres  # dz = z^2 d(1/z), and the rounding of float32
    assert (np.abs(back - metres) <= worst)[np.isfinite(metres)].all()


def test_a_frame_without_depth_is_compressed_too():
    fields = outgoing.compressed_depth_fields(np.full((4, 5), np.nan, np.float32), '32FC1')
    back, _ = compressed.depth(fields['format'], fields['data'].tobytes(), ENOUGH)
    assert back.shape == (4, 5)
    assert np.isnan(back).all()


def test_outgoing_pictures_keep_their_colours():
    rgb = np.zeros((8, 8, 3), np.uint8)
    rgb[:] = (250, 128, 10)
    fields = compressed.picture_fields(outgoing.image_fields(rgb, 'rgb8'), 'jpeg')
    assert fields['format'] == 'rgb8; jpeg compressed bgr8'
    back = compressed.picture('image', fields['data'].tobytes(), ENOUGH)[..., ::-1]
    assert np.abs(back.astype(int) - rgb).max() <= 3
    labels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    fields = compressed.picture_fields(outgoing.image_fields(labels, 'mono8'), 'png')
    assert fields['format'] == 'mono8; png compressed mono8'
    back = compressed.picture('image', fields['data'].tobytes(), ENOUGH)
    np.testing.assert_array_equal(back, labels)
