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
"""The patch graph against a double loop over pixels and patches, and its cache."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scenes import run

from graph_depth_refiner.config import preset, RefinerConfig
from graph_depth_refiner.core.kernels import Kernels
from graph_depth_refiner.core.patch_graph import BAND, offsets, TILE, update_graph

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


def build(k: Kernels, guide: np.ndarray, config: RefinerConfig) -> np.ndarray:
    """Return the graph of a guide as numpy."""
    return k.numpy(k.build_graph(k.array(guide), config))


@pytest.mark.parametrize('settings', SETTINGS)
@pytest.mark.parametrize('shape', [(9, 13), (3, 12, 7), (2, 3), (1, 1)])
def test_graph_is_that_of_the_double_loop(kernels, settings, shape):
    """Every weight agrees, borders and images smaller than the window included."""
    guide = np.random.default_rng(1).random(shape, dtype=np.float32)
    config = preset('realtime', **{'graph.sigma_intensity': 0.3}, **settings)
    expected = brute_force(guide, config)
    w = build(kernels, guide, config)
    # float32 exponents of up to 20 are known to 20 * 2^-23, so are the weights, relatively
    np.testing.assert_allclose(w, expected, rtol=1e-5, atol=3e-6)


def test_weights_of_unlike_patches_still_sum_to_one(kernels):
    """Exponents far beyond the range of exp are no reason to lose a pixel."""
    guide = np.random.default_rng(2).random((8, 9), dtype=np.float32)
    config = preset('realtime', **{'graph.sigma_intensity': 0.01})
    w = build(kernels, guide, config)
    np.testing.assert_allclose(w.sum(axis=0), 1, rtol=1e-5)
    # the exponents are about 10^4, so float32 knows their differences to some 10^-3
    np.testing.assert_allclose(w, brute_force(guide, config), atol=5e-3)


def test_ties_are_resolved_alike(variants):
    """On a coarsely quantised image many weights are equal; the earlier offset is kept."""
    rng = np.random.default_rng(3)
    guide = (rng.integers(0, 4, (30, 41)) / 255).astype(np.float32)
    config = preset('paper')
    fused, plain = (build(k, guide, config) for k in variants)
    assert ((fused > 0) == (plain > 0)).all()
    np.testing.assert_allclose(fused, plain, rtol=1e-6)


def test_equal_weights_keep_the_earlier_offset(kernels):
    """In a flat image the 4 nearest are equal; K = 2 keeps those above and to the left."""
    config = preset('realtime', **{'graph.window': 5, 'graph.neighbours': 2})
    w = build(kernels, np.full((5, 5), 0.5, np.float32), config)
    kept = [step for step, weight in zip(offsets(5), w[:, 2, 2]) if weight > 0]
    assert kept == [(-1, 0), (0, -1)]


@pytest.mark.parametrize('settings', SETTINGS)
def test_rows_built_apart_are_the_same_bytes(kernels, settings):
    """A graph rebuilt in parts is the graph."""
    guide = kernels.array(np.random.default_rng(4).random((50, 37), dtype=np.float32))
    config = preset('realtime', **settings)
    whole = kernels.build_graph(guide, config)
    parts = whole + np.nan
    for rows in ((0, 1), (1, 7), (7, 49), (49, 50)):
        kernels.build_graph(guide, config, parts, rows)
    assert (parts == whole).all()


def test_symmetrise_takes_the_smaller_of_both_directions(kernels):
    """min(w, w^T), checked edge by edge."""
    guide = np.random.default_rng(5).random((7, 6), dtype=np.float32)
    config = preset(
        'realtime', **{'graph.window': 5, 'graph.sigma_intensity': 0.5, 'graph.neighbours': 9})
    w = build(kernels, guide, config)
    both = kernels.array(w.copy())
    kernels.symmetrise(both)
    both = kernels.numpy(both)
    for o, (dy, dx) in enumerate(offsets(5)):
        for y in range(7):
            for x in range(6):
                if 0 <= y + dy < 7 and 0 <= x + dx < 6:
                    assert both[o, y, x] == min(w[o, y, x], w[-1 - o, y + dy, x + dx])
                else:
                    assert both[o, y, x] == 0


def test_normalise_leaves_lonely_pixels_alone(kernels):
    """Sums become 1, or stay 0."""
    w = np.random.default_rng(6).random((8, 3, 4), dtype=np.float32)
    w[:, 1, 2] = 0
    scaled = kernels.array(w)
    kernels.normalise(scaled)
    expected = np.ones((3, 4))
    expected[1, 2] = 0
    np.testing.assert_allclose(kernels.numpy(scaled).sum(axis=0), expected, rtol=1e-6)


# ------------------------------------------------- the cache: rebuilt only where the image changed

CONFIG = RefinerConfig().with_values(**{'graph.window': 5})
CACHE_SHAPE = (8 * BAND, 70)


def update(k, cached, guide, config):
    return update_graph(k, cached, k.array(guide), config)


@pytest.fixture
def guide():
    return np.random.default_rng(0).random(CACHE_SHAPE).astype(np.float32)


def test_the_same_image_is_kept(kernels, guide):
    first = update(kernels, None, guide, CONFIG)
    assert first.hit_rate == 0
    again = update(kernels, first, guide.copy(), CONFIG)
    assert again.hit_rate == 1
    assert (kernels.numpy(again.weights) == build(kernels, guide, CONFIG)).all()


def test_a_changed_part_is_rebuilt_with_its_halo(kernels, guide):
    cached = update(kernels, None, guide, CONFIG)
    changed = guide.copy()
    changed[3 * BAND + 2:3 * BAND + 9, 5:40] = 0.3
    cached = update(kernels, cached, changed, CONFIG)
    # one band of eight and a halo of 2 + 1 rows on both sides
    assert cached.hit_rate == pytest.approx(1 - (BAND + 6) / CACHE_SHAPE[0])
    assert (kernels.numpy(cached.weights) == build(kernels, changed, CONFIG)).all()


def test_noise_keeps_what_it_was_built_from(kernels, guide):
    cached = update(kernels, None, guide, CONFIG)
    noisy = guide + np.float32(0.3 * CONFIG.graph.tolerance)
    cached = update(kernels, cached, noisy, CONFIG)
    assert cached.hit_rate == 1
    assert (kernels.numpy(cached.guide) == guide).all()


def test_slow_change_adds_up(kernels, guide):
    # each frame is close to the last one, but the graph remembers what it was built from
    cached = update(kernels, None, guide, CONFIG)
    for k in range(1, 4):
        frame = guide + np.float32(0.4 * k * CONFIG.graph.tolerance)
        cached = update(kernels, cached, frame, CONFIG)
    assert cached.hit_rate == 0 and (kernels.numpy(cached.guide) == frame).all()


def test_other_settings_or_sizes_build_anew(kernels, guide):
    cached = update(kernels, None, guide, CONFIG)
    other = CONFIG.with_values(**{'graph.sigma_intensity': 0.2})
    assert update(kernels, cached, guide, other).hit_rate == 0
    assert update(kernels, cached, guide[:, :50].copy(), CONFIG).weights.shape[-1] == 50


@pytest.mark.parametrize('shape', [(5, 7), (2 * BAND + 1, 2 * TILE + 11), (3, BAND, TILE)])
def test_a_band_changed_as_much_as_its_worst_tile(kernels, shape):
    before, now = np.random.default_rng(0).random((2, *shape), np.float32)
    planes = np.abs(before - now).reshape(-1, *shape[-2:])
    tiles = max(1, shape[-1] // TILE)
    expected = [
        max(tile.mean() for plane in planes
            for tile in np.array_split(plane[top:top + BAND], [
                shape[-1] * k // tiles for k in range(1, tiles)], axis=1))
        for top in range(0, shape[-2], BAND)]
    found = run(kernels, kernels.band_changes, before, now)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
