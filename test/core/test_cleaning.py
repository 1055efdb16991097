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
"""Cleaning of a matcher's depth: what the configuration switches on and off."""

import numpy as np
import pytest
from scenes import ramp_planes

from graph_depth_refiner.config import preset, RefinerConfig
from graph_depth_refiner.core.cleaning import (
    clean,
    extend_planes,
    visible_in_right,
    without_rejected,
)
from graph_depth_refiner.core.downsampling import downsample, downsample_image, Guide, Level
from graph_depth_refiner.core.history import Present, start_noise
from graph_depth_refiner.core.observation import observe
from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.refiner import DepthRefiner

SHAPE = (40, 60)
CAMERA = Intrinsics(100.0, 100.0, 30.0, 20.0, baseline=0.1)  # 10 px m: disparity 20 is 0.5 m


def scene(shape=SHAPE):
    """Return a frame of a box before a wall, occluded and wrongly matched in parts."""
    rng = np.random.default_rng(2)
    times = shape[0] // SHAPE[0]
    disparity = np.full(SHAPE, 20, np.float32)
    disparity[:, 35:50] = 30
    confidence = np.ones(SHAPE, np.float32)
    confidence[:, 25:35] = 0  # hidden by the box
    truth = np.kron(disparity, np.ones((times, times), np.float32))
    disparity[:, 25:35] = 28
    disparity[3, 3] = 90  # a speckle
    disparity, confidence = (
        np.kron(one, np.ones((times, times), np.float32)) for one in (disparity, confidence))
    image = np.where(truth > 25, 0.8, 0.3) + 0.02 * rng.standard_normal(shape)
    return Frame(image, 10 / disparity, CAMERA, confidence), 10 / truth


def level_of(k, frame, config):
    """Return what a frame is before it is cleaned, and its image."""
    obs = observe(k, frame, config)
    guide = downsample_image(k, obs, config)
    return downsample(k, obs.d, obs.m, start_noise(k, obs, config), guide.scale), guide


def test_everything_off_changes_nothing(kernels):
    level, guide = level_of(kernels, scene()[0], RefinerConfig())
    assert clean(kernels, level, guide, RefinerConfig()) is level
    planes = kernels.array(ramp_planes(SHAPE))
    assert extend_planes(kernels, planes, level, guide, RefinerConfig()) is planes
    present = Present(level.d, level.frames, None, np.eye(4), 0.0, '')
    assert without_rejected(kernels, present, level, level, 1) is present


def test_paper_fills_all_and_keeps_every_weight(kernels):
    k, config = kernels, preset('paper')
    level, guide = level_of(k, scene()[0], config)
    cleaned = clean(k, level, guide, config)
    np.testing.assert_array_equal(k.numpy(cleaned.frames), k.numpy(level.frames))
    measured = k.numpy(level.frames) > 0
    np.testing.assert_allclose(
        k.numpy(cleaned.d)[measured], k.numpy(level.d)[measured], rtol=1e-6)
    assert (k.numpy(cleaned.d) > 0).all()


@pytest.mark.parametrize('scale', [1, 2])
def test_stereo_fills_the_occlusion_and_drops_the_speckle(kernels, scale):
    # at half the resolution the same scene has twice the disparity, and is cleaned alike
    k, config = kernels, preset('stereo', **{'solver.scale': scale})
    frame, truth = scene((SHAPE[0] * scale, SHAPE[1] * scale))
    level, guide = level_of(k, frame, config)
    cleaned = clean(k, level, guide, config)
    np.testing.assert_allclose(k.numpy(cleaned.d), 1 / truth[::scale, ::scale], rtol=1e-4)
    frames = k.numpy(cleaned.frames)
    assert frames[3, 3] == 0 and (frames[:, 25:35] == 0).all()
    assert frames.sum() > 0.8 * k.numpy(level.frames).sum()


