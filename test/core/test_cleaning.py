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
"""Cleaning of a matcher's depth: what is dropped, filled and outvoted, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

from graph_depth_refiner.config import preset, RefinerConfig
from graph_depth_refiner.core.cleaning import clean, reliable_pixels
from graph_depth_refiner.core.downsampling import downsample, downsample_image
from graph_depth_refiner.core.history import start_noise
from graph_depth_refiner.core.observation import observe
from graph_depth_refiner.frame import Frame, Intrinsics

SHAPE = (40, 60)
BASELINE = 0.1  # at 100 px: 10 px m, disparity 20 is 0.5 m


def scene(factor=1.0):
    """Return a frame of a box before a wall, occluded and wrongly matched in parts, and truth."""
    rng = np.random.default_rng(2)
    disparity = np.full(SHAPE, 20, np.float32)
    disparity[:, 35:50] = 30
    image = np.where(disparity > 25, 0.8, 0.3) + 0.02 * rng.standard_normal(SHAPE)
    confidence = np.ones(SHAPE, np.float32)
    confidence[:, 25:35] = 0  # hidden by the box
    truth = disparity.copy()
    disparity[:, 25:35] = 28
    disparity[3, 3] = 90  # a speckle
    camera = Intrinsics(100.0, 100.0, 30.0, 20.0, factor * BASELINE)
    return Frame(image, 10 * factor / disparity, camera, confidence), 10 * factor / truth


def cleaned(k, frame, config):
    """Return a level as it comes, and cleaned."""
    obs = observe(k, frame, config)
    guide = downsample_image(k, obs, config)
    level = downsample(k, obs.d, obs.m, start_noise(k, obs, config), guide.scale)
    return level, clean(k, level, guide, config)


def test_by_default_nothing_is_cleaned(kernels):
    level, same = cleaned(kernels, scene()[0], RefinerConfig())
    assert same is level


def test_paper_only_fills(kernels):
    level, filled = cleaned(kernels, scene()[0], preset('paper'))
    known = kernels.numpy(level.frames) > 0
    assert np.allclose(kernels.numpy(filled.d)[known], kernels.numpy(level.d)[known], rtol=1e-6)
    assert (kernels.numpy(filled.frames) == kernels.numpy(level.frames)).all()
    assert (kernels.numpy(filled.d) > 0).all()


def test_stereo_fills_the_occlusion_and_drops_the_speckle(kernels):
    frame, truth = scene()
    level, found = cleaned(kernels, frame, preset('stereo'))
    np.testing.assert_allclose(kernels.numpy(found.d), 1 / truth, rtol=1e-4)
    frames = kernels.numpy(found.frames)
    assert frames[3, 3] == 0 and (frames[:, 25:35] == 0).all()
    assert frames.sum() > 0.8 * kernels.numpy(level.frames).sum()


@pytest.mark.parametrize('name', ['stereo', 'paper'])
def test_one_reliable_pixel_is_enough(kernels, name):
    frame = scene()[0]
    confidence = np.zeros(SHAPE, np.float32)
    confidence[20, 30] = 1
    frame = Frame(frame.image, frame.depth, frame.intrinsics, confidence)
    found = cleaned(kernels, frame, preset(name))[1]
    np.testing.assert_allclose(kernels.numpy(found.d), 1 / frame.depth[20, 30], rtol=1e-5)


@pytest.mark.parametrize('factor', [100.0, 0.01])
def test_cleaning_scales_with_the_scene(kernels, factor):
    one, other = (cleaned(kernels, scene(by)[0], preset('stereo'))[1] for by in (1.0, factor))
    np.testing.assert_allclose(
        factor * kernels.numpy(other.d), kernels.numpy(one.d), rtol=1e-4, atol=1e-9)
    np.testing.assert_array_equal(kernels.numpy(one.frames), kernels.numpy(other.frames))


def test_if_nothing_is_reliable_all_that_is_known_is():
    z, frames = np.ones(SHAPE, np.float32), np.full(SHAPE, 0.1, np.float32)
    frames[0] = 0
    assert (reliable_pixels(z, frames, 1, preset('stereo')) == (frames > 0)).all()
