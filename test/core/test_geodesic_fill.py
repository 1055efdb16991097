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
"""Holes get the plane of the measured pixel that is nearest along the image."""

from __future__ import annotations

import numpy as np
import pytest
from scenes import ramp, ramp_planes

from graph_depth_refiner.core.geodesic_fill import APART


def fill(k, d, m, color, sigma, planes):
    """Return planes with those of holes filled."""
    x = k.array(planes.copy())
    k.geodesic_fill(k.array(d), k.array(m), k.array(color), sigma, x)
    return k.numpy(x)


def ball_in_a_hole():
    """Return a shaded ball before a wall, the upper half of it not measured."""
    y, x = np.mgrid[:60, :80].astype(np.float32)
    ball = np.hypot(y - 30, x - 40) < 12
    d = np.where(ball, 1.0, 0.5).astype(np.float32)
    m = np.ones_like(d)
    m[10:30, 25:55] = 0
    # as light at its top as the wall at the other side of the hole, but not at its edge
    grey = np.where(ball, 120 - 5 * (y - 18), 140).astype(np.uint8)
    return d, m, np.stack([grey, grey, np.where(ball, 120, 160).astype(np.uint8)])


def test_the_rest_of_an_object_is_found_in_a_hole(kernels):
    d, m, color = ball_in_a_hole()
    for unknown in (0, 0.5):  # no planes in the hole, or those of the wall
        x = np.stack([np.where(m > 0, d, np.float32(unknown)), 0 * d, 0 * d])
        x = fill(kernels, d * m, m, color, 1e-3, x)
        assert np.abs(x[0] - d).max() < APART * 1e-3


def test_planes_in_a_hole_that_are_as_good_stay(kernels):
    d, m = ramp((40, 60)), np.ones((40, 60), np.float32)
    m[10:25, 20:40] = 0
    d = np.where(m > 0, d, 0).astype(np.float32)
    x = ramp_planes((40, 60))
    color = np.random.default_rng(0).integers(0, 255, (3, *d.shape), np.uint8)
    assert np.array_equal(fill(kernels, d, m, color, 5e-3, x), x)


def test_a_plane_that_does_not_fit_is_no_source(kernels):
    d, m, color = ball_in_a_hole()
    x = np.zeros((3, *d.shape), np.float32)
    x[0] = np.where(d == 1, 3.0, 0.5)  # of the ball all are wrong
    x = fill(kernels, d * m, m, color, 1e-3, x)
    assert (x[0][m == 0] == 0.5).all()


@pytest.mark.parametrize('missing', [0.0, 0.3, 1.0])
@pytest.mark.parametrize('channels', [1, 3])
def test_variants_agree(variants, missing, channels):
    rng = np.random.default_rng(1)
    d, m = ramp((37, 51)), np.ones((37, 51), np.float32)
    d[10:30, 20:40] += 0.5
    m *= rng.random(d.shape) >= missing
    m[5:20, 10:30] *= missing == 0
    color = rng.integers(0, 60, (channels, *d.shape), np.uint8)
    x = np.stack([np.where(m > 0, d, 0.1), 0 * d + 2e-3, 0 * d - 1e-3]).astype(np.float32)
    found = [fill(k, d, m, color, 1e-3, x) for k in variants]
    assert np.allclose(*found, rtol=0, atol=1e-6)
    assert (np.abs(found[0][0] - 0.1) > 1e-3).all() == (missing < 1)