@pytest.mark.parametrize('factor', [100.0, 0.01])
def test_cleaning_scales_with_the_scene(kernels, factor):
    k, config = kernels, preset('stereo', **{'solver.scale': 1})
    frame = scene()[0]
    far = Frame(frame.image, frame.depth * factor, Intrinsics(
        100.0, 100.0, 30.0, 20.0, baseline=0.1 * factor), frame.confidence)
    one, other = (clean(k, *level_of(k, a, config), config) for a in (frame, far))
    np.testing.assert_allclose(k.numpy(other.d) * factor, k.numpy(one.d), rtol=1e-4)
    np.testing.assert_array_equal(k.numpy(one.frames), k.numpy(other.frames))


def test_one_reliable_pixel_is_enough(kernels):
    frame = scene()[0]
    confidence = np.zeros(SHAPE, np.float32)
    confidence[20, 30] = 1
    frame = Frame(frame.image, frame.depth, CAMERA, confidence)
    for name in ('stereo', 'paper'):
        config = preset(name)
        cleaned = clean(kernels, *level_of(kernels, frame, config), config)
        np.testing.assert_allclose(
            kernels.numpy(cleaned.d), 1 / frame.depth[20, 30], rtol=1e-5)


@pytest.mark.parametrize('scale', [1, 2])
def test_what_a_box_hides_from_the_right_camera_is_not_visible(scale):
    # with the box 10 px nearer from column 30 on, x - d of columns 20 to 29 of the wall is that
    # of columns 30 to 39 of the box; an offset of all disparities changes nothing
    z = np.full((2, 60), 10 * scale, np.float32)
    z[:, 30:50] = 20 * scale
    expected = np.ones((2, 60), bool)
    expected[:, 20:30] = False
    for offset in (0, 100):
        found = visible_in_right(z + offset, np.ones(z.shape, bool), scale)
        np.testing.assert_array_equal(found, expected)
    # what is not reliable hides nothing
    assert visible_in_right(z, z < 15 * scale, scale)[:, :30].all()


def test_what_was_rejected_leaves_measurement_and_frames(kernels):
    k = kernels
    d, frames = np.ones((5, 7), np.float32), np.full((5, 7), 4, np.float32)
    present = Present(k.array(d), k.array(frames), None, np.eye(4), 0.5, '')
    before = Level(k.array(d[:2, :3]), k.array(frames[:2, :3]), None, 1.0, 1.0)
    left = frames[:2, :3].copy()
    left[1, 2] = 0
    after = Level(before.d, k.array(left), None, 1.0, 1.0)
    found = without_rejected(k, present, before, after, 2)
    expected = d.copy()
    expected[2:, 4:] = 0  # the cell, and the pixels beyond the last whole one
    np.testing.assert_array_equal(k.numpy(found.d), expected)
    np.testing.assert_array_equal(k.numpy(found.frames), 4 * expected)


def test_a_slanted_surface_goes_on_into_what_was_filled(kernels):
    k = kernels
    planes, frames = ramp_planes(SHAPE, 0.5, 2e-3, -1e-3), np.ones(SHAPE, np.float32)
    frames[:, 20:24] = 0
    filled = planes.copy()
    filled[:, frames == 0] = np.array([[0.6], [0.0], [0.0]], np.float32)
    level = Level(k.array(filled[0]), k.array(frames), None, 1.0, 1.0, filled=True)
    guide = Guide(None, None, k.array(np.full((1, *SHAPE), 99, np.uint8)), CAMERA, 1)
    found = k.numpy(extend_planes(k, k.array(filled), level, guide, preset('stereo')))
    np.testing.assert_allclose(found, planes, rtol=1e-4)


def test_stereo_refines_the_frame_and_remembers_no_wrong_match():
    frame, truth = scene((2 * SHAPE[0], 2 * SHAPE[1]))
    refiner = DepthRefiner(preset('stereo'))
    np.testing.assert_allclose(refiner.refine(frame).depth, truth, rtol=0.01)
    frames = refiner.state.history.frames
    assert (frames[6:8, 6:8] == 0).all() and (frames[:, 50:70] == 0).all()
    assert frames[40, 20] > 0
