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
"""From frames to inverse depth, weights and guides."""

import numpy as np
import pytest

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.downsampling import downsample_image
from graph_depth_refiner.core.kernels import select
from graph_depth_refiner.core.observation import observe
from graph_depth_refiner.frame import Frame, Intrinsics

KERNELS = select('cpu', 'fused')
GOOD = {
    'image': np.zeros((6, 8, 3), np.uint8), 'depth': np.ones((6, 8), np.float32),
    'intrinsics': Intrinsics(fx=100.0, fy=100.0, cx=4.0, cy=3.0),
    'confidence': np.ones((6, 8), np.float32)}


def test_every_kind_of_invalid_depth_becomes_zero():
    depth = np.full((6, 8), 2.0, np.float32)
    depth[0, :5] = [np.nan, np.inf, -np.inf, 0.0, -1.0]
    measured = observe(KERNELS, Frame(**{**GOOD, 'depth': depth}), RefinerConfig())
    assert (measured.d[0, :5] == 0).all() and (measured.m[0, :5] == 0).all()
    assert (measured.d[1:] == 0.5).all() and (measured.m[1:] == 1).all()


def test_weights_are_one_on_average_and_confidence_as_it_came():
    confidence = np.full((6, 8), 0.25, np.float32)
    confidence[0] = 0
    confidence[1] = 0.5
    obs = observe(KERNELS, Frame(**{**GOOD, 'confidence': confidence}), RefinerConfig())
    # 40 pixels have (8 * 0.5 + 32 * 0.25) / 40 = 0.3 on average
    assert (obs.m[0] == 0).all() and np.allclose(obs.m[1], 0.5 / 0.3)
    assert np.allclose(obs.m[2:], 0.25 / 0.3) and (obs.confidence == confidence).all()


@pytest.mark.parametrize('change', [
    {'depth': np.zeros((6, 8), np.float32)}, {'confidence': np.zeros((6, 8), np.float32)}])
def test_nothing_valid_is_empty(change):
    assert observe(KERNELS, Frame(**{**GOOD, **change}), RefinerConfig()).empty
    assert not observe(KERNELS, Frame(**GOOD), RefinerConfig()).empty


@pytest.mark.parametrize('image', [
    np.full((6, 8), 51, np.uint8), np.full((6, 8, 3), 51, np.uint8),
    np.full((6, 8), 13107, np.uint16), np.full((6, 8, 3), 0.2), np.full((6, 8), 0.2, np.float32)])
@pytest.mark.parametrize('color', [False, True])
def test_guides_of_every_kind_of_image(image, color):
    config = RefinerConfig().with_values(**{'graph.color': color})
    obs = observe(KERNELS, Frame(**{**GOOD, 'image': image}), config)
    guide = downsample_image(KERNELS, obs, config).guide
    assert guide.shape == ((3, 6, 8) if color else (6, 8))
    assert guide.dtype == np.float32
    np.testing.assert_allclose(guide, 0.2, atol=1e-6)
    assert obs.grey.dtype == np.uint8 and (np.abs(obs.grey.astype(int) - 51) <= 1).all()


@pytest.mark.parametrize('columns', [3, 16, 41])
def test_variants_weigh_alike(variants, columns):
    rng = np.random.default_rng(0)
    m = (rng.random((7, columns)) < 0.7).astype('f4')
    confidence = (rng.random((7, columns)) * (rng.random((7, columns)) < 0.7)).astype('f4')
    for k in variants:
        weighed, (total, sure, valid) = k.weigh(m, confidence)
        assert (weighed == m * confidence).all()
        assert total == pytest.approx((m * confidence).sum(), rel=1e-6)
        assert (sure, valid) == (np.sum(m * confidence > 0), m.sum())


def test_variants_invert_the_same_depth(variants):
    depth = np.random.default_rng(0).uniform(0.1, 9, (7, 41)).astype(np.float32)
    depth[0, :6] = np.nan, np.inf, -np.inf, 0, -1, 1e-6
    depth[1, :2] = 0.5, 8  # the limits themselves are valid
    found = [k.inverse_depth(depth, 0.5, 8.0) for k in variants]
    for one, other in zip(*found):
        assert (one == other).all()
    d, m = found[0]
    assert not d[0, :6].any() and not m[0, :6].any()
    assert d[1, :2].tolist() == [2, 0.125] and m[1, :2].tolist() == [1, 1]
    assert ((d > 0) == (m > 0)).all() and 0 < m.sum() < m.size
