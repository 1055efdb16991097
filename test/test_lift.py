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
"""Planes are exact at any resolution; halving keeps surfaces apart."""

from __future__ import annotations

import numpy as np
import pytest

from graph_depth_refiner.core import resolution as plain
from graph_depth_refiner.core import resolution_numba as fused
from graph_depth_refiner.frame import Intrinsics

twins = pytest.mark.parametrize('lift', [plain, fused], ids=['plain', 'fused'])


def plane(height, width):
    y, x = np.mgrid[:height, :width].astype(np.float32)
    return np.stack([0.5 + 2e-3 * x - 1e-3 * y, np.full_like(x, 2e-3), np.full_like(x, -1e-3)])


@twins
@pytest.mark.parametrize('scale', [2, 4])
def test_a_plane_is_lifted_exactly(lift, scale):
    # the middle of block c is at scale c + (scale - 1) / 2, and slopes are per pixel
    large = plane(24, 40)
    middle = (scale - 1) / 2
    small = large[:, ::scale, ::scale].copy()
    small[0] += (2e-3 - 1e-3) * middle
    small[1:] *= scale
    assert np.allclose(lift.upsample_planes(small, (24, 40), scale), large, atol=1e-6)


@twins
def test_a_block_takes_the_side_of_most_of_its_pixels(lift):
    d = np.array([[0.5, 0.502], [0.498, 1.0]], np.float32)  # three of one surface, one beyond
    merged, weight = lift.merge_blocks(d, np.ones((2, 2), np.float32), 0.01)
    assert np.allclose(merged, 0.5) and np.allclose(weight, 0.75)
    merged, weight = lift.merge_blocks(d, np.zeros((2, 2), np.float32), 0.01)
    assert merged == 0 and weight == 0


def test_twins_agree():
    rng = np.random.default_rng(0)
    d = rng.uniform(0.4, 0.6, (31, 45)).astype(np.float32)
    m = (rng.random(d.shape) * (rng.random(d.shape) > 0.3)).astype(np.float32)
    for one, two in zip(plain.merge_blocks(d, m, 0.05), fused.merge_blocks(d, m, 0.05)):
        assert np.allclose(one, two, atol=1e-6)
    x = rng.random((3, 15, 22)).astype(np.float32)
    assert np.allclose(plain.upsample_planes(x, (31, 45), 2), fused.upsample_planes(x, (31, 45), 2), atol=1e-6)


def test_halving_halves_the_camera():
    # the middle of the first two columns, 0.5, is column 0 of the half
    k = Intrinsics(100, 90, 20.5, 10.5)
    ones = np.ones((20, 40), np.float32)
    grey = ones * 0.5
    level = plain.Level(grey, grey, np.zeros((3, 20, 40), np.uint8), ones, ones, 1e-3, k)
    half = plain.half(plain, level)
    assert half.intrinsics == Intrinsics(50, 45, 10, 5)
    assert half.d.shape == half.grey.shape == half.color.shape[1:] == (10, 20)


@pytest.mark.parametrize('wanted, shape, scale', [
    (0, (240, 320), 1), (0, (480, 640), 2), (0, (720, 1280), 4), (1, (480, 640), 1),
    (4, (480, 640), 4), (4, (20, 20), 1)])
def test_scale_by_size(wanted, shape, scale):
    assert plain.scale_of(wanted, shape) == scale
