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
"""Test the normals of finished depth maps on analytic planes."""

import numpy as np
import pytest

from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.evaluation.depth_normals import fitted_normals, straight_normals

CAMERA = Intrinsics(60.0, 50.0, 19.5, 14.5)
SHAPE = (30, 40)


def plane(normal, distance):
    """Return the depth of the plane <n, P> = -distance: Z = -distance / <n, ray>."""
    y, x = np.indices(SHAPE)
    rays = np.stack([(x - CAMERA.cx) / CAMERA.fx, (y - CAMERA.cy) / CAMERA.fy, np.ones(SHAPE)])
    return (-distance / np.tensordot(normal, rays, 1)).astype(np.float32)


def unit(*vector):
    """Return the vector with length one."""
    return np.array(vector) / np.linalg.norm(vector)


@pytest.mark.parametrize('estimate', [straight_normals, fitted_normals])
@pytest.mark.parametrize('normal', [
    unit(0, 0, -1), unit(0.5, 0, -1), unit(0, -0.7, -1), unit(-0.4, 0.3, -1)])
def test_planes_are_exact(estimate, normal):
    found = estimate(plane(normal, 2.0), CAMERA)
    np.testing.assert_allclose(found, np.broadcast_to(normal, found.shape), atol=2e-3)


def test_straight_normals_do_not_mix_two_walls():
    left, right = unit(0.5, 0, -1), unit(0, 0, -1)
    depth = plane(right, 4.0)
    depth[:, :20] = plane(left, 2.0)[:, :20]
    found = straight_normals(depth, CAMERA)
    np.testing.assert_allclose(found[:, :20], np.broadcast_to(left, (30, 20, 3)), atol=5e-3)
    np.testing.assert_allclose(found[:, 20:], np.broadcast_to(right, (30, 20, 3)), atol=5e-3)


@pytest.mark.parametrize('estimate', [straight_normals, fitted_normals])
def test_holes_have_no_normal_and_spoil_no_other(estimate):
    normal = unit(-0.4, 0.3, -1)
    depth = plane(normal, 2.0)
    depth[10:14, 10:14] = np.nan
    depth[20, 20] = 0
    found = estimate(depth, CAMERA)
    known = np.isfinite(depth) & (depth > 0)
    assert np.isnan(found[~known]).all()
    assert np.isfinite(found[known]).all()
    np.testing.assert_allclose(
        found[known], np.broadcast_to(normal, found[known].shape), atol=2e-3)


def test_fitted_normals_average_noise():
    normal = unit(0.3, 0.1, -1)
    noise = np.random.default_rng(0).standard_normal(SHAPE)
    depth = plane(normal, 2.0) + 0.002 * noise.astype(np.float32)

    def error(found):
        return np.degrees(np.arccos(np.clip(found @ normal, -1, 1))).mean()

    assert error(fitted_normals(depth, CAMERA)) < 0.1 * error(straight_normals(depth, CAMERA))
