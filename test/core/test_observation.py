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
"""From frames to inverse depth, weights, noise and guides."""

import numpy as np
import pytest

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.observation import measure, noise
from graph_depth_refiner.frame import Frame, Intrinsics

GOOD = {
    'image': np.zeros((6, 8, 3), np.uint8), 'depth': np.ones((6, 8), np.float32),
    'intrinsics': Intrinsics(fx=100.0, fy=100.0, cx=4.0, cy=3.0),
    'confidence': np.ones((6, 8), np.float32)}


def test_every_kind_of_invalid_depth_becomes_zero():
    depth = np.full((6, 8), 2.0, np.float32)
    depth[0, :5] = [np.nan, np.inf, -np.inf, 0.0, -1.0]
    measured = measure(Frame(**{**GOOD, 'depth': depth}), RefinerConfig())
    assert (measured.d[0, :5] == 0).all() and (measured.m[0, :5] == 0).all()
    assert (measured.d[1:] == 0.5).all() and (measured.m[1:] == 1).all()


def test_unit_is_a_pixel_of_disparity_where_the_baseline_is_known():
    stereo = Intrinsics(100.0, 100.0, 4.0, 3.0, baseline=0.5)
    measured = measure(Frame(**{**GOOD, 'intrinsics': stereo}), RefinerConfig())
    assert measured.unit == pytest.approx(1 / 50)


def test_noise_of_a_noisy_plane():
    random = np.random.default_rng(1)
    ramp = 0.5 + 0.001 * np.arange(200)[None, :] + np.zeros((100, 1))
    found = noise((ramp + random.normal(0, 0.01, ramp.shape)).astype(np.float32))
    assert found == pytest.approx(0.01, rel=0.05)


def test_noise_of_a_sensor_that_rounds_is_not_none():
    # steps of 0.01, each 4 px wide: most neighbours are equal, yet the depth is uncertain by
    # the rounding, 0.01 / sqrt(12), give or take what a window of 5 px sees of it
    ramp = np.round(np.arange(200)[None, :] / 4 + np.zeros((100, 1))) * 0.01 + 0.5
    assert noise(ramp.astype(np.float32)) == pytest.approx(0.01 / 12 ** 0.5, rel=0.3)


@pytest.mark.parametrize('image', [
    np.full((6, 8), 51, np.uint8), np.full((6, 8, 3), 51, np.uint8),
    np.full((6, 8), 13107, np.uint16), np.full((6, 8, 3), 0.2), np.full((6, 8), 0.2, np.float32)])
@pytest.mark.parametrize('color', [False, True])
def test_guides_of_every_kind_of_image(image, color):
    measured = measure(Frame(**{**GOOD, 'image': image}),
                       RefinerConfig().with_values(**{'graph.color': color}))
    assert measured.guide.shape == ((3, 6, 8) if color else (6, 8))
    assert measured.guide.dtype == np.float32
    np.testing.assert_allclose(measured.guide, 0.2, atol=1e-6)
