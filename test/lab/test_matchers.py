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
"""Matchers on shifted texture, and left-right consistency by hand."""

import cv2
import numpy as np
import pytest

from graph_depth_refiner.lab.evaluation.matchers import consistent, MATCHERS

SHIFT = 7


def pair(shape):
    """Return a textured image and the same seen SHIFT pixels to the right."""
    rng = np.random.default_rng(4)
    wide = cv2.GaussianBlur(rng.random((shape[0], shape[1] + SHIFT)), (0, 0), 1.0)
    wide = ((wide - wide.min()) / np.ptp(wide) * 255).astype(np.uint8)
    # x in the left image is x - SHIFT in the right one
    return wide[:, :shape[1]], wide[:, SHIFT:]


@pytest.mark.parametrize('name', MATCHERS)
@pytest.mark.parametrize('colour', [False, True])
def test_shifted_texture_gives_the_shift(name, colour):
    left, right = pair((60, 90))
    if colour:
        left, right = (np.stack([image] * 3, axis=-1) for image in (left, right))
    disparity, confidence = MATCHERS[name](left, right, 16)
    assert disparity.shape == confidence.shape == (60, 90)
    assert disparity.dtype == confidence.dtype == np.float32
    inner = disparity[10:-10, SHIFT + 10:-10]
    np.testing.assert_allclose(inner, SHIFT, atol=0.2)
    assert (confidence[10:-10, SHIFT + 10:-10] == 1).all()
    # the left image's first columns are not in the right one
    assert confidence[:, :SHIFT].mean() < 0.2


def test_blocks_without_texture_have_no_disparity():
    flat = np.full((60, 90), 128, np.uint8)
    disparity, confidence = MATCHERS['BM'](flat, flat, 16)
    assert np.isnan(disparity).all() and not confidence.any()


def test_consistency():
    # columns 0..4; x - 2 of the left map: -2, -1, 0, 1, 2
    left = np.array([[2, 2, 2, 2, 2, np.nan]], np.float32)
    right = np.array([[2.4, 2.6, np.nan, 9, 9, 9]], np.float32)
    # columns 0 and 1 fall outside, 2 agrees within 0.5, 3 does not, 4 meets a hole
    np.testing.assert_array_equal(consistent(left, right), [[0, 0, 1, 0, 0, 0]])
    np.testing.assert_array_equal(consistent(left, right, 0.7), [[0, 0, 1, 1, 0, 0]])
