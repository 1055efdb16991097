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
"""Test that every method of the evaluation answers in the same form."""

import numpy as np
import pytest

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.lab.evaluation import baselines
from graph_depth_refiner.lab.evaluation.baselines import methods, OURS, Pair, Task

CAMERA = Intrinsics(100.0, 100.0, 23.5, 17.5, 0.1)
# few steps: here it matters that they run, not what they reach
CONFIG = RefinerConfig().with_values(**{'solver.iterations': 2})


def task():
    """Return a fronto-parallel wall at disparity 10 px with a hole."""
    rng = np.random.default_rng(0)
    disparity = np.full((36, 48), 10, np.float32)
    depth = 10 / disparity
    depth[10:14, 20:24] = np.nan
    frame = Frame(rng.integers(0, 255, (36, 48, 3), np.uint8), depth, CAMERA,
                  np.isfinite(depth).astype(np.float32))
    return Task(frame, Pair(np.where(np.isfinite(depth), disparity, np.nan), disparity, 0.0))


def test_what_is_there_and_what_is_absent_is_everything():
    everything = {
        'raw', 'nearest', 'background', 'median', 'weighted-median', 'bilateral', 'wls',
        'guided', 'fgs', 'bilateral-solver', 'librealsense', 'nltgv', 'paper',
        'ours-converged', OURS}
    assert set(methods(CONFIG)) | set(baselines.absent()) == everything
    assert not set(methods(CONFIG)) & set(baselines.absent())


@pytest.mark.parametrize('name', [
    'raw', 'nearest', 'background', 'median', 'weighted-median', 'bilateral', 'wls', 'guided',
    'fgs', 'bilateral-solver', 'librealsense', OURS])
def test_a_wall_stays_a_wall(name):
    known = methods(CONFIG)
    if name not in known:
        pytest.skip(baselines.absent()[name])
    estimate = known[name](task())
    assert estimate.depth.shape == (36, 48)
    assert estimate.depth.dtype == np.float32
    closed = estimate.depth if name != 'raw' else estimate.depth[:10]
    np.testing.assert_allclose(closed, 1.0, rtol=0.02)


def test_one_scene_does_not_change_the_next():
    method = methods(CONFIG)[OURS]
    other = Task(Frame(
        np.zeros((36, 48, 3), np.uint8), np.full((36, 48), 3, np.float32), CAMERA))
    first = method(task())
    method(other)
    np.testing.assert_array_equal(method(task()).depth, first.depth)


def test_without_ximgproc_its_methods_are_absent(monkeypatch):
    monkeypatch.delattr(baselines.cv2, 'ximgproc')
    gone = baselines.absent()
    assert {'wls', 'guided', 'fgs', 'weighted-median', 'bilateral-solver'} <= set(gone)
    assert 'opencv-contrib' in gone['wls']
    assert 'wls' not in methods(CONFIG)
