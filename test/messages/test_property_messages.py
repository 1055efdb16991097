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
"""Image messages of any size, step, encoding and length are decoded or refused in words."""

from types import SimpleNamespace

from hostile import bounded, header, image, image_messages, octets, singles, small_sides
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from graph_depth_refiner.messages import conversions
from graph_depth_refiner.messages.conversions import LAYOUTS

MAX_PIXELS = 4096
messages = image_messages(LAYOUTS)


def check(array, message, dtypes, channels=()):
    """Check that a decoded array is what the message says it is."""
    if array is None:
        return
    assert array.dtype in dtypes
    assert array.shape[:2] == (message.height, message.width)
    assert array.shape[2:] in ((), *channels)
    assert array.flags.c_contiguous
    assert array.shape[0] * array.shape[1] <= MAX_PIXELS


@given(messages)
def test_depth_messages(message):
    decoded = bounded(
        MAX_PIXELS, len(message.data), conversions.decode_depth, message, MAX_PIXELS)
    if decoded is not None:
        check(decoded[0], message, [np.float32])
        assert decoded[1] == message.encoding


@given(messages)
def test_image_messages(message):
    decoded = bounded(
        MAX_PIXELS, len(message.data), conversions.decode_image, message, MAX_PIXELS)
    check(decoded, message, [np.uint8, np.uint16, np.float32, np.float64], [(3,)])


@given(messages)
def test_confidence_messages(message):
    decoded = bounded(
        MAX_PIXELS, len(message.data), conversions.decode_confidence, message, MAX_PIXELS)
    check(decoded, message, [np.float32])


@given(messages, singles, singles, singles)
def test_disparity_messages(message, focal, baseline, least):
    message.encoding = '32FC1' if message.encoding in LAYOUTS else message.encoding
    disparity = SimpleNamespace(
        header=header(), image=message, f=focal, t=baseline, min_disparity=least)
    decoded = bounded(
        MAX_PIXELS, len(message.data), conversions.decode_disparity, disparity, MAX_PIXELS)
    if decoded is not None:
        check(decoded[0], message, [np.float32])
        assert not (decoded[0] < 0).any()
        assert decoded[1] == baseline > 0


@given(small_sides, small_sides, small_sides, small_sides, st.booleans())
def test_images_are_fitted_to_the_depth_or_refused(width, height, columns, rows, color):
    array = np.zeros((height, width, 3) if color else (height, width), np.uint8)
    fitted = bounded(MAX_PIXELS, array.nbytes, conversions.fit_image, array, (rows, columns))
    assert (fitted is not None) == (width * rows == height * columns)
    if fitted is not None:
        assert fitted.shape == (rows, columns) + array.shape[2:]


@pytest.mark.parametrize('width, height', [
    (2 ** 31, 1), (1, 2 ** 31), (2 ** 16, 2 ** 15), (46341, 46341), (2 ** 32 - 1, 2 ** 32 - 1)])
@pytest.mark.parametrize('encoding', ['16UC1', '32FC1', 'rgb8', 'bayer_rggb8', 'exotic'])
def test_a_claim_of_two_billion_pixels_takes_no_memory(width, height, encoding):
    message = image(width, height, encoding, (width * 4) % 2 ** 32, bytes(64))
    for decode in (conversions.decode_depth, conversions.decode_image,
                   conversions.decode_confidence):
        # max_pixels of 0 leaves a bound of SLACK and the payload
        assert bounded(0, 64, decode, message, 16777216) is None


def test_an_empty_payload_is_refused_in_words():
    message = image(2, 2, '16UC1', 4, b'')
    with pytest.raises(ValueError, match='depth.data: expected 8 bytes, got 0'):
        conversions.decode_depth(message, MAX_PIXELS)
    message.data = np.frombuffer(octets(b''), np.uint8)
    with pytest.raises(ValueError, match='depth.data: expected 8 bytes, got 0'):
        conversions.decode_depth(message, MAX_PIXELS)
