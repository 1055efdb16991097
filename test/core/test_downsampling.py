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
"""Solving at a fraction of the resolution: blocks keep surfaces apart."""

from __future__ import annotations

import numpy as np
import pytest
from scenes import ramp, run

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.downsampling import downsample, downsample_image, scale_of
from graph_depth_refiner.core.noise import NoiseModel
from graph_depth_refiner.core.observation import observe
from graph_depth_refiner.frame import Frame, Intrinsics

NOISE = NoiseModel(1e-3, 2e-3, 1e-3)


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


@pytest.mark.parametrize('scale', [1, 2, 4])
def test_a_level_has_units_of_the_noise(kernels, scale):
    d = np.full((40, 60), 0.5, np.float32)
    level = downsample(kernels, kernels.array(d), kernels.array(9 * d / 0.5), NOISE, scale)
    assert tuple(level.d.shape) == (40 // scale, 60 // scale)
    assert kernels.numpy(level.d) == pytest.approx(0.5)
    assert kernels.numpy(level.frames) == pytest.approx(9)
    # 1e-3 + 2e-3 * 0.5 once; after nine frames sqrt(0.1 + 0.9 / 9) of it
    assert level.unit == pytest.approx(2e-3)
    assert level.fused_unit == pytest.approx(2e-3 * 0.2 ** 0.5)
    assert kernels.numpy(level.sigma) == pytest.approx(2e-3 * 0.2 ** 0.5)


def test_a_level_of_nothing_is_nothing(kernels):
    none = kernels.array(np.zeros((8, 8), np.float32))
    level = downsample(kernels, none, none, NOISE, 2)
    assert not kernels.numpy(level.d).any() and not kernels.numpy(level.frames).any()
    assert level.unit > 0 and level.fused_unit > 0


def test_a_slope_keeps_its_mean(kernels):
    d = ramp((40, 60), 0.5, 1e-3, 5e-4)
    level = downsample(kernels, kernels.array(d), kernels.array(np.ones_like(d)), NOISE, 2)
    # the middle of cell c is at 2 c + 0.5
    expected = ramp((20, 30), 0.5 + 0.5 * 1.5e-3, 2e-3, 1e-3)
    assert np.allclose(kernels.numpy(level.d), expected, atol=1e-6)


def guide_of(k, shape, scale, image=None):
    image = np.full((*shape, 3), 51, np.uint8) if image is None else image
    config = RefinerConfig().with_values(**{'solver.scale': scale})
    frame = Frame(image, np.ones(shape, np.float32), Intrinsics(100, 90, 20.5, 10.5))
    return downsample_image(k, observe(k, frame, config), config)


def test_halving_halves_the_camera(kernels):
    # the middle of the first two columns, 0.5, is column 0 of the half
    guide = guide_of(kernels, (40, 60), 2)
    assert guide.intrinsics == Intrinsics(50, 45, 10, 5) and guide.scale == 2
    assert tuple(guide.grey.shape) == tuple(guide.color.shape[1:]) == (20, 30)
    assert kernels.numpy(guide.grey) == pytest.approx(0.2)


def test_odd_sizes_lose_a_row(kernels):
    guide = guide_of(kernels, (41, 63), 2)
    assert tuple(guide.guide.shape) == (20, 31)


@pytest.mark.parametrize('wanted, shape, scale', [
    (0, (240, 320), 1), (0, (480, 640), 2), (0, (720, 1280), 4), (1, (480, 640), 1),
    (4, (480, 640), 4), (4, (20, 20), 1)])
def test_scale_by_size(wanted, shape, scale):
    assert scale_of(wanted, shape) == scale
