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
"""An image of another camera, brought into the depth camera."""

import numpy as np
import pytest

from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.messages import kernels
from graph_depth_refiner.messages.registration import registered

DEPTH_CAMERA = Intrinsics(60.0, 60.0, 31.5, 23.5)
BASELINE = 0.1  # metres, the image's camera right of the depth camera
NEAR, FAR = 1.0, 2.0  # metres
HALF = 0.2  # metres, half the side of a square plate before a wall
PLATE, PER_METRE, MIDDLE = 250, 40, 100  # colours: of the plate, and along the wall

MOTION = np.eye(4)
MOTION[0, 3] = -BASELINE


def scene(camera, shape, x):
    """Return depth and colours of plate and wall from a pinhole at (x, 0, 0)."""
    v, u = np.mgrid[:shape[0], :shape[1]]
    right, down = (u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy
    plate = (np.abs(x + NEAR * right) < HALF) & (np.abs(NEAR * down) < HALF)
    wall = MIDDLE + PER_METRE * (x + FAR * right)
    return np.where(plate, NEAR, FAR).astype(np.float32), np.where(plate, PLATE, wall)


DEPTH, COLORS = scene(DEPTH_CAMERA, (48, 64), 0.0)


@pytest.mark.parametrize('camera, shape', [
    (Intrinsics(60.0, 60.0, 31.5, 23.5), (48, 64)),
    (Intrinsics(180.0, 180.0, 119.5, 71.5), (144, 240))])  # finer, and of a wider view
@pytest.mark.parametrize('dtype, factor', [(np.uint8, 1), (np.uint16, 200)])
def test_colours_belong_to_what_is_seen_in_the_depth(camera, shape, dtype, factor):
    image = (scene(camera, shape, BASELINE)[1] * factor).astype(dtype)
    found = registered(image, DEPTH, MOTION, DEPTH_CAMERA, camera)
    assert (found.dtype, found.shape) == (dtype, DEPTH.shape)
    error = np.abs(found / factor - COLORS)
    # no wall in the colour of the plate, not even where the plate hides it from the image:
    # there it has the colour of the wall beside, at most 60 * 0.1 * (1/1 - 1/2) = 3 px away
    inside = np.ones(DEPTH.shape, bool)
    inside[:, :4] = False  # 60 * 0.1 / 2 = 3 px of the wall lie left of the image
    edge = _near_the_edge_of_the_plate()
    per_pixel = PER_METRE * FAR / DEPTH_CAMERA.fx
    assert error[(DEPTH == FAR) & inside & ~edge].max() < 4.5 * per_pixel
    assert error[(DEPTH == NEAR) & ~edge].max() < 1
    # and without the test of what is hidden it would be so
    unmoved = (COLORS != PLATE) & (np.roll(COLORS, 3, axis=1) == PLATE)
    assert unmoved.sum() > 20


def _near_the_edge_of_the_plate():
    """Return where bilinear samples mix both."""
    plate = DEPTH == NEAR
    mixed = np.zeros(DEPTH.shape, bool)
    for shift in (-1, 1):
        for axis in (0, 1):
            mixed |= np.roll(plate, shift, axis) != plate
    return mixed


def test_pixels_without_depth_take_a_colour_from_beside():
    depth = DEPTH.copy()
    depth[20:24, 5:9] = np.nan
    image = scene(DEPTH_CAMERA, (48, 64), BASELINE)[1].astype(np.uint8)
    found = registered(image, depth, MOTION, DEPTH_CAMERA, DEPTH_CAMERA)
    np.testing.assert_allclose(found[20:24, 5:9], COLORS[20:24, 5:9], atol=1.5)


def test_without_any_depth_the_guide_is_black():
    image = np.full((48, 64, 3), 9, np.uint8)
    assert not registered(
        image, np.zeros((48, 64), np.float32), MOTION, DEPTH_CAMERA, DEPTH_CAMERA).any()


def test_an_identity_changes_nothing():
    image = np.random.default_rng(0).integers(0, 255, (48, 64, 3), np.uint8)
    wall = np.full((48, 64), FAR, np.float32)
    np.testing.assert_array_equal(
        registered(image, wall, np.eye(4), DEPTH_CAMERA, DEPTH_CAMERA), image)


@pytest.mark.parametrize('seed', range(3))
def test_kernels_equal_their_reference(seed):
    rng = np.random.default_rng(seed)
    depth = rng.uniform(0.5, 4, (20, 31)).astype(np.float32)
    image = rng.integers(0, 255, (17, 29, 3), np.uint8)
    measured = rng.random(depth.shape) < 0.8
    turn = rng.normal(0, 0.05, 3)
    motion = np.array([[1, -turn[2], turn[1], 0.3], [turn[2], 1, -turn[0], -0.2],
                       [-turn[1], turn[0], 1, -1.0]])  # some pixels are behind the camera
    cameras = np.array([30.0, 30.0, 15, 10, 25.0, 26.0, 14, 8])
    results = []
    for make in (kernels.numba_kernels, kernels.numpy_kernels):
        colors = np.zeros((*depth.shape, 3), np.uint8)
        seen = make().project_colors(image, depth, measured, motion, cameras, colors)
        assert 0.05 < seen.mean() < 0.9
        make().spread_colors(depth, seen, colors)
        results.append((seen, colors))
    np.testing.assert_array_equal(*(one[0] for one in results))
    np.testing.assert_array_equal(*(one[1] for one in results))
