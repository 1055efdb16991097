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
"""Test the baselines' parts on tiny analytic maps."""

import numpy as np
import pytest

from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.lab.evaluation import filters

NAN = np.float32(np.nan)
STEREO = Intrinsics(100.0, 100.0, 15.5, 11.5, 0.1)  # one px of disparity is 1 / (100 * 0.1) 1/m
FILTERS = (
    filters.median, filters.weighted_median, filters.bilateral, filters.guided,
    filters.fast_global_smoother, filters.weighted_least_squares)


def frame_of(disparity, confidence=None, camera=STEREO):
    """Return the frame of a disparity map, 0 or NaN where unknown."""
    depth = np.full(disparity.shape, NAN)
    np.divide(np.float32(10), disparity, out=depth, where=disparity > 0)
    image = np.full((*disparity.shape, 3), 128, np.uint8)
    return Frame(image, depth, camera, confidence)


def test_values_of_stereo_are_pixels_of_disparity():
    disparity = np.array([[5, 8], [NAN, 2]], np.float32)
    values, unit = filters.values_of(frame_of(disparity))
    np.testing.assert_allclose(values, disparity, rtol=1e-6)
    assert unit == pytest.approx(0.1)
    np.testing.assert_allclose(filters.depth_of(values, unit)[0], [2.0, 1.25], rtol=1e-6)


def test_nearest_fill():
    values = np.array([[1, NAN, NAN, NAN, 9]], np.float32)
    filled = filters.fill_nearest(values)
    assert filled[0].tolist() in ([1, 1, 1, 9, 9], [1, 1, 9, 9, 9])
    assert np.isnan(filters.fill_nearest(np.full((2, 2), NAN))).all()


def test_background_fill_takes_the_farther_side():
    values = np.array([
        [9, NAN, NAN, 4, 4], [NAN, 7, NAN, 8, NAN], [NAN, NAN, NAN, NAN, NAN]], np.float32)
    filled = filters.fill_background(values)
    # smaller disparity is farther; a border has one side only
    assert filled[0].tolist() == [9, 4, 4, 4, 4]
    assert filled[1].tolist() == [7, 7, 7, 8, 8]
    assert np.isfinite(filled[2]).all()


def test_doubtful_pixels_and_speckles_are_no_values():
    disparity = np.full((24, 32), 10, np.float32)
    disparity[5:9, 5:9] = 20  # 16 px, less than the area of a speckle
    confidence = np.ones(disparity.shape, np.float32)
    confidence[20, 30] = 0
    values, _ = filters.confident_values(frame_of(disparity, confidence))
    assert np.isnan(values[5:9, 5:9]).all()
    assert np.isnan(values[20, 30])
    assert np.isfinite(values).sum() == disparity.size - 17


@pytest.mark.parametrize('run', FILTERS)
def test_filters_keep_a_flat_wall_and_close_its_holes(run):
    disparity = np.full((24, 32), 10, np.float32)
    disparity[4:7, 4:7] = NAN
    values, unit = run(frame_of(disparity))
    np.testing.assert_allclose(values, 10.0, rtol=1e-4)
    assert unit == pytest.approx(0.1)


def test_wls_of_a_pair_fills_from_consistent_pixels():
    rng = np.random.default_rng(0)
    left = np.full((40, 96), 10, np.float32)
    left[10:20, 50:60] = 30  # inconsistent with the right map
    frame = Frame(rng.integers(0, 255, (40, 96, 3), np.uint8), 10 / left, STEREO)
    smoothed = filters.weighted_least_squares_pair(frame, left, np.full_like(left, 10))
    assert smoothed[15, 55] == pytest.approx(10, abs=0.5)
    assert np.isfinite(smoothed).all()


def test_holes_of_other_cameras_are_filled_from_the_nearest():
    camera = Intrinsics(100.0, 100.0, 15.5, 11.5)
    depth = np.full((24, 32), 2, np.float32)
    depth[:, 16:] = 4
    depth[:, 12:15] = NAN  # nearer to the near side
    frame = Frame(np.full((24, 32), 128, np.uint8), depth, camera)
    assert filters.depth_of(*filters.median(frame))[10, 12] == pytest.approx(2, rel=1e-3)
