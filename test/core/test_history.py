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
"""What is carried from frame to frame: when it goes on, when it starts anew, what it learns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.downsampling import downsample_image
from graph_depth_refiner.core.history import continues
from graph_depth_refiner.core.kernels import select
from graph_depth_refiner.core.observation import observe
from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.refiner import DepthRefiner

SHAPE = (96, 128)
CAMERA = Intrinsics(120.0, 120.0, 64.0, 48.0)
SHARE = 5e-3


def wall(number, image_seed=0, metres=2.0, stamp=None):
    """Return a frame of a textured wall with noise of half a percent."""
    texture = np.random.default_rng(image_seed).integers(0, 255, SHAPE, np.uint8)
    noise = np.random.default_rng(100 + number).standard_normal(SHAPE)
    depth = (metres * (1 + SHARE * noise)).astype(np.float32)
    return Frame(texture, depth, CAMERA, stamp=number / 30 if stamp is None else stamp)


def refiner_of(k, **values):
    return DepthRefiner(RefinerConfig().with_values(backend=k.name, **values), device='cpu')


def after(k, number, **values):
    refiner = refiner_of(k, **values)
    for one in range(number):
        refined = refiner.refine(wall(one))
    return refiner, refined


def test_the_first_frame_has_no_history(kernels):
    refiner, refined = after(kernels, 1)
    assert refined.history == 0 and refined.reset == 'first frame'
    assert refined.history_frames == 1
    assert kernels.numpy(refiner.state.history.frames) == pytest.approx(1)


def test_history_goes_on(kernels):
    refiner, refined = after(kernels, 6)
    assert refined.history > 0.95 and refined.reset == ''
    assert 5 < refined.history_frames <= 6
    # the mean of six frames of half a percent, of which each errs on its own
    mean = kernels.numpy(refiner.state.history.d)
    assert np.median(np.abs(mean / 0.5 - 1)) == pytest.approx(
        SHARE * 0.6745 / 6 ** 0.5, rel=0.15)


def test_the_noise_is_learned(kernels):
    # nothing tells a share from a floor on a wall, but their sum at its depth is known
    refiner, refined = after(kernels, 8)
    floor, share = refined.noise
    assert floor + 0.5 * share == pytest.approx(0.5 * SHARE, rel=0.1)
    assert refiner.state.noise.frames > 4


def test_the_noise_of_a_matcher_is_not_learned(kernels):
    camera = replace(CAMERA, baseline=1.0)
    refiner = refiner_of(kernels)
    for number in range(4):
        refined = refiner.refine(replace(wall(number), intrinsics=camera))
    assert refined.history > 0.9
    assert refined.noise == (pytest.approx(0.5 / 120), 0)


def test_without_memory_every_frame_is_the_first(kernels):
    refined = after(kernels, 3, **{'temporal.enabled': False})[1]
    assert refined.history == 0 and refined.history_frames == 1


def test_an_unknown_motion_starts_anew(kernels):
    refiner, _ = after(kernels, 3)
    refined = refiner.refine(wall(3, image_seed=7))
    # nothing is left of the image, whatever motion is taken for the best
    assert refined.history == 0 and refined.reset in ('motion unknown', 'scene change')
    assert refiner.refine(wall(4, image_seed=7)).history > 0.9


def test_another_scene_starts_anew(kernels):
    # told to stand still, the motion is known, but nothing of the scene is left
    refiner, _ = after(kernels, 3, **{'temporal.motion': 'none'})
    refined = refiner.refine(wall(3, image_seed=7, metres=0.7))
    assert refined.history == 0 and refined.reset == 'scene change'


@pytest.mark.parametrize('change, goes_on', [
    ({}, True), ({'stamp': 0.0}, False),
    ({'intrinsics': replace(CAMERA, fx=121.0)}, False)])
def test_a_stream_is_of_one_camera_and_of_rising_stamps(change, goes_on):
    k = select('cpu', 'fused')
    refiner, _ = after(k, 2)
    frame = replace(wall(2), **change)
    obs = observe(k, frame, refiner.config)
    guide = downsample_image(k, obs, refiner.config)
    assert continues(refiner.state.history, obs, guide) is goes_on
    assert not continues(None, obs, guide)


def test_another_size_is_another_stream():
    refiner, _ = after(select('cpu', 'fused'), 2)
    small = wall(2)
    small = Frame(small.image[:80].copy(), small.depth[:80].copy(), CAMERA, stamp=1.0)
    assert refiner.refine(small).history == 0
