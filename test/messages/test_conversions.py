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
"""Every encoding, with padded rows and both byte orders, comes back as it was."""

import numpy as np
import pytest
from sensor_msgs.msg import CompressedImage, Image
from stereo_msgs.msg import DisparityImage

from graph_depth_refiner.messages import conversions
from graph_depth_refiner.messages.conversions import LAYOUTS

ENOUGH = 10 ** 6
PADDING = 7  # an odd number: rows do not even start aligned
HEIGHT, WIDTH = 4, 6


def image_message(array, encoding, padding=0, big_endian=False):
    """Pack an array by hand, row by row, the way a driver with padded rows does."""
    array = array.astype(array.dtype.newbyteorder('>' if big_endian else '<'))
    rows = b''.join(row.tobytes() + b'\xee' * padding for row in array)
    message = Image(
        height=array.shape[0], width=array.shape[1], encoding=encoding,
        is_bigendian=int(big_endian), step=len(rows) // array.shape[0])
    message.data.frombytes(rows)
    return message


def some_pixels(encoding):
    """Return pixels of an encoding that use its whole range."""
    kind, channels = LAYOUTS[encoding]
    shape = (HEIGHT, WIDTH) if channels == 1 else (HEIGHT, WIDTH, channels)
    rng = np.random.default_rng(1)
    if kind[0] == 'f':
        return rng.uniform(0.2, 9, shape).astype(kind)
    return rng.integers(0, np.iinfo(kind).max + 1, shape).astype(kind)


@pytest.mark.parametrize('big_endian', [False, True])
@pytest.mark.parametrize('padding', [0, PADDING])
@pytest.mark.parametrize('encoding', LAYOUTS)
def test_pixels_come_back(encoding, padding, big_endian):
    stored = some_pixels(encoding)
    message = image_message(stored, encoding, padding, big_endian)
    pixels = conversions.pixels('image', message, ENOUGH)
    assert pixels.dtype == stored.dtype
    assert np.array_equal(pixels, stored)


@pytest.mark.parametrize('big_endian', [False, True])
@pytest.mark.parametrize('padding', [0, PADDING])
@pytest.mark.parametrize('encoding', conversions.DEPTH_ENCODINGS)
def test_depth_is_metres(encoding, padding, big_endian):
    stored = some_pixels(encoding)
    message = image_message(stored, encoding, padding, big_endian)
    depth, told = conversions.decode_depth(message, ENOUGH)
    expected = stored / 1000 if stored.dtype == np.uint16 else stored
    assert told == encoding
    assert depth.dtype == np.float32 and depth.flags.c_contiguous
    np.testing.assert_allclose(depth, expected, rtol=1e-6)


@pytest.mark.parametrize('encoding', conversions.DEPTH_ENCODINGS)
def test_a_unit_of_a_tenth_of_a_millimetre(encoding):
    stored = some_pixels(encoding)
    depth, _ = conversions.decode_depth(image_message(stored, encoding), ENOUGH, 1e-4)
    assert depth.dtype == np.float32
    np.testing.assert_allclose(depth, stored * 1e-4, rtol=1e-6)


def test_invalid_depth_stays_invalid():
    stored = np.array([[0.0, np.nan, np.inf, -np.inf, -1.0, 1e300]])
    depth, _ = conversions.decode_depth(image_message(stored, '64FC1'), ENOUGH)
    assert not (np.isfinite(depth) & (depth > 0)).any()  # 1e300 m is no float32


# a colour and, by hand from the definition of each encoding, its bytes
ORANGE = (200, 100, 50)
COLOURS = {
    'rgb8': ORANGE, 'bgr8': ORANGE[::-1], '8UC3': ORANGE[::-1],
    'rgba8': (*ORANGE, 7), 'bgra8': (*ORANGE[::-1], 7),
}


@pytest.mark.parametrize('encoding', COLOURS)
def test_colour_becomes_rgb(encoding):
    stored = np.full((HEIGHT, WIDTH, len(COLOURS[encoding])), COLOURS[encoding], np.uint8)
    image = conversions.decode_image(image_message(stored, encoding, PADDING), ENOUGH)
    assert image.shape == (HEIGHT, WIDTH, 3)
    assert (image == ORANGE).all()


@pytest.mark.parametrize('encoding, dtype', [
    ('mono8', np.uint8), ('8UC1', np.uint8), ('mono16', np.uint16), ('16UC1', np.uint16),
    ('32FC1', np.float32), ('64FC1', np.float64)])
def test_grey_stays_grey(encoding, dtype):
    stored = some_pixels(encoding)
    image = conversions.decode_image(image_message(stored, encoding, PADDING), ENOUGH)
    assert image.dtype == dtype
    assert np.array_equal(image, stored)


@pytest.mark.parametrize('top, bits', [
    (0, 8), (255, 8), (256, 9), (1023, 10), (1024, 11), (4095, 12), (65535, 16)])
def test_bits_in_use(top, bits):
    image = np.array([[0, top]], np.uint16)
    assert conversions.bits_in_use(image) == bits
    # black stays black, and the largest value of the range becomes white up to its last bit
    stretched = conversions.full_range(np.array([[0, 2 ** bits - 1]], np.uint16), bits)
    assert stretched[0, 0] == 0
    assert 65535 - stretched[0, 1] < 2 ** (16 - bits)


def test_a_hot_pixel_does_not_widen_the_range():
    image = np.full((50, 50), 700, np.uint16)
    image[3, 4] = 65535
    assert conversions.bits_in_use(image) == 10
    assert conversions.full_range(image, 10)[3, 4] == 1023 << 6
    image[:5] = 65535  # a tenth of all are no outliers
    assert conversions.bits_in_use(image) == 16


@pytest.mark.parametrize('top, exponent', [(0.4, -1), (0.9, 0), (1.5, 1), (900.0, 10)])
def test_floats_are_stretched_by_a_power_of_two(top, exponent):
    image = np.full((50, 50), top, np.float32)
    image[0, :3] = 0, np.nan, -5
    image[1, :2] = 1e9, np.inf  # hot pixels
    assert conversions.exponent_in_use(image) == exponent
    stretched = conversions.full_range(image, exponent)
    assert stretched.dtype == np.uint16
    assert stretched[9, 9] == int(np.float32(top) * 0.5 ** exponent * 65535)
    assert stretched[0, :3].tolist() == [0, 0, 0]
    assert stretched[1, :2].tolist() == [65535, 65535]


def test_a_float_image_without_values_is_black():
    image = np.full((2, 2), np.nan)
    exponent = conversions.exponent_in_use(image)
    assert not conversions.full_range(image, exponent).any()


@pytest.mark.parametrize('encoding, order', [
    ('yuv422', 'uyvy'), ('uyvy', 'uyvy'), ('yuv422_yuy2', 'yuyv'), ('yuyv', 'yuyv')])
def test_yuv_becomes_rgb(encoding, order):
    # pure red in BT.601 video range: Y 81, U 90, V 240
    value = {'y': 81, 'u': 90, 'v': 240}
    row = np.array([value[letter] for letter in order] * (WIDTH // 2), np.uint8)
    stored = np.broadcast_to(row, (HEIGHT, row.size)).reshape(HEIGHT, WIDTH, 2)
    image = conversions.decode_image(image_message(stored, encoding, PADDING), ENOUGH)
    np.testing.assert_allclose(image, np.broadcast_to((255, 0, 0), image.shape), atol=3)


@pytest.mark.parametrize('pattern', ['rggb', 'bggr', 'gbrg', 'grbg'])
def test_bayer_becomes_rgb(pattern):
    # every pixel of the mosaic shows its own channel of one flat colour
    value = dict(zip('rgb', ORANGE, strict=True))
    tile = np.array([value[letter] for letter in pattern], np.uint8).reshape(2, 2)
    stored = np.tile(tile, (4, 4))
    message = image_message(stored, f'bayer_{pattern}8', PADDING)
    image = conversions.decode_image(message, ENOUGH)
    assert (image == ORANGE).all()


def test_confidence_keeps_its_values():
    stored = np.array([[0, 100, 255]], np.uint8)
    values = conversions.decode_confidence(image_message(stored, 'mono8'), ENOUGH)
    assert values.dtype == np.float32
    assert values.tolist() == [[0, 100, 255]]


def test_disparity_is_depth():
    # f 100 px and baseline 0.5 m: 10 px are 100 * 0.5 / 10 = 5 m; below min_disparity is none
    disparity = np.array([[10.0, 1.0, -1.0, np.nan]], np.float32)
    message = DisparityImage(
        image=image_message(disparity, '32FC1', PADDING), f=100.0, t=0.5, min_disparity=2.0)
    depth, baseline = conversions.decode_disparity(message, ENOUGH)
    assert depth.tolist() == [[5, 0, 0, 0]]
    assert baseline == 0.5


@pytest.mark.parametrize('change, sentence', [
    ({'height': 0}, 'depth: expected at least 1x1 pixels, got 6x0'),
    ({'width': 0}, 'depth: expected at least 1x1 pixels, got 0x4'),
    ({'step': 11}, 'depth.step: expected at least 12 bytes a row, got 11'),
    ({'height': 5}, 'depth.data: expected 60 bytes, got 48'),
    ({'step': 2 ** 32 - 1}, 'depth.data: expected 17179869180 bytes, got 48'),
    ({'height': 2 ** 14, 'width': 2 ** 14}, 'depth: expected at most 1000000 pixels'),
    ({'height': 2 ** 31, 'width': 2 ** 31}, 'depth: expected sides of at most'),
    ({'encoding': 'rgb8'}, 'depth.encoding: expected one of 16UC1'),
])
def test_bad_depth_is_refused(change, sentence):
    message = image_message(some_pixels('16UC1'), '16UC1')
    for name, value in change.items():
        setattr(message, name, value)
    with pytest.raises(ValueError, match=sentence):
        conversions.decode_depth(message, ENOUGH)


def test_unknown_encoding_is_refused_or_left_to_cv_bridge():
    try:
        import cv_bridge  # noqa: F401
    except Exception:
        with pytest.raises(ValueError, match="got '32SC4'.*cv_bridge"):
            conversions.decode_image(
                image_message(some_pixels('rgba8'), '32SC4'), ENOUGH)
    else:
        with pytest.raises(ValueError, match="got '32SC4'"):
            conversions.decode_image(
                image_message(some_pixels('rgba8'), '32SC4'), ENOUGH)


@pytest.mark.parametrize('encoding', [*COLOURS, 'mono8', 'bayer_rggb8', 'yuv422_yuy2'])
def test_agrees_with_cv_bridge(encoding):
    geodesic_fill = pytest.importorskip('cv_bridge').CvBridge()
    if encoding in ('8UC3', 'bayer_rggb8'):
        pytest.skip('cv_bridge leaves 8UC3 alone and interpolates another way')
    message = image_message(some_pixels(encoding), encoding)
    expected = geodesic_fill.imgmsg_to_cv2(message, 'mono8' if encoding == 'mono8' else 'rgb8')
    assert np.array_equal(conversions.decode_image(message, ENOUGH), expected)


@pytest.mark.parametrize('size', [(480, 640), (120, 160), (360, 480)])
def test_image_of_the_same_proportions_fits(size):
    image = np.full((*size, 3), 77, np.uint8)
    fitted = conversions.fit_image(image, (240, 320))
    assert fitted.shape == (240, 320, 3)
    assert (fitted == 77).all()


def test_image_of_other_proportions_is_refused():
    with pytest.raises(ValueError, match='image: expected the size of the depth 320x240'):
        conversions.fit_image(np.zeros((480, 641), np.uint8), (240, 320))


def test_jpeg_depth_is_refused():
    message = CompressedImage(format='16UC1; jpeg compressed', data=b'\xff\xd8')
    with pytest.raises(ValueError, match='JPEG destroys depth'):
        conversions.decode_compressed_depth(message, ENOUGH)
