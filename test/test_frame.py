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
"""Frames refuse what is malformed, and measuring turns the rest into inverse depth."""

import numpy as np
import pytest

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.observation import measure, noise
from graph_depth_refiner.frame import Frame, Intrinsics

CAMERA = Intrinsics(fx=100.0, fy=100.0, cx=4.0, cy=3.0)
GOOD = {
    'image': np.zeros((6, 8, 3), np.uint8), 'depth': np.ones((6, 8), np.float32),
    'intrinsics': CAMERA, 'confidence': np.ones((6, 8), np.float32)}


@pytest.mark.parametrize('field, value, complaint', [
    ('depth', np.ones((6, 8, 1), np.float32), 'depth: expected shape (H, W)'),
    ('depth', np.ones((6, 8), np.uint16), 'depth: expected floating-point metres, got uint16'),
    ('depth', np.ones((0, 8), np.float32), 'got (0, 8)'),
    ('depth', [[1.0]], 'depth: expected a numpy array, got list'),
    ('image', np.zeros((6, 9), np.uint8), 'image: expected shape (6, 8) or (6, 8, 3), got (6, 9)'),
    ('image', np.zeros((6, 8), np.int64), 'image: expected uint8, uint16 or float'),
    ('confidence', np.ones((8, 6), np.float32), 'confidence: expected shape (6, 8), got (8, 6)'),
    ('confidence', np.full((6, 8), 2.0), 'confidence: expected values from 0 to 1, got 2 to 2'),
    ('confidence', np.full((6, 8), np.nan), 'confidence: expected values from 0 to 1, got nan'),
    ('intrinsics', (1, 1, 0, 0), 'intrinsics: expected Intrinsics, got tuple'),
    ('stamp', float('nan'), 'stamp: expected finite seconds, got nan'),
    ('pose', np.eye(3), 'pose: expected a finite matrix (4, 4), got (3, 3)'),
])
def test_malformed_frames_are_refused_by_name(field, value, complaint):
    with pytest.raises(ValueError) as refusal:
        Frame(**{**GOOD, field: value})
    assert complaint in str(refusal.value)


@pytest.mark.parametrize('values, complaint', [
    ((0.0, 1.0, 0.0, 0.0), 'intrinsics.fx: expected a positive number, got 0.0'),
    ((1.0, -1.0, 0.0, 0.0), 'intrinsics.fy: expected a positive number, got -1.0'),
    ((1.0, 1.0, float('inf'), 0.0), 'intrinsics.cx: expected a finite number, got inf'),
    ((1e30, 1.0, 0.0, 0.0), 'intrinsics: expected pixels from 1e-09 to 1e+09, got'),
    ((1.0, 1.0, 0.0, 0.0, -0.1), 'intrinsics.baseline: expected a number of at least 0'),
])
def test_malformed_intrinsics_are_refused_by_name(values, complaint):
    with pytest.raises(ValueError) as refusal:
        Intrinsics(*values)
    assert complaint in str(refusal.value)


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
