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
"""Pixels that similar ones contradict take their joint weighted median."""

import numpy as np
import pytest
from scenes import ramp, ramp_planes, run

SHAPE = (18, 26)
CENTRE = (9, 13)


def test_an_outlier_takes_the_median(kernels):
    k = kernels
    z = ramp(SHAPE, 30.0, 0.05, -0.2)
    z[CENTRE] += 20
    found = run(k, k.joint_weighted_median, z, np.zeros((3, *SHAPE), np.float32), 3, 1.0, 0.5,
                0.05)
    # the median of a plane over a symmetric square is its value in the middle
    assert found[CENTRE] == pytest.approx(ramp(SHAPE, 30.0, 0.05, -0.2)[CENTRE], abs=0.25)


def test_a_thing_of_its_own_colour_stays(kernels):
    k = kernels
    z, color = np.full(SHAPE, 10, np.float32), np.zeros((3, *SHAPE), np.float32)
    z[:, 12:14] = 30
    color[:, :, 12:14] = 0.8
    found = run(k, k.joint_weighted_median, z, color, 3, 1.0, 0.5, 0.05)
    np.testing.assert_array_equal(found, z)


def test_a_minority_of_the_share_is_enough_to_stay(kernels):
    # a column of the background's colour: 5 of 25 voters agree with it, a share of 0.2
    k = kernels
    z = np.full((31, 31), 10, np.float32)
    z[:, 15] = 30
    color = k.array(np.zeros((3, 31, 31)))
    for share, expected in ((0.19, 30), (0.21, 10)):
        found = k.numpy(k.joint_weighted_median(k.array(z), color, 3, 1.0, share, 0.05))
        assert found[15, 15] == expected


def test_variants_agree(variants):
    rng = np.random.default_rng(7)
    z = ramp(SHAPE, 30.0, 0.05, -0.2) + 8 * (rng.random(SHAPE) < 0.3).astype(np.float32)
    color = 0.2 * rng.random((3, *SHAPE), np.float32)
    one, other = (run(k, k.joint_weighted_median, z, color, 2, 1.0, 0.5, 0.05) for k in variants)
    np.testing.assert_allclose(one, other, rtol=1e-6)
    assert (one != z).any()


def test_planes_around_go_on_into_a_hole(kernels):
    # every plane around predicts the same there, so that any median of them is exact
    planes, weight = ramp_planes(SHAPE, 30.0, 0.05, -0.2), np.ones(SHAPE, np.float32)
    hole = planes.copy()
    hole[:, 9, 13] = 77, 0, 0
    weight[CENTRE] = 0.5
    found = run(kernels, kernels.joint_plane_median, hole, weight,
                np.zeros((3, *SHAPE), np.float32), 3, 0.05)
    np.testing.assert_allclose(found, planes, rtol=1e-5)


def test_measured_planes_stay(kernels):
    planes = ramp_planes(SHAPE, 30.0, 0.05, -0.2)
    planes[0, 9, 13] = 77
    found = run(kernels, kernels.joint_plane_median, planes, np.ones(SHAPE, np.float32),
                np.zeros((3, *SHAPE), np.float32), 3, 0.05)
    np.testing.assert_array_equal(found, planes)


def test_planes_of_another_colour_have_no_vote(kernels):
    # right of the hole are six of nine voters, but only the two on its left are of its colour
    planes, weight = ramp_planes(SHAPE, 30.0, 0.0, 0.0), np.ones(SHAPE, np.float32)
    planes[0, :, 13:] = 50
    color = np.zeros((3, *SHAPE), np.float32)
    color[:, :, 13:] = 0.8
    color[(slice(None), *CENTRE)] = 0
    weight[CENTRE] = 0.5
    found = run(kernels, kernels.joint_plane_median, planes, weight, color, 3, 0.05)
    assert found[0, 9, 13] == 30


def test_variants_of_the_median_of_planes_agree(variants):
    rng = np.random.default_rng(8)
    planes = ramp_planes(SHAPE, 30.0, 0.05, -0.2)
    planes[0] += rng.normal(0, 3, SHAPE).astype(np.float32)
    weight = np.where(rng.random(SHAPE) < 0.5, 0.5, 1).astype(np.float32)
    color = 0.2 * rng.random((3, *SHAPE), np.float32)
    one, other = (run(k, k.joint_plane_median, planes, weight, color, 2, 0.05) for k in variants)
    np.testing.assert_allclose(one, other, rtol=1e-5)
    assert (one != planes).any()
