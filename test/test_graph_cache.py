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
"""The cached graph is the rebuilt graph, bit for bit, where the image is the same."""

from __future__ import annotations

import numpy as np
import pytest

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import kernels
from graph_depth_refiner.core.band_changes import BAND, TILE
from graph_depth_refiner.core.patch_graph import update

CONFIG = RefinerConfig().with_values(**{'graph.window': 5})
SHAPE = (8 * BAND, 70)


@pytest.fixture(params=['fused', 'torch'])
def backend(request):
    if request.param == 'torch':
        pytest.importorskip('torch')
    return kernels.select('cpu', request.param)


@pytest.fixture
def guide():
    return np.random.default_rng(0).random(SHAPE).astype(np.float32)


def built(backend, guide):
    return backend.numpy(backend.build_graph(backend.array(guide), CONFIG))


def test_the_same_image_is_kept(backend, guide):
    first = update(backend, None, guide, CONFIG)
    assert first.hit_rate == 0
    again = update(backend, first, guide.copy(), CONFIG)
    assert again.hit_rate == 1
    assert (backend.numpy(again.weights) == built(backend, guide)).all()


def test_a_changed_part_is_rebuilt_with_its_halo(backend, guide):
    cached = update(backend, None, guide, CONFIG)
    changed = guide.copy()
    changed[3 * BAND + 2:3 * BAND + 9, 5:40] = 0.3
    cached = update(backend, cached, changed, CONFIG)
    # one band of eight and a halo of 2 + 1 rows on both sides
    assert cached.hit_rate == pytest.approx(1 - (BAND + 6) / SHAPE[0])
    assert (backend.numpy(cached.weights) == built(backend, changed)).all()


def test_noise_keeps_what_it_was_built_from(backend, guide):
    cached = update(backend, None, guide, CONFIG)
    noisy = guide + np.float32(0.3 * CONFIG.graph.tolerance)
    cached = update(backend, cached, noisy, CONFIG)
    assert cached.hit_rate == 1
    assert (cached.guide == guide).all()


def test_slow_change_adds_up(backend, guide):
    # each frame is close to the last one, but the graph remembers what it was built from
    cached = update(backend, None, guide, CONFIG)
    for k in range(1, 4):
        frame = guide + np.float32(0.4 * k * CONFIG.graph.tolerance)
        cached = update(backend, cached, frame, CONFIG)
    assert cached.hit_rate == 0 and (cached.guide == frame).all()


def test_other_settings_or_sizes_build_anew(backend, guide):
    cached = update(backend, None, guide, CONFIG)
    other = CONFIG.with_values(**{'graph.sigma_intensity': 0.2})
    assert update(backend, cached, guide, other).hit_rate == 0
    assert update(backend, cached, guide[:, :50].copy(), CONFIG).weights.shape[-1] == 50


@pytest.mark.parametrize('shape', [(5, 7), (2 * BAND + 1, 2 * TILE + 11), (3, BAND, TILE)])
def test_a_band_changed_as_much_as_its_worst_tile(backend, shape):
    before, now = np.random.default_rng(0).random((2, *shape), np.float32)
    planes = np.abs(before - now).reshape(-1, *shape[-2:])
    tiles = max(1, shape[-1] // TILE)
    expected = [
        max(tile.mean() for plane in planes
            for tile in np.array_split(plane[top:top + BAND], [
                shape[-1] * k // tiles for k in range(1, tiles)], axis=1))
        for top in range(0, shape[-2], BAND)]
    np.testing.assert_allclose(backend.band_changes.band_changes(before, now), expected, rtol=1e-5)
