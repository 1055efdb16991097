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
"""The RealSense-style filter does what its documentation says."""

from __future__ import annotations

import numpy as np

from graph_depth_refiner.lab.evaluation.realsense import RealsenseFilter, TEMPORAL_ALPHA


def test_a_flat_scene_is_blended_over_time():
    # disparity is a mean with weight alpha for the new one, and 1 / depth is proportional
    depth_filter = RealsenseFilter()
    depth_filter.filter(np.full((8, 10), 2.0))
    filtered = depth_filter.filter(np.full((8, 10), 2.01))
    expected = 1 / (TEMPORAL_ALPHA / 2.01 + (1 - TEMPORAL_ALPHA) / 2.0)
    assert np.allclose(filtered, expected, rtol=1e-6)


def test_a_jump_is_taken_as_it_is():
    depth_filter = RealsenseFilter()
    depth_filter.filter(np.full((8, 10), 2.0))
    assert np.allclose(depth_filter.filter(np.full((8, 10), 1.0)), 1.0)


def test_a_step_in_space_stays_and_noise_shrinks():
    rng = np.random.default_rng(0)
    depth = np.where(np.arange(40) < 20, 1.0, 2.0) + 0.005 * rng.standard_normal((30, 40))
    filtered = RealsenseFilter().filter(depth)
    assert np.abs(filtered[:, :20] - 1).mean() < 0.5 * np.abs(depth[:, :20] - 1).mean()
    assert np.abs(filtered[:, 20] - 2).max() < 0.1


def test_a_hole_keeps_what_was_often_there():
    depth_filter = RealsenseFilter()
    depth = np.full((8, 10), 2.0)
    for _ in range(3):
        depth_filter.filter(depth)
    depth[4, 4] = 0
    assert np.allclose(depth_filter.filter(depth)[4, 4], 2.0)
    depth_filter.reset()
    assert np.isnan(depth_filter.filter(depth)[4, 4])
