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
"""The paper's measures against numbers derived by hand."""

import numpy as np
import pytest

from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.evaluation.metrics import (
    depth_errors,
    derivative_normals,
    disparity_errors,
    missing,
    normal_errors,
)

NAN = float('nan')


def test_disparity_errors():
    truth = np.array([[10, 10, 10, 10, NAN]])
    found = np.array([[10.5, 10.75, 12, 6, 99]])
    # errors 0.5, 0.75, 2, 4 where the truth is known; an error of the limit itself is good;
    # mean 7.25 / 4; squares 0.25 + 0.5625 + 4 + 16 = 20.8125, over 4
    assert disparity_errors(found, truth) == pytest.approx({
        'bad0.5': 75, 'bad1': 50, 'bad2': 25, 'bad3': 25,
        'avgerr': 1.8125, 'rms': np.sqrt(20.8125 / 4)})


def test_a_missing_estimate_counts_as_0():
    truth, found = np.array([[10.0, 10]]), np.array([[10, NAN]])
    errors = disparity_errors(found, truth)
    assert errors['bad3'] == 50 and errors['avgerr'] == 5
    assert missing(found) == 50


def test_depth_errors():
    truth = np.array([[2.0, 2, 4, NAN]])
    found = np.array([[2.01, 2.03, 4.4, 1]])
    # errors 1, 3 and 40 cm; relative 0.5, 1.5 and 10 %
    assert depth_errors(found, truth) == pytest.approx({
        '2cm': 200 / 3, '5cm': 100 / 3, 'avgerr': 0.44 / 3,
        'rms': np.sqrt((0.01 ** 2 + 0.03 ** 2 + 0.4 ** 2) / 3), 'relative': 4})


def test_normal_errors():
    angles = np.radians([0, 10, 20, 0])
    found = np.stack([np.sin(angles), 0 * angles, -np.cos(angles)], axis=-1)[None]  # 1 4 3
    found[0, 3] = NAN  # counts as 90 degrees
    truth = np.broadcast_to([0.0, 0, -1], (1, 4, 3))
    assert normal_errors(found, truth) == pytest.approx({
        'normal_mean': 30, 'normal_median': 15, 'normal_below11.25': 50}, abs=1e-5)


def test_unknown_normals_do_not_count():
    truth = np.array([[[0, 0, -1], [NAN, NAN, NAN]]])
    assert normal_errors(np.array([[[0, 0, -1.0], [0, 0, 1]]]), truth)['normal_mean'] == 0


def test_wrong_shapes_and_no_truth_are_refused():
    with pytest.raises(ValueError, match=r'estimate: expected shape \(2, 2\), got \(1, 2\)'):
        disparity_errors(np.ones((1, 2)), np.ones((2, 2)))
    with pytest.raises(ValueError, match='truth: expected at least one known pixel, got none'):
        disparity_errors(np.ones((1, 2)), np.full((1, 2), NAN))


@pytest.mark.parametrize('sigma', [0.2, 1.0])
def test_normals_of_a_slanted_plane_are_exact(sigma):
    # n.P = rho seen by a pinhole: 1 / Z = n.ray / rho, a plane of inverse depth
    camera = Intrinsics(50.0, 60.0, 10.0, 8.0)
    normal = np.array([0.3, -0.4, -np.sqrt(1 - 0.25)])
    y, x = np.mgrid[:16, :20]
    ray = np.stack([(x - 10) / 50, (y - 8) / 60, np.ones((16, 20))], axis=-1)
    depth = -2 / (ray @ normal)
    found = derivative_normals(depth, camera, sigma)
    np.testing.assert_allclose(
        found[2:-2, 2:-2], np.broadcast_to(normal, (12, 16, 3)), atol=1e-9)
    assert np.isnan(found[:2]).all() and np.isnan(found[:, -2:]).all()


def test_normals_near_a_gap_are_unknown():
    depth = np.ones((15, 15))
    depth[7, 7] = NAN
    found = derivative_normals(depth, Intrinsics(50.0, 50.0, 7.0, 7.0))
    assert np.isnan(found[5:10, 5:10]).all() and np.isfinite(found[4, 2:13]).all()
