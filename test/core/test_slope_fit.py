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
"""Slopes fitted over the graph."""

import numpy as np
from scenes import ramp, run

from graph_depth_refiner.config import RefinerConfig

SHAPE = (18, 26)
CONFIG = RefinerConfig().with_values(**{'graph.window': 5})


def graph(k, image):
    """Return the graph of a grey image."""
    return k.build_graph(k.array(image), CONFIG)


def test_slopes_of_a_plane_are_exact(kernels):
    k = kernels
    slopes = k.numpy(k.fit_slopes(
        k.array(ramp(SHAPE, 30.0, 0.05, -0.2)), graph(k, np.zeros(SHAPE))))
    # up to the ridge, at the borders too
    np.testing.assert_allclose(slopes[0], 0.05, rtol=2e-3, atol=1e-5)
    np.testing.assert_allclose(slopes[1], -0.2, rtol=2e-3, atol=1e-5)


def test_a_pixel_without_edges_faces_the_camera(kernels):
    k = kernels
    weights = k.array(np.zeros((24, *SHAPE)))
    assert (k.numpy(k.fit_slopes(k.array(ramp(SHAPE, 30.0, 0.05, -0.2)), weights)) == 0).all()


def test_variants_agree(variants):
    rng = np.random.default_rng(7)
    z = ramp(SHAPE, 30.0, 0.05, -0.2) + rng.random(SHAPE, np.float32)
    w = variants[0].numpy(graph(variants[0], 0.2 * rng.random(SHAPE, np.float32)))
    one, other = (run(k, k.fit_slopes, z, w) for k in variants)
    np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
