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
"""Frames refuse what is malformed."""

import numpy as np
import pytest

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
