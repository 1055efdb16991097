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
"""Rooms with clutter: exact shapes, openings, and enough of everything."""

import numpy as np
import pytest

from graph_depth_refiner.lab.benchmarks.stream_scores import plane_fit_normals
from graph_depth_refiner.lab.synthetic.regions import find_regions
from graph_depth_refiner.lab.synthetic.scene import ROOMS
from graph_depth_refiner.lab.synthetic.shapes import Capsule, Ellipsoid, Look
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream

LOOK = Look((0,))
TURN = np.linalg.qr(np.random.default_rng(4).standard_normal((3, 3)))[0]
ORIGIN = np.array([0.3, -0.2, 0.1])


@pytest.fixture(scope='module')
def views():
    """Return some views of each room, by its name."""
    streams = {room: [SyntheticStream(seed, (160, 120), room=room) for seed in range(4)]
               for room in ROOMS}
    return {room: [stream.view(n) for stream in some for n in (0, 25)]
            for room, some in streams.items()}


def hits(solid):
    """Return the points 3 N where rays from ORIGIN meet a solid around (0, 0, 3), and normals."""
    y, x = np.mgrid[-0.4:0.4:90j, -0.4:0.4:90j].astype(np.float32)
    rays = np.stack([x, y, np.ones_like(x)])
    t = solid.hit(ORIGIN, rays)
    met = np.isfinite(t)
    assert 300 < met.sum() < 8000
    points = ORIGIN[:, None] + rays[:, met] * t[met]
    normals = solid.surface(points).normals
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, atol=1e-3)
    assert ((normals.T * rays[:, met]).sum(0) < 1e-2).all()  # the side that is seen
    return points, normals


def test_points_of_a_capsule_are_one_radius_from_its_axis():
    start, end = np.array([-0.3, -0.2, 2.8]), np.array([0.4, 0.1, 3.3])
    points, normals = hits(Capsule(start, end, 0.2, LOOK))
    axis = end - start
    along = np.clip(axis @ (points - start[:, None]) / (axis @ axis), 0, 1)
    away = points - start[:, None] - axis[:, None] * along
    np.testing.assert_allclose(np.linalg.norm(away, axis=0), 0.2, atol=1e-3)
    np.testing.assert_allclose(normals.T * 0.2, away, atol=2e-3)
    assert (along == 0).any() and (along == 1).any() and ((along > 0) & (along < 1)).any()


def test_points_of_an_ellipsoid_are_on_its_quadric():
    half = np.array([0.5, 0.2, 0.3])
    points, normals = hits(Ellipsoid(np.array([0, 0, 3.0]), half, LOOK, TURN))
    local = TURN.T @ (points - np.array([[0], [0], [3.0]]))
    np.testing.assert_allclose((local ** 2 / half[:, None] ** 2).sum(0), 1, atol=1e-3)
    gradient = TURN @ (local / half[:, None] ** 2)
    gradient /= np.linalg.norm(gradient, axis=0)
    np.testing.assert_allclose(normals.T, gradient, atol=1e-5)


@pytest.mark.parametrize('seed', [0, 1])
def test_exact_normals_are_those_of_the_exact_depth(seed):
    view = SyntheticStream(seed, (640, 480), room='clutter').view(3)
    fitted = plane_fit_normals(np.where(np.isfinite(view.depth), view.depth, 0),
                               view.frame.intrinsics)
    plane = find_regions(view.depth, view.normals, view.thin)['plane']
    angle = np.degrees(np.arccos(np.clip((fitted * view.normals).sum(-1)[plane], -1, 1)))
    assert np.median(angle) < 0.2
    assert plane.mean() > 0.2


def test_clutter_has_more_small_and_round_things_than_furniture(views):
    def share(room, name):
        return np.mean([find_regions(view.depth, view.normals, view.thin)[name]
                        for view in views[room]])

    for name in ('edge', 'thin'):
        assert share('clutter', name) > 1.5 * share('furnished', name)
    assert share('clutter', 'curved') > 1.1 * share('furnished', 'curved')
    assert share('clutter', 'plane') < 0.8 * share('furnished', 'plane')


def test_most_views_show_an_opening_with_neither_depth_nor_normal(views):
    assert all(np.isfinite(view.depth).all() for view in views['furnished'])
    nothing = [~np.isfinite(view.depth) for view in views['clutter']]
    assert np.mean([one.any() for one in nothing]) > 0.7
    assert 0.02 < np.mean(nothing) < 0.2
    for view, one in zip(views['clutter'], nothing, strict=True):
        np.testing.assert_array_equal(np.isnan(view.normals).any(-1), one)
        assert np.isinf(view.depth[one]).all()
