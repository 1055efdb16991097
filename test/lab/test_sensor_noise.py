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
"""Test the camera model that makes inputs out of perfect depth."""

import numpy as np
import pytest

from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.lab.synthetic.sensor_noise import (
    blobs,
    FLOOR,
    GROWTH,
    tof,
    WITHHELD,
    withheld,
)

SHAPE = (60, 80)


def test_noise_has_the_stated_deviation_and_seed():
    depth = np.full(SHAPE, 2, np.float32)
    measured, confidence = tof(depth, 1)
    error = (measured - depth)[np.isfinite(measured)]
    assert error.std() == pytest.approx(FLOOR + GROWTH * 4, rel=0.05)
    assert abs(error.mean()) < 1e-3
    np.testing.assert_array_equal(tof(depth, 1)[0], measured)
    assert (confidence[np.isnan(measured)] == 0).all()


def test_pixels_fly_between_two_surfaces():
    depth = np.full(SHAPE, 1, np.float32)
    depth[:, 40:] = 3
    measured, _ = tof(depth, 0)
    between = (measured > 1.2) & (measured < 2.8)
    assert between.any()
    assert not between[:, :39].any()
    assert not between[:, 41:].any()


def test_blobs_cover_the_share_asked_for():
    mask = blobs((200, 200), 0.1, np.random.default_rng(0))
    assert mask.mean() == pytest.approx(0.1, abs=0.01)


def test_withheld_pixels_are_gone_from_the_frame_and_kept_as_truth():
    depth = np.random.default_rng(0).uniform(1, 2, SHAPE).astype(np.float32)
    frame = Frame(np.zeros(SHAPE, np.uint8), depth, Intrinsics(50, 50, 40, 30),
                  np.ones(SHAPE, np.float32))
    rest, truth = withheld(frame, 3)
    hidden = np.isfinite(truth)
    assert hidden.mean() == pytest.approx(WITHHELD, abs=0.01)
    np.testing.assert_array_equal(truth[hidden], depth[hidden])
    assert np.isnan(rest.depth[hidden]).all()
    assert (rest.confidence[hidden] == 0).all()
    np.testing.assert_array_equal(rest.depth[~hidden], depth[~hidden])
