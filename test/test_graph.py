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
"""The graph against a double loop over pixels and patches, in both implementations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graph_depth_refiner.config import preset, RefinerConfig
from graph_depth_refiner.core import kernels
from graph_depth_refiner.core.problem import offsets

BACKENDS = ('fused', 'torch')
SETTINGS = (
    {},
    {'graph.neighbours': 7},
    {'graph.window': 9, 'graph.patch': 5, 'graph.neighbours': 20, 'graph.normalise': False},
    {'graph.window': 3, 'graph.patch': 7},
    {'graph.patch': 1, 'graph.normalise': False},
)


def brute_force(guide: np.ndarray, config: RefinerConfig) -> np.ndarray:
    """Weigh edge by edge in float64; the image is extended by its edge pixels."""
    guide = guide.reshape(-1, *guide.shape[-2:]).astype(np.float64)  # C H W
    height, width = guide.shape[1:]
    q = config.graph.patch // 2
    padded = np.pad(guide, ((0, 0), (q, q), (q, q)), 'edge')
    steps = offsets(config.graph.window)
    w = np.zeros((len(steps), height, width))
    for y in range(height):
        for x in range(width):
            edges = []
            for o, (dy, dx) in enumerate(steps):
                if 0 <= y + dy < height and 0 <= x + dx < width:
                    here = padded[:, y:y + 2 * q + 1, x:x + 2 * q + 1]
                    there = padded[:, y + dy:y + dy + 2 * q + 1, x + dx:x + dx + 2 * q + 1]
                    exponent = (
                        ((here - there) ** 2).sum() / (2 * config.graph.sigma_intensity ** 2)
                        + (dy * dy + dx * dx) / (2 * config.graph.sigma_space ** 2))
                    edges.append((exponent, o))
            edges.sort()
            kept = edges[:config.graph.neighbours] if config.graph.neighbours else edges
            least = kept[0][0] if config.graph.normalise and kept else 0  # cancels below
            for exponent, o in kept:
                w[o, y, x] = math.exp(least - exponent)
            if config.graph.normalise and kept:
                w[:, y, x] /= w[:, y, x].sum()
    return w


def build(backend: str, guide: np.ndarray, config: RefinerConfig) -> np.ndarray:
    """Return the graph of a backend as numpy."""
    stages = kernels.select('cpu', backend)
    return stages.numpy(stages.build_graph(stages.array(guide), config))


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('settings', SETTINGS)
@pytest.mark.parametrize('shape', [(9, 13), (3, 12, 7), (2, 3), (1, 1)])
def test_graph_is_that_of_the_double_loop(backend, settings, shape):
    """Every weight agrees, borders and images smaller than the window included."""
    guide = np.random.default_rng(1).random(shape, dtype=np.float32)
    config = preset('realtime', **{'graph.sigma_intensity': 0.3}, **settings)
    expected = brute_force(guide, config)
    w = build(backend, guide, config)
    # float32 exponents of up to 20 are known to 20 * 2^-23, so are the weights, relatively
    np.testing.assert_allclose(w, expected, rtol=1e-5, atol=3e-6)


@pytest.mark.parametrize('backend', BACKENDS)
def test_weights_of_unlike_patches_still_sum_to_one(backend):
    """Exponents far beyond the range of exp are no reason to lose a pixel."""
    guide = np.random.default_rng(2).random((8, 9), dtype=np.float32)
    config = preset('realtime', **{'graph.sigma_intensity': 0.01})
    w = build(backend, guide, config)
    np.testing.assert_allclose(w.sum(axis=0), 1, rtol=1e-5)
    # the exponents are about 10^4, so float32 knows their differences to some 10^-3
    np.testing.assert_allclose(w, brute_force(guide, config), atol=5e-3)


def test_ties_are_resolved_alike():
    """On a coarsely quantised image many weights are equal; the earlier offset is kept."""
    rng = np.random.default_rng(3)
    guide = (rng.integers(0, 4, (30, 41)) / 255).astype(np.float32)
    config = preset('paper')
    fused, plain = (build(backend, guide, config) for backend in BACKENDS)
    assert ((fused > 0) == (plain > 0)).all()
    np.testing.assert_allclose(fused, plain, rtol=1e-6)


@pytest.mark.parametrize('backend', BACKENDS)
def test_equal_weights_keep_the_earlier_offset(backend):
    """In a flat image the 4 nearest are equal; K = 2 keeps those above and to the left."""
    config = preset('realtime', **{'graph.window': 5, 'graph.neighbours': 2})
    w = build(backend, np.full((5, 5), 0.5, np.float32), config)
    kept = [step for step, weight in zip(offsets(5), w[:, 2, 2]) if weight > 0]
    assert kept == [(-1, 0), (0, -1)]


@pytest.mark.parametrize('settings', SETTINGS)
def test_rows_built_apart_are_the_same_bytes(settings):
    """A graph rebuilt in parts is the graph."""
    stages = kernels.select('cpu', 'fused')
    guide = np.random.default_rng(4).random((50, 37), dtype=np.float32)
    config = preset('realtime', **settings)
    whole = stages.build_graph(guide, config)
    parts = np.full_like(whole, np.nan)
    for rows in ((0, 1), (1, 7), (7, 49), (49, 50)):
        stages.build_graph(guide, config, parts, rows)
    assert (parts == whole).all()


@pytest.mark.parametrize('backend', BACKENDS)
def test_symmetrise_takes_the_smaller_of_both_directions(backend):
    """min(w, w^T), checked edge by edge."""
    stages = kernels.select('cpu', backend)
    guide = np.random.default_rng(5).random((7, 6), dtype=np.float32)
    config = preset(
        'realtime', **{'graph.window': 5, 'graph.sigma_intensity': 0.5, 'graph.neighbours': 9})
    w = build(backend, guide, config)
    both = stages.array(w.copy())
    stages.symmetrise(both)
    both = stages.numpy(both)
    for o, (dy, dx) in enumerate(offsets(5)):
        for y in range(7):
            for x in range(6):
                if 0 <= y + dy < 7 and 0 <= x + dx < 6:
                    assert both[o, y, x] == min(w[o, y, x], w[-1 - o, y + dy, x + dx])
                else:
                    assert both[o, y, x] == 0


@pytest.mark.parametrize('backend', BACKENDS)
def test_normalise_leaves_lonely_pixels_alone(backend):
    """Sums become 1, or stay 0."""
    stages = kernels.select('cpu', backend)
    w = np.random.default_rng(6).random((8, 3, 4), dtype=np.float32)
    w[:, 1, 2] = 0
    scaled = stages.array(w)
    stages.normalise(scaled)
    expected = np.ones((3, 4))
    expected[1, 2] = 0
    np.testing.assert_allclose(stages.numpy(scaled).sum(axis=0), expected, rtol=1e-6)
