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
"""The start of a single frame: what the configuration switches on and off."""

import numpy as np
import pytest

from graph_depth_refiner.config import preset
from graph_depth_refiner.core.kernels import select
from graph_depth_refiner.core.observation import measure
from graph_depth_refiner.core.start import begin, median
from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.refiner import DepthRefiner

SHAPE = (40, 60)
CAMERA = Intrinsics(100.0, 100.0, 30.0, 20.0, baseline=0.1)  # 10 px m: disparity 20 is 0.5 m


def scene():
    """Return a frame of a box before a wall, occluded and wrongly matched in parts."""
    rng = np.random.default_rng(2)
    disparity = np.full(SHAPE, 20, np.float32)
    disparity[:, 35:50] = 30
    image = np.where(disparity > 25, 0.8, 0.3) + 0.02 * rng.standard_normal(SHAPE)
    confidence = np.ones(SHAPE, np.float32)
    confidence[:, 25:35] = 0  # hidden by the box
    truth = disparity.copy()
    disparity[:, 25:35] = 28
    disparity[3, 3] = 90  # a speckle
    return Frame(image, 10 / disparity, CAMERA, confidence), 10 / truth


def started(name, frame):
    """Return the start of a preset and what it was given."""
    config, k = preset(name), select('cpu', 'fused')
    measured = measure(frame, config)
    weights = k.build_graph(measured.guide, config)
    return begin(k, measured, weights, config, frame.image), measured, weights


def test_paper_is_the_plain_model():
    start, measured, weights = started('paper', scene()[0])
    assert start.weights is weights
    np.testing.assert_array_equal(start.m, measured.m)
    np.testing.assert_allclose(start.d[measured.m > 0], measured.d[measured.m > 0], rtol=1e-6)
    assert (start.planes[1:] == 0).all() and (start.planes[0] > 0).all()


def test_stereo_fills_the_occlusion_and_drops_the_speckle():
    frame, truth = scene()
    start, measured, _ = started('stereo', frame)
    np.testing.assert_allclose(start.planes[0], 1 / truth, rtol=1e-4)
    assert start.m[3, 3] == 0 and (start.m[:, 25:35] == 0).all()
    assert start.m.sum() > 0.8 * measured.m.sum()


def test_stereo_keeps_the_graph_it_was_given():
    start, _, weights = started('stereo', scene()[0])
    again = started('stereo', scene()[0])[2]
    np.testing.assert_array_equal(weights, again)
    assert start.weights is not weights


def test_stereo_refines_the_frame():
    frame, truth = scene()
    refined = DepthRefiner(preset('stereo')).refine(frame)
    np.testing.assert_allclose(refined.depth, truth, rtol=0.01)


def test_one_reliable_pixel_is_enough():
    frame = scene()[0]
    confidence = np.zeros(SHAPE, np.float32)
    confidence[20, 30] = 1
    for name in ('stereo', 'paper'):
        start, _, _ = started(name, Frame(frame.image, frame.depth, CAMERA, confidence))
        np.testing.assert_allclose(start.planes[0], 1 / frame.depth[20, 30], rtol=1e-5)


@pytest.mark.parametrize('factor', [100.0, 0.01])
def test_the_start_scales_with_the_scene(factor):
    frame = scene()[0]
    one = started('stereo', frame)[0]
    far = Frame(frame.image, frame.depth * factor, Intrinsics(
        100.0, 100.0, 30.0, 20.0, baseline=0.1 * factor), frame.confidence)
    other = started('stereo', far)[0]
    np.testing.assert_allclose(other.planes * factor, one.planes, rtol=1e-4, atol=1e-9)
    np.testing.assert_array_equal(one.m, other.m)


def test_median_removes_a_single_pixel_and_leaves_slopes():
    planes = np.ones((3, 5, 5), np.float32)
    planes[0, 2, 2] = 9
    assert (median(planes) == 1).all() and planes[0, 2, 2] == 9
