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
"""Flying pixels: single values between two sides go, thin things and slopes stay."""

from __future__ import annotations

import numpy as np
import pytest
from scenes import ramp_planes, run

from graph_depth_refiner.config import preset
from graph_depth_refiner.frame import Frame, Intrinsics, Provenance
from graph_depth_refiner.refiner import DepthRefiner

SHAPE = (24, 40)
NEAR, FAR, EDGE = 1.0, 0.5, 20  # inverse depth left of the edge and right of it
WIDTH = 0.02


def two_sides():
    """Return planes, 3 H W, of two walls that face the camera."""
    planes = np.zeros((3, *SHAPE), np.float32)
    planes[0, :, :EDGE], planes[0, :, EDGE:] = NEAR, FAR
    return planes


def kept(k, planes, known=None):
    """Return which pixels fly, H W bool."""
    frames = np.ones(SHAPE, np.float32) if known is None else known.astype(np.float32)
    return run(k, k.not_flying, planes, planes[0].copy(), frames,
               np.full(SHAPE, WIDTH, np.float32)) == 1


def test_single_values_between_the_sides_fly(kernels):
    planes = two_sides()
    places = [(5, EDGE), (12, EDGE - 1), (18, EDGE)]
    for place, value in zip(places, (0.7, 0.8, 0.6)):
        planes[0][place] = value
    flies = ~kept(kernels, planes)
    assert sorted(zip(*np.nonzero(flies))) == places


def test_two_that_agree_fly_and_a_line_of_them_does_not(kernels):
    planes = two_sides()
    planes[0, 10:12, EDGE] = 0.7
    assert (~kept(kernels, planes)).sum() == 2
    planes[0, 8:14, EDGE] = 0.7  # those inside have four others within two pixels
    flies = ~kept(kernels, planes)
    assert not flies[10:12].any()


@pytest.mark.parametrize('value', [0.3, 1.4])
def test_what_is_in_front_of_all_or_behind_all_stays(kernels, value):
    planes = two_sides()
    planes[0, 10, EDGE] = value
    assert kept(kernels, planes).all()


def test_a_steep_slope_stays(kernels):
    # from pixel to pixel it changes by twice the width, and its planes say so
    assert kept(kernels, ramp_planes(SHAPE, 0.5, 2 * WIDTH, 0)).all()


def test_what_is_not_known_is_no_side(kernels):
    planes = two_sides()
    planes[0, 10, EDGE] = 0.7
    known = np.ones(SHAPE, bool)
    known[:, EDGE + 1:] = False
    known[:10, EDGE] = known[11:, EDGE] = False
    assert kept(kernels, planes, known).all()


def test_variants_agree(variants):
    rng = np.random.default_rng(0)
    planes = two_sides()
    planes[0] += 0.1 * (rng.random(SHAPE) < 0.1) * rng.standard_normal(SHAPE)
    planes[1:] = rng.normal(0, 2e-3, (2, *SHAPE))
    known = rng.random(SHAPE) < 0.9
    one, other = (kept(k, planes, known) for k in variants)
    assert (one == other).all() and not one.all()


def test_they_end_on_the_side_that_they_look_like(kernels):
    # a dark thing in front of a bright wall; every third pixel of its rim is a mixture
    rng = np.random.default_rng(1)
    shape, edge = (60, 80), 40
    depth = np.where(np.arange(80) < edge, 1.0, 2.0) * np.ones(shape)
    image = np.where(np.arange(80) < edge, 40, 200) * np.ones(shape)
    mixed = np.zeros(shape, bool)
    mixed[1::3, edge - 1] = mixed[2::3, edge] = True
    true = depth.copy()
    depth += rng.normal(0, 0.002, shape)
    depth[mixed] = rng.uniform(1.3, 1.6, mixed.sum())
    refiner = DepthRefiner(preset('realtime'), 'cpu')
    refiner.kernels = kernels
    found = refiner.refine(Frame(image.astype(np.uint8), depth, Intrinsics(80, 80, 40, 30)))
    assert np.isfinite(found.depth[mixed]).all()
    assert (abs(found.depth / true - 1)[mixed] < 0.02).mean() > 0.95
    assert (found.provenance[mixed] == Provenance.CORRECTED).all()
    assert (abs(found.depth / true - 1)[~mixed] < 0.01).all()
