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
"""Confidence images of different cameras, and confidence from depth alone."""

import numpy as np
import pytest

from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.messages import confidence, kernels
from graph_depth_refiner.messages.confidence import derived, meaning, normalised


def turned(values, **settings):
    """Turn values into confidence as the settings say."""
    values = np.array([values], np.float32)
    return normalised(values, meaning(NodeConfig().with_values(**settings)))[0].tolist()


@pytest.mark.parametrize('preset, values, expected', [
    ('zed', [0, 25, 100, np.nan], [1, 0.75, 0, 0]),
    ('l515', [0, 15, 1.4, 3], [0, 1, 0, 0.2]),
    ('tof_amplitude', [0, 250, 5000, 5], [0, 0.5, 1, 0]),
    ('unit', [0, 0.5, 1, np.nan], [0, 0.5, 1, 0]),
    ('percent', [0, 50, 100, 120], [0, 0.5, 1, 1]),
])
def test_presets(preset, values, expected):
    assert turned(values, **{'confidence.preset': preset}) == pytest.approx(expected)


def test_scale_polarity_and_threshold_go_before_the_preset():
    assert turned(
        [0, 64, 255, 200], **{'confidence.scale': 255.0, 'confidence.polarity': 'lower',
                              'confidence.threshold': 0.5}) == pytest.approx([1, 191 / 255, 0, 0])


def test_infinite_values_stay_within_bounds():
    assert turned([np.inf, -np.inf]) == [1, 0]


def test_none_means_derived():
    assert meaning(NodeConfig().with_values(**{'confidence.preset': 'none'})) is None


def noisy_plane(seed=0):
    """Return the depth of a slanted plane, linear in inverse depth, with 0.2 % noise."""
    y, x = np.mgrid[:40, :60]
    inverse = 0.5 + 0.005 * x + 0.002 * y
    noise = np.random.default_rng(seed).normal(0, 0.001, inverse.shape)
    return (1 / (inverse + noise)).astype(np.float32)


def test_a_plane_is_trusted_however_slanted():
    assert (derived(noisy_plane())[1:-1, 1:-1] == 1).mean() > 0.98


def test_invalid_depth_is_not():
    depth = noisy_plane()
    depth[5, 5:10] = [0, np.nan, np.inf, -1, -np.inf]
    assert (derived(depth)[5, 5:10] == 0).all()


def test_jumps_and_outliers_are_trusted_less():
    depth = noisy_plane()
    depth[:, 30:] *= 2  # an edge
    depth[20, 10] *= 1.5  # a flying pixel
    found = derived(depth)
    assert (found[1:-1, 29:31] <= 0.3).all()
    assert found[20, 10] <= np.float32(0.1)
    assert (found[25:35, 5:25] == 1).mean() > 0.98


@pytest.mark.parametrize('depth', [
    np.zeros((1, 1)), np.full((1, 1), 2.0), np.full((3, 200), np.nan), np.full((5, 5), 1e-30)])
def test_small_and_empty_depth(depth):
    found = derived(depth.astype(np.float32))
    assert found.shape == depth.shape
    assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.parametrize('shape', [(1, 1), (1, 7), (7, 1), (2, 2), (40, 60)])
def test_both_variants_agree(monkeypatch, shape):
    pytest.importorskip('numba')
    depth = np.ascontiguousarray(noisy_plane()[:shape[0], :shape[1]])
    depth[:, shape[1] // 2:] *= 2
    depth.ravel()[::9] = np.resize([0, np.nan, np.inf, -1, 1e-45, 3e38], depth.ravel()[::9].shape)
    found = []
    for variant in (kernels.numba_kernels(), kernels.numpy_kernels()):
        monkeypatch.setattr(confidence, 'kernels', lambda variant=variant: variant)
        found.append(derived(depth))
    # bends are summed in another order, which may decide at the very limit
    assert (found[0] != found[1]).mean() <= 1e-3
    if depth.size > 100:
        assert {0, np.float32(0.1), np.float32(0.3), 1} == set(found[0].ravel().tolist())
