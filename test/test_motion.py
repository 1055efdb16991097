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
"""Rigid motion maps planes exactly, and is found again from the frames."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import camera
from graph_depth_refiner.core import motion_numba as fused
from graph_depth_refiner.core import motion_torch as plain
from graph_depth_refiner.core import odometry as alignment
from graph_depth_refiner.core.observation import measure
from graph_depth_refiner.core.plane_fit_torch import fit_planes
from graph_depth_refiner.core.video import solve_level, Stages
from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream

K = Intrinsics(60.0, 62.0, 30.3, 19.8)
SHAPE = (40, 60)
twins = pytest.mark.parametrize('motion', [plain, fused], ids=['plain', 'fused'])


def rigid(rotation, translation):
    matrix = np.eye(4)
    matrix[:3, :3] = cv2.Rodrigues(np.array(rotation, float))[0]
    matrix[:3, 3] = translation
    return matrix


def plane_map(q):
    """Return the map 3 H W of the plane <q, P> = 1: d = <q, ray>, u = (q1/fx, q2/fy)."""
    x, y = camera.pixel_offsets(SHAPE, K)
    d = q[0] * x / K.fx + q[1] * y / K.fy + q[2]
    return np.stack([d, np.full(SHAPE, q[0] / K.fx), np.full(SHAPE, q[1] / K.fy)]).astype(
        np.float32)


@twins
def test_a_plane_is_carried_exactly(motion):
    # P' = R P + t and <q, P> = 1 give <R q, P' - t> = 1, so q' = R q / (1 + <R q, t>)
    q, matrix = np.array([0.1, -0.15, 0.4]), rigid((0.01, -0.02, 0.015), (0.03, -0.02, 0.05))
    color = np.zeros((1, *SHAPE), np.uint8)
    warped, frame_count, _ = motion.warp(
        plane_map(q), np.ones(SHAPE, np.float32), color, matrix, K)
    turned = matrix[:3, :3] @ q
    expected = plane_map(turned / (1 + turned @ matrix[:3, 3]))
    seen = frame_count > 0
    assert seen.mean() > 0.85
    assert np.abs(warped - expected)[:, seen].max() < 1e-6


@twins
def test_standing_still_changes_nothing(motion):
    x = plane_map(np.array([0.1, 0.05, 0.5]))
    color = np.random.default_rng(0).integers(0, 255, (3, *SHAPE)).astype(np.uint8)
    warped, frame_count, seen = motion.warp(x, np.full(SHAPE, 2, np.float32), color, np.eye(4), K)
    assert np.abs(warped - x).max() < 1e-6
    assert (frame_count == 2).all() and (seen == color).all()


@twins
def test_the_nearer_of_two_surfaces_stays(motion):
    x = plane_map(np.array([0.0, 0.0, 0.5]))
    x[0, :, 30:] = 1.0  # a nearer wall, which moves over the other by 0.1 * 60 / 1 = 6 pixels,
    matrix = rigid((0, 0, 0), (-0.1, 0, 0))  # while the other moves by 3
    warped, _, _ = motion.warp(
        x, np.ones(SHAPE, np.float32), np.zeros((1, *SHAPE), np.uint8), matrix, K)
    assert np.allclose(warped[0][:, :24], 0.5) and np.allclose(warped[0][:, 24:50], 1.0)


@pytest.fixture(scope='module')
def pair():
    """Return the planes of one frame, the level of the next, and the true motion."""
    stream = SyntheticStream(1, (160, 120))
    stages, levels = Stages(), []
    views = [stream.view(k) for k in (3, 4)]
    for view in views:
        measured = measure(view.frame, RefinerConfig())
        levels.append(solve_level(stages, measured, view.frame.image, 1)[1])
    first = levels[0]
    x, _ = fit_planes(first.d, first.m, first.grey, first.sigma, (8, 4, 2), 1.3, 0.07)
    true = alignment.between(views[0].frame.pose, views[1].frame.pose).matrix
    return x, (x[0] > 0).astype(np.float32), first, levels[1], true


def test_twins_carry_alike(pair):
    x, n, first, _, true = pair
    for one, other in zip(plain.warp(x, n, first.color, true, first.intrinsics),
                          fused.warp(x, n, first.color, true, first.intrinsics)):
        assert (np.abs(one.astype(float) - other) < 1e-5).mean() > 0.999


def test_twins_have_the_same_equations(pair):
    x, n, first, level, true = pair
    args = (x, n, first.grey, level.d, level.m, level.grey, 3, true, np.array([1.0, 0.0]),
            level.intrinsics, level.sigma, 0.01, 0.2)
    one, other = plain.normal_equations(*args), fused.normal_equations(*args)
    assert np.allclose(one.matrix, other.matrix, rtol=0, atol=1e-4 * np.abs(one.matrix).max())
    assert np.allclose(one.vector, other.vector, rtol=0, atol=1e-4 * np.abs(one.vector).max())
    assert (one.seen, one.measured) == (other.seen, other.measured)
    assert np.allclose(one.shifts, other.shifts, atol=1e-3)


@twins
def test_motion_is_found_from_the_frames(pair, motion):
    x, n, first, level, true = pair
    found = alignment.align(motion, x, n, first.grey, level, np.eye(4))
    error = found.matrix @ np.linalg.inv(true)
    assert found.trusted
    # the camera turned by 0.4 degrees and moved by 15 mm
    assert np.degrees(np.linalg.norm(cv2.Rodrigues(error[:3, :3])[0])) < 0.1
    assert np.linalg.norm(error[:3, 3]) < 0.006


def test_a_strange_scene_is_not_trusted(pair):
    x, n, first, _, _ = pair
    other = SyntheticStream(9, (160, 120)).view(0)
    level = solve_level(Stages(), measure(other.frame, RefinerConfig()), other.frame.image, 1)[1]
    assert not alignment.align(fused, x, n, first.grey, level, np.eye(4)).trusted


def test_nothing_to_align_is_not_trusted(pair):
    x, n, first, level, _ = pair
    assert not alignment.align(fused, x, 0 * n, first.grey, level, np.eye(4)).trusted


def test_corners_are_followed_only_where_the_guess_is_off(pair, monkeypatch):
    x, n, first, level, true = pair
    asked = []
    monkeypatch.setattr(alignment, 'guess_motion', lambda *arguments: asked.append(arguments))
    found = alignment.align(fused, x, n, first.grey, level, true)
    assert found.trusted and not asked
    assert np.linalg.norm((found.matrix @ np.linalg.inv(true))[:3, 3]) < 0.006
    alignment.align(fused, x, n, first.grey, level, np.eye(4))
    assert len(asked) == 1
