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
from scenes import ramp_planes, run

from graph_depth_refiner.core.resolution import half, Level, scale_of
from graph_depth_refiner.frame import Intrinsics


@pytest.mark.parametrize('scale', [2, 4])
def test_a_plane_is_upsampled_exactly(kernels, scale):
    # the middle of block c is at scale c + (scale - 1) / 2, and slopes are per pixel
    large = ramp_planes((24, 40))
    middle = (scale - 1) / 2
    small = large[:, ::scale, ::scale].copy()
    small[0] += (2e-3 - 1e-3) * middle
    small[1:] *= scale
    assert np.allclose(run(
        kernels, kernels.upsample_planes, small, (24, 40), scale), large, atol=1e-6)


def test_a_block_takes_the_side_of_most_of_its_pixels(kernels):
    d = np.array([[0.5, 0.502], [0.498, 1.0]], np.float32)  # three of one surface, one beyond
    ones = np.ones((2, 2), np.float32)
    merged, weight = run(kernels, kernels.merge_blocks, d, ones, 0.01)
    assert np.allclose(merged, 0.5) and np.allclose(weight, 0.75)
    merged, weight = run(kernels, kernels.merge_blocks, d, 0 * ones, 0.01)
    assert merged == 0 and weight == 0


def test_variants_agree(variants):
    rng = np.random.default_rng(0)
    d = rng.uniform(0.4, 0.6, (31, 45)).astype(np.float32)
    m = (rng.random(d.shape) * (rng.random(d.shape) > 0.3)).astype(np.float32)
    for one, two in zip(*(run(k, k.merge_blocks, d, m, 0.05) for k in variants)):
        assert np.allclose(one, two, atol=1e-6)
    x = rng.random((3, 15, 22)).astype(np.float32)
    assert np.allclose(
        *(run(k, k.upsample_planes, x, (31, 45), 2) for k in variants), atol=1e-6)


def test_halving_halves_the_camera(kernels):
    # the middle of the first two columns, 0.5, is column 0 of the half
    ones = kernels.array(np.ones((20, 40), np.float32))
    color = kernels.array(np.zeros((3, 20, 40), np.uint8))
    level = half(kernels, Level(
        ones, ones, color, ones, ones, 1e-3, Intrinsics(100, 90, 20.5, 10.5)))
    assert level.intrinsics == Intrinsics(50, 45, 10, 5)
    assert level.d.shape == level.grey.shape == level.color.shape[1:] == (10, 20)


@pytest.mark.parametrize('wanted, shape, scale', [
    (0, (240, 320), 1), (0, (480, 640), 2), (0, (720, 1280), 4), (1, (480, 640), 1),
    (4, (480, 640), 4), (4, (20, 20), 1)])
def test_scale_by_size(wanted, shape, scale):
    assert scale_of(wanted, shape) == scale
