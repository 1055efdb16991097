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
"""A rigid motion maps planes exactly; the nearest of them is seen."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from scenes import run

from graph_depth_refiner.core import camera, warping
from graph_depth_refiner.frame import Intrinsics

K = Intrinsics(60.0, 62.0, 30.3, 19.8)
SHAPE = (40, 60)


def rigid(rotation, translation):
    matrix = np.eye(4)
    matrix[:3, :3] = cv2.Rodrigues(np.array(rotation, float))[0]
    matrix[:3, 3] = translation
    return matrix


def warp(kernels, planes, frames, color, matrix):
    return run(kernels, kernels.warp, planes[0], frames, color, planes[1:], matrix, K)


def plane_map(q):
    """Return the map 3 H W of the plane <q, P> = 1: d = <q, ray>, u = (q1/fx, q2/fy)."""
    x, y = camera.pixel_offsets(SHAPE, K)
    d = q[0] * x / K.fx + q[1] * y / K.fy + q[2]
    return np.stack([d, np.full(SHAPE, q[0] / K.fx), np.full(SHAPE, q[1] / K.fy)]).astype(
        np.float32)


def test_a_plane_is_warped_exactly(kernels):
    # P' = R P + t and <q, P> = 1 give <R q, P' - t> = 1, so q' = R q / (1 + <R q, t>)
    q, matrix = np.array([0.1, -0.15, 0.4]), rigid((0.01, -0.02, 0.015), (0.03, -0.02, 0.05))
    color = np.zeros((1, *SHAPE), np.uint8)
    warped, frame_count, _ = warp(kernels, plane_map(q), np.ones(SHAPE, np.float32), color, matrix)
    turned = matrix[:3, :3] @ q
    expected = plane_map(turned / (1 + turned @ matrix[:3, 3]))[0]
    landed = frame_count == 1  # not a crack
    assert landed.mean() > 0.85
    assert np.abs(warped - expected)[landed].max() < 1e-6


def test_a_hole_does_not_close_from_its_rim(kernels):
    # ten times to and fro by less than half a pixel: nothing lands elsewhere
    frames, planes = np.ones(SHAPE, np.float32), plane_map(np.array([0.0, 0.0, 0.5]))
    frames[10:30, 20:40] = 0
    color, hole = np.zeros((1, *SHAPE), np.uint8), frames == 0
    for step in range(10):
        matrix = rigid((0, 0, 0), (0.01 * (-1) ** step, 0, 0))
        planes[0], frames, color = warp(kernels, planes, frames, color, matrix)
    assert (frames[hole] == 0).all()


def test_standing_still_changes_nothing(kernels):
    x = plane_map(np.array([0.1, 0.05, 0.5]))
    color = np.random.default_rng(0).integers(0, 255, (3, *SHAPE)).astype(np.uint8)
    warped, frame_count, seen = warp(
        kernels, x, np.full(SHAPE, 2, np.float32), color, np.eye(4))
    assert np.abs(warped - x[0]).max() < 1e-6
    assert (frame_count == 2).all() and (seen == color).all()


def test_the_nearer_of_two_surfaces_stays(kernels):
    x = plane_map(np.array([0.0, 0.0, 0.5]))
    x[0, :, 30:] = 1.0  # a nearer wall, which moves over the other by 0.1 * 60 / 1 = 6 pixels,
    matrix = rigid((0, 0, 0), (-0.1, 0, 0))  # while the other moves by 3
    warped, _, _ = warp(kernels, x, np.ones(SHAPE, np.float32), np.zeros((1, *SHAPE), np.uint8),
                        matrix)
    assert np.allclose(warped[:, :24], 0.5) and np.allclose(warped[:, 24:50], 1.0)


@pytest.mark.parametrize('axis', [0, 1])
@pytest.mark.parametrize('beyond, crack', [(0.504, 0.502), (0.6, 0.6)])
def test_a_crack_takes_the_mean_of_one_surface_or_the_nearer_of_two(kernels, axis, beyond, crack):
    # by 0.083 m: what is at 0.5 moves by 2.49 px, what is beyond by 2.51 or more, and the
    # image rounds: of the crack between them one side is 0.8 or 20 % nearer than the other
    x, shift = plane_map(np.array([0.0, 0.0, 0.5])), np.zeros(3)
    shift[1 - axis] = 0.083 * 60 / (K.fy, K.fx)[axis]
    x[0][(slice(None),) * axis + (slice(20, None),)] = beyond
    color = np.full((1, *SHAPE), 7, np.uint8)
    warped, frames, seen = warp(kernels, x, np.full(SHAPE, 8, np.float32), color,
                                rigid((0, 0, 0), shift))
    before, closed, after = (  # 19 lands on 21, 20 on 23
        [one.take(place, axis)[5:] for one in (warped, frames, seen[0])] for place in (21, 22, 23))
    for place, d, count in ((before, 0.5, 8), (closed, crack, 8 * warping.CRACK_SHARE),
                            (after, beyond, 8)):
        assert np.allclose(place[0], d) and (place[1] == count).all() and (place[2] == 7).all()


def test_slopes_may_be_of_a_lower_resolution(kernels):
    # 60 x 40 pixels of a plane, whose slopes are those of 20 x 30 cells, twice as steep per cell
    q, matrix = np.array([0.1, -0.15, 0.4]), rigid((0.01, -0.02, 0.015), (0.03, -0.02, 0.05))
    x, color = plane_map(q), np.zeros((1, *SHAPE), np.uint8)
    args = x[0], np.ones(SHAPE, np.float32), color
    full = run(kernels, kernels.warp, *args, x[1:], matrix, K)
    half = run(kernels, kernels.warp, *args, 2 * x[1:, ::2, ::2].copy(), matrix, K)
    # 40 = 3 * 13 + 1
    odd = run(kernels, kernels.warp, *args, 3 * x[1:, :13, :20].copy(), matrix, K)
    for one in (half, odd):
        assert np.allclose(one[0], full[0], atol=1e-6)


def test_what_moves_as_a_whole_keeps_its_order(kernels):
    """By 0.1 * 60 * 0.5 = 3 pixels; a hole in it moves along, and is empty."""
    rng = np.random.default_rng(0)
    frames = 1 + rng.random(SHAPE, np.float32)
    frames[10:30, 20:41] = 0  # whole runs of pixels, and parts of some
    color = rng.integers(0, 256, (3, *SHAPE)).astype(np.uint8)
    warped, frame_count, seen = warp(
        kernels, plane_map(np.array([0.0, 0.0, 0.5])), frames, color,
        rigid((0, 0, 0), (-0.1, 0, 0)))
    assert (frame_count[:, :57] == frames[:, 3:]).all() and (frame_count[:, 57:] == 0).all()
    there = frame_count > 0
    assert (seen[:, :, :57] == (color * (frames > 0))[:, :, 3:]).all()
    assert np.allclose(warped, 0.5 * there)


def test_variants_agree(variants):
    rng = np.random.default_rng(0)
    x = plane_map(np.array([0.1, 0.05, 0.5]))
    x[0] += (0.3 * (rng.random(SHAPE) < 0.3)).astype(np.float32)
    n = rng.random(SHAPE, np.float32) * (rng.random(SHAPE) > 0.2)
    color = rng.integers(0, 255, (3, *SHAPE), np.uint8)
    args = (x[0], n.astype(np.float32), color, x[1:], rigid((0.01, -0.02, 0.3), (0.03, -0.1, 0.2)),
            K)
    for one, other in zip(*(run(k, k.warp, *args) for k in variants)):
        close = np.abs(one.astype(float) - other) < 1e-5
        assert close.mean() > 0.995  # a place half-way between two pixels may be rounded to either
