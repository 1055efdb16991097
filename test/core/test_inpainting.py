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
"""Filling of holes on analytic scenes."""

import numpy as np
import pytest
from scenes import ramp, run

from graph_depth_refiner.core.inpainting import fill_smoothly

SHAPE = (20, 30)


def grey(shape=SHAPE):
    """Return an image without any edge."""
    return np.full((3, *shape), 0.5, np.float32)


def slanted(uy=0.2):
    return ramp(SHAPE, 30.0, 0.05, uy)


def fill_occluded(k, z, reliable, color):
    return run(k, k.fill_occluded, z, reliable, color)


def test_a_hole_in_a_slanted_plane_is_filled_exactly(kernels):
    # opposite ends of every line through the hole differ by less than the slopes allowed, and
    # interpolating a plane along any line gives the plane
    z = slanted()
    reliable = np.ones(SHAPE, bool)
    reliable[6:13, 9:22] = False
    filled = fill_occluded(kernels, z * reliable, reliable, grey())
    np.testing.assert_allclose(filled, z, atol=1e-4)


def test_ground_at_the_lower_end_goes_on_along_its_rows(kernels):
    # above the hole the ground is farther, and nothing is below: three of five directions see
    # one side only, but left and right agree
    z = ramp(SHAPE, 10.0, 0.0, 0.3)
    reliable = np.ones(SHAPE, bool)
    reliable[10:, 5:25] = False
    filled = fill_occluded(kernels, z * reliable, reliable, grey())
    np.testing.assert_allclose(filled[18], z[18], rtol=1e-5)


def test_an_occlusion_takes_the_background(kernels):
    # foreground at 20 on the right, background at 10: 10 px are hidden left of the foreground
    z = np.full(SHAPE, 10, np.float32)
    z[:, 15:] = 20
    reliable = np.ones(SHAPE, bool)
    reliable[:, 5:15] = False
    assert (fill_occluded(kernels, z * reliable, reliable, grey())[:, 5:15] == 10).all()


def test_a_gap_that_is_no_occlusion_goes_by_colour(kernels):
    # a foreground on the left hides nothing on its right: each part of the gap takes the side
    # of its colour
    z = np.full(SHAPE, 30, np.float32)
    z[:, 22:] = 10
    reliable = np.ones(SHAPE, bool)
    reliable[:, 3:25] = False
    color = grey()
    color[:, :, 10:] = 0.9
    filled = fill_occluded(kernels, z * reliable, reliable, color)
    assert (filled[:, :10] == 30).all() and (filled[:, 10:] == 10).all()


def test_where_nobody_knows_it_is_nearly_the_mean(kernels):
    # 40 on the left, 10 on the right, nothing above or below, all of one colour: in the middle
    # both count the same, the first of them is 10, and 0.7 of the way to the mean of 25 is 20.5
    z = np.array([[40, 0, 10]], np.float32)
    filled = fill_occluded(kernels, z, z > 0, grey((1, 3)))
    assert filled[0, 1] == pytest.approx(20.5, rel=1e-6)


def test_the_rim_goes_on_with_its_slope(kernels):
    # slope b = 0.05, pulled towards 0 by the tenth of a full window that RIM_CAUTION adds:
    # rows in the middle have one full window of seven rows, hence 0.05 / 1.1
    z = slanted(0.0)
    reliable = np.ones(SHAPE, bool)
    reliable[:, :4] = False
    filled = fill_occluded(kernels, z * reliable, reliable, grey())
    expected = z[10, 4] - 0.05 / 1.1 * np.arange(4, 0, -1)
    np.testing.assert_allclose(filled[10, :4], expected, atol=1e-4)
    np.testing.assert_array_equal(filled[:, 4:], z[:, 4:])


def test_nothing_seen_is_0(kernels):
    reliable = np.zeros((3, 40), bool)
    reliable[0, 0] = True
    filled = fill_occluded(kernels, np.full((3, 40), 7, np.float32), reliable, grey((3, 40)))
    assert filled[1, 1] == 7 and filled[2, 20] == 0


def test_background_is_the_smaller_side(kernels):
    z = np.array([[9, 0, 4, 0, 6, 0], [0, 0, 0, 0, 0, 0]], np.float32)
    filled = run(kernels, kernels.fill_background, z, z > 0)
    np.testing.assert_array_equal(filled, [[9, 4, 4, 4, 6, 6], [0, 0, 0, 0, 0, 0]])


def test_variants_agree(variants):
    rng = np.random.default_rng(3)
    z = slanted() + 10 * (rng.random(SHAPE) < 0.2).astype(np.float32)
    color = rng.random((3, *SHAPE)).astype(np.float32)
    for share in (0.05, 0.3, 0.8):
        reliable = rng.random(SHAPE) < share
        one, other = (fill_occluded(k, z, reliable, color) for k in variants)
        np.testing.assert_allclose(one, other, rtol=1e-5)
        one, other = (run(k, k.fill_background, z, reliable) for k in variants)
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_smooth_fill_keeps_what_is_reliable_and_stays_between():
    z = slanted()
    reliable = np.random.default_rng(1).random(SHAPE) < 0.2
    filled = fill_smoothly(z, reliable)
    np.testing.assert_array_equal(filled[reliable], z[reliable])
    assert filled.min() >= z[reliable].min() and filled.max() <= z[reliable].max()


def test_smooth_fill_of_a_constant_is_the_constant():
    for shape in ((1, 1), (1, 7), (5, 3), (33, 64)):
        reliable = np.zeros(shape, bool)
        reliable[0, 0] = True
        np.testing.assert_allclose(fill_smoothly(np.full(shape, 3, np.float32), reliable), 3)
