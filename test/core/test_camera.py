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
"""Normals and planes against analytic planes in space."""

import numpy as np
import pytest

from graph_depth_refiner.core.camera import normals, plane_vectors, points
from graph_depth_refiner.frame import Intrinsics

CAMERA = Intrinsics(fx=90.0, fy=110.0, cx=15.3, cy=11.8)
SHAPE = (24, 32)


def plane_in_view(normal: np.ndarray, rho: float) -> np.ndarray:
    """Return the planes (d, ux, uy) of <normal, P> = rho: Eq. 4 divided by rho Z, and Eq. 6."""
    a, b, c = normal
    y, x = np.mgrid[:SHAPE[0], :SHAPE[1]].astype(float)
    d = (a * (x - CAMERA.cx) / CAMERA.fx + b * (y - CAMERA.cy) / CAMERA.fy + c) / rho
    return np.stack([
        d, np.full(SHAPE, a / (rho * CAMERA.fx)), np.full(SHAPE, b / (rho * CAMERA.fy))])


ORIENTATIONS = [
    (tilt, turn) for tilt in (0.0, 0.2, 0.7, 1.2) for turn in np.arange(0, 2 * np.pi, np.pi / 8)]


@pytest.mark.parametrize('tilt, turn', ORIENTATIONS)
def test_normals_of_analytic_planes(tilt, turn):
    # tilt 0 is the supplement's case 4, turns by multiples of 90 degrees its cases 2 and 3
    normal = -np.array([np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), np.cos(tilt)])
    normal[np.abs(normal) < 1e-12] = 0
    planes = plane_in_view(normal, rho=-2.5)
    found = normals(planes, CAMERA)
    # the formula is exact for any d, in front of the camera or not; only its sign needs rho < 0
    np.testing.assert_allclose(found, np.broadcast_to(normal, (*SHAPE, 3)), atol=1e-12)


@pytest.mark.parametrize('tilt, turn', ORIENTATIONS)
def test_normals_solve_the_papers_system(tilt, turn):
    normal = -np.array([np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), np.cos(tilt)])
    d, ux, uy = planes = plane_in_view(normal, rho=-0.7)
    a, b, c = np.moveaxis(normals(planes, CAMERA), -1, 0)
    y, x = np.mgrid[:SHAPE[0], :SHAPE[1]]
    # rho of Eq. 5 times d, to stay finite where the plane is seen edge-on
    rho_d = a * (x - CAMERA.cx) / CAMERA.fx + b * (y - CAMERA.cy) / CAMERA.fy + c
    np.testing.assert_allclose(ux * rho_d * CAMERA.fx, a * d, atol=1e-12)
    np.testing.assert_allclose(uy * rho_d * CAMERA.fy, b * d, atol=1e-12)
    np.testing.assert_allclose(a * a + b * b + c * c, 1, atol=1e-12)
    assert (rho_d / d < 0).all()


def test_points_lie_on_their_plane():
    planes = plane_in_view(np.array([0.3, -0.2, -0.9]) / 0.94 ** 0.5, rho=-2.0)
    cloud = points(1 / planes[0], CAMERA)  # H W 3
    q = np.moveaxis(plane_vectors(planes, CAMERA), 0, -1)
    np.testing.assert_allclose((q * cloud).sum(-1), 1, atol=1e-5)
