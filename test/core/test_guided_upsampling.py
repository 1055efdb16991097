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
"""Predictions at full resolution by colour, on analytic scenes."""

import numpy as np
from scenes import ramp, ramp_planes, run

CELLS, SCALE = (6, 9), 2
SHAPE = (13, 19)  # with a row and a column beyond the last whole cell
NOTHING = np.zeros(SHAPE, np.float32)
CLOSE, SIGMA = 1.0, 0.05


def coloured(left, right, at, shape):
    """Return an image, 1 H W, of two greys."""
    image = np.full((1, *shape), left, np.uint8)
    image[:, :, at:] = right
    return image


def two_sides():
    """Return planes of 10 and, from the fifth cell on, of 30."""
    planes = np.zeros((3, *CELLS), np.float32)
    planes[0] = 10
    planes[0, :, 4:] = 30
    return planes


def test_one_surface_is_predicted_exactly(kernels):
    # a cell's centre is at (scale - 1) / 2 of its pixels: 20 - 0.1 / 4 and so on at the first
    grey = coloured(9, 200, 4, CELLS), coloured(9, 200, 7, SHAPE)
    found = run(kernels, kernels.predict_by_color, ramp_planes(CELLS, 20.0, 0.1, -0.2), *grey,
                NOTHING, SCALE, CLOSE, SIGMA)
    expected = ramp(SHAPE, 20 - 0.1 / 4 + 0.2 / 4, 0.1 / 2, -0.2 / 2)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_colour_chooses_the_side(kernels):
    # the edge of the image is a pixel to the right of that of the cells
    found = run(kernels, kernels.predict_by_color, two_sides(), coloured(9, 200, 4, CELLS),
                coloured(9, 200, 9, SHAPE), NOTHING, SCALE, CLOSE, SIGMA)
    assert (found[:, :9] == 10).all() and (found[:, 9:] == 30).all()


def test_without_colour_the_measurement_breaks_a_tie(kernels):
    # three columns of cells at 10, 10, 30 or 10, 30, 30: half a cell's weight changes nothing
    grey = coloured(9, 9, 4, CELLS), coloured(9, 9, 8, SHAPE)
    measured = np.full(SHAPE, 12, np.float32)
    found = run(kernels, kernels.predict_by_color, two_sides(), *grey, measured, SCALE, CLOSE,
                SIGMA)
    assert (found[:, :8] == 10).all() and (found[:, 8:] == 30).all()
    # at the border two columns of one cell each side are left, and the measurement decides
    narrow = two_sides()[:, :, 3:5].copy()
    found = run(kernels, kernels.predict_by_color, narrow, np.full((1, 6, 2), 9, np.uint8),
                np.full((1, 12, 4), 9, np.uint8), np.full((12, 4), 12, np.float32), SCALE, CLOSE,
                SIGMA)
    assert (found == 12).all()


def test_variants_agree(variants):
    rng = np.random.default_rng(3)
    planes = ramp_planes(CELLS, 20.0, 0.1, -0.2)
    planes[0] += 9 * (rng.random(CELLS) < 0.4)
    color = rng.integers(0, 60, (3, *CELLS), np.uint8)
    image = rng.integers(0, 60, (3, *SHAPE), np.uint8)
    d = rng.uniform(15, 30, SHAPE).astype(np.float32) * (rng.random(SHAPE) < 0.7)
    one, other = (run(k, k.predict_by_color, planes, color, image, d.astype(np.float32), SCALE,
                      CLOSE, SIGMA) for k in variants)
    np.testing.assert_allclose(one, other, rtol=1e-5)
