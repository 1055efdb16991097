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
"""The motion of the camera is found from the frames."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from scenes import run

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import odometry
from graph_depth_refiner.core.camera import image_flow
from graph_depth_refiner.core.downsampling import downsample, downsample_image
from graph_depth_refiner.core.kernels import select
from graph_depth_refiner.core.local_planes import fit_planes
from graph_depth_refiner.core.noise import NoiseModel, spread_about_planes
from graph_depth_refiner.core.observation import observe
from graph_depth_refiner.core.odometry import Aligned, SEEN, Target, TERMS
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream

SIZE = (160, 120)


def target_of(k, frame):
    """Return the measurement of a frame in arrays of the kernels."""
    config = RefinerConfig()
    obs = observe(k, frame, config)
    guide = downsample_image(k, obs, config)
    independent = spread_about_planes(k.numpy(obs.d))  # which is all there is in this scene
    noise = NoiseModel(independent, 0.0, independent)
    level = downsample(k, obs.d, obs.m, noise, guide.scale)
    return Target(level.d, level.frames, guide.grey, level.unit, guide.intrinsics)


@pytest.fixture(scope='module')
def pair():
    """Return the planes of one frame, where they are known, both frames and the true motion."""
    stream = SyntheticStream(1, SIZE)
    first, second = (stream.view(number).frame for number in (3, 4))
    k = select('cpu')
    target = target_of(k, first)
    x = k.numpy(fit_planes(k, target.d, target.m, target.sigma + 0 * target.d))
    true = odometry.between(first.pose, second.pose).matrix
    return x, (x[0] > 0).astype(np.float32), first, second, true


def align(k, pair, guess, frame=None, steady=None):
    """Return the motion that is found for a pair of frames."""
    x, n, first, second, _ = pair
    n = n if steady is None else steady
    past = Aligned(k.array(x.copy()), k.array(n), target_of(k, first).grey)
    return odometry.align(k, past, target_of(k, frame or second), k.motion(guess))


def test_variants_have_the_same_equations(variants, pair):
    x, n, first, second, true = pair
    found = []
    for k in variants:
        before, now = target_of(k, first), target_of(k, second)
        found.append(run(
            k, k.normal_equations, x, n, before.grey, now.d, now.m, now.grey, 3, true,
            np.array([1.0, 0.0]), now.intrinsics, now.sigma, 0.01, 0.2))
    sums, others = (one.sum(axis=0) for one, _ in found)
    # rows of the upper triangle of J^T J, each with its term of J^T r, then counts
    vector = np.isin(np.arange(SEEN), np.cumsum(TERMS + 1 - np.arange(TERMS)) - 1)
    for part in (vector, ~vector):
        one, other = sums[:SEEN][part], others[:SEEN][part]
        assert np.allclose(one, other, rtol=0, atol=1e-4 * np.abs(one).max())
    assert sums[SEEN] == others[SEEN] and sums[SEEN + 2] == pytest.approx(others[SEEN + 2])
    assert np.allclose(found[0][1], found[1][1], atol=1e-3)


def test_variants_find_the_same_motion(variants, pair):
    one, other = (align(k, pair, np.eye(4)) for k in variants)
    assert one.trusted and other.trusted
    assert np.allclose(one.matrix, other.matrix, atol=1e-6)


def test_motion_is_found_from_the_frames(kernels, pair):
    found = align(kernels, pair, np.eye(4))
    error = found.matrix @ np.linalg.inv(pair[-1])
    assert found.trusted
    # the camera turned by 0.4 degrees and moved by 15 mm, which moves the image by 0.74 px; of
    # small turns and shifts only what the image shows is known
    typical = float(np.median(pair[0][0]))
    assert image_flow(error, pair[2].intrinsics, SIZE[::-1], typical) < 0.15
    assert np.linalg.norm(error[:3, 3]) < 0.008


def test_a_strange_scene_is_not_trusted(kernels, pair):
    other = SyntheticStream(9, SIZE).view(0).frame
    assert not align(kernels, pair, np.eye(4), frame=other).trusted


def test_nothing_to_align_is_not_trusted(kernels, pair):
    assert not align(kernels, pair, np.eye(4), steady=0 * pair[1]).trusted


def test_corners_are_followed_only_where_the_guess_is_off(kernels, pair, monkeypatch):
    asked = []
    monkeypatch.setattr(
        odometry, 'estimate_pose_pnp', lambda *arguments: asked.append(arguments))
    found = align(kernels, pair, pair[-1])
    assert found.trusted and not asked
    assert np.linalg.norm((found.matrix @ np.linalg.inv(pair[-1]))[:3, 3]) < 0.008
    align(kernels, pair, np.eye(4))
    assert len(asked) == 1


def test_a_guess_that_is_off_by_part_of_a_pixel_is_mended_by_steps(kernels, pair, monkeypatch):
    monkeypatch.setattr(odometry, 'estimate_pose_pnp', lambda *arguments: pytest.fail('asked'))
    off = np.eye(4)
    off[0, 2] = 0.15 / pair[2].intrinsics.fx  # a turn of .15 pixels
    off[2, 0] = -off[0, 2]
    found, nearer = (align(kernels, pair, guess @ pair[-1]) for guess in (off, np.eye(4)))
    assert found.trusted
    assert abs((np.linalg.inv(nearer.matrix) @ found.matrix)[0, 2]) < 0.2 * off[0, 2]


def corrected(k, pair, given):
    """Return what becomes of a motion by poses."""
    x, n, first, second, _ = pair
    past = Aligned(k.array(x.copy()), k.array(n), target_of(k, first).grey)
    return odometry.corrected(k, past, target_of(k, second), odometry.Motion(given))


def test_good_poses_are_used_as_they_are(kernels, pair):
    found = corrected(kernels, pair, pair[-1])
    assert found.pose == 'used'
    assert np.array_equal(found.matrix, pair[-1])


@pytest.mark.parametrize('axis', range(3))
def test_poses_that_the_frames_contradict_are_corrected(kernels, pair, axis):
    # 0.95 degrees, as of the nearest of 30 Hz poses at 1 rad/s: 2 px of this image, or at its
    # side 1 px about the line of sight; on the walls of the room the depth alone hardly notices
    turn = np.zeros(3)
    turn[axis] = np.radians(0.95)
    wrong = np.eye(4)
    wrong[:3, :3] = cv2.Rodrigues(turn)[0]
    found = corrected(kernels, pair, wrong @ pair[-1])
    assert (found.pose, found.trusted) == ('corrected', True)
    error = found.matrix @ np.linalg.inv(pair[-1])
    typical = float(np.median(pair[0][0]))
    assert image_flow(error, pair[2].intrinsics, SIZE[::-1], typical) < 0.15
