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
"""Calibrations: models, binning, regions of interest, and what is refused."""

import cv2
import numpy as np
import pytest
from sensor_msgs.msg import CameraInfo, RegionOfInterest

from graph_depth_refiner.messages.camera_info import camera_model, Cameras

SHAPE = (240, 320)
BARREL = [-0.2, 0.05, 0.001, -0.002, 0.01]
MORE = [0.1, 0.02, 0.003, 0.002, -0.001, 0.003, 0.001, 0.01, -0.02]  # up to the tilted sensor


def camera_info(**changes):
    """Return a calibration of 320x240 whose P differs from K."""
    fields = {
        'height': 240, 'width': 320, 'distortion_model': 'plumb_bob', 'd': [0.0] * 5,
        'k': [300.0, 0.0, 160.0, 0.0, 310.0, 120.0, 0.0, 0.0, 1.0],
        'p': [290.0, 0.0, 158.0, 0.0, 0.0, 295.0, 119.0, 0.0, 0.0, 0.0, 1.0, 0.0]}
    return CameraInfo(**{**fields, **changes})


def numbers(model):
    """Return fx, fy, cx, cy."""
    i = model.intrinsics
    return i.fx, i.fy, i.cx, i.cy


@pytest.mark.parametrize('model, d', [
    ('plumb_bob', [0.0] * 5), ('plumb_bob', []), ('rational_polynomial', [0.0] * 8), ('', [])])
def test_without_distortion_p_counts(model, d):
    info = camera_info(distortion_model=model, d=d)
    assert numbers(camera_model(info, SHAPE, 'refuse')) == (290, 295, 158, 119)


def test_k_counts_where_p_is_empty():
    assert numbers(camera_model(camera_info(p=[0.0] * 12), SHAPE, 'refuse')) == (
        300, 310, 160, 120)


def test_binning_and_region_of_interest():
    # pixels 20.. and 40.. of the full image, every second one: (158 - 20) / 2, (119 - 40) / 2
    info = camera_info(
        binning_x=2, binning_y=2,
        roi=RegionOfInterest(x_offset=20, y_offset=40, width=200, height=100))
    assert numbers(camera_model(info, (50, 100), 'refuse')) == (145, 147.5, 69, 39.5)


@pytest.mark.parametrize('model, d', [
    (model, [*BARREL, *MORE][:count])
    for model in ('plumb_bob', 'rational_polynomial') for count in (4, 5, 8, 12, 14)])
def test_undistortion_straightens(model, d):
    """A point drawn where the lens puts it ends where a pinhole would have put it."""
    info = camera_info(distortion_model=model, d=d)
    camera = np.array(info.k).reshape(3, 3)
    straight = np.array([[250.0, 60.0]])  # of the pinhole with the same K
    ray = np.append((straight[0] - camera[:2, 2]) / camera[[0, 1], [0, 1]], 1)
    seen = cv2.projectPoints(ray[None], np.zeros(3), np.zeros(3), camera, np.array(d))[0]
    y, x = np.mgrid[:240, :320]
    blob = np.exp(-((x - seen[0, 0, 0]) ** 2 + (y - seen[0, 0, 1]) ** 2) / 18)
    model = camera_model(info, SHAPE, 'undistort')
    moved = model.undistorted(blob.astype(np.float32))
    centre = (moved * [[x], [y]]).sum(axis=(2, 3))[:, 0] / moved.sum()
    assert np.linalg.norm(seen[0, 0] - straight[0]) > 1  # there was something to straighten
    np.testing.assert_allclose(centre, straight[0], atol=0.2)
    assert numbers(model) == (300, 310, 160, 120)


@pytest.mark.parametrize('d', [[0.0] * 4, [0.02, -0.01, 0.003, -0.001]])
def test_a_fisheye_is_straightened(d):
    # a ray at angle theta is seen at f theta (1 + k1 theta^2 + ...), a pinhole has f tan theta
    info = camera_info(distortion_model='equidistant', d=d)
    theta = np.arctan(90 / 300)
    seen = 300 * theta * (1 + sum(k * theta ** (2 * n + 2) for n, k in enumerate(d)))
    ramp = np.mgrid[:240, :320][1].astype(np.float32)
    model = camera_model(info, SHAPE, 'undistort')
    # 90 px right of the centre, where the pinhole sees it, is what the lens put at `seen`
    assert model.undistorted(ramp)[120, 250] == pytest.approx(160 + seen, abs=0.05)
    with pytest.raises(ValueError, match='camera_info: expected no distortion, got equidistant'):
        camera_model(info, SHAPE, 'refuse')


def test_undistorted_depth_is_not_mixed():
    depth = np.where(np.mgrid[:240, :320][1] < 160, 1.0, 5.0).astype(np.float32)
    model = camera_model(camera_info(d=BARREL), SHAPE, 'undistort')
    assert set(np.unique(model.undistorted(depth, nearest=True))) <= {0.0, 1.0, 5.0}


def test_undistorted_info_says_so():
    info = camera_info(d=BARREL, binning_x=1)
    fields = camera_model(info, SHAPE, 'undistort').camera_info(info)
    assert not any(fields['d'])
    assert fields['k'][0] == fields['p'][0] == 300


def test_distortion_is_never_used_silently():
    info = camera_info(d=BARREL)
    with pytest.raises(ValueError, match='camera_info: expected no distortion.*`distortion`'):
        camera_model(info, SHAPE, 'refuse')
    assert numbers(camera_model(info, SHAPE, 'rectified')) == (290, 295, 158, 119)


@pytest.mark.parametrize('changes, sentence', [
    ({'k': [0.0] * 9, 'p': [0.0] * 12}, 'camera_info: intrinsics.fx: expected a positive'),
    ({'p': [float('nan')] * 12}, 'camera_info: intrinsics.fx'),
    ({'width': 640}, 'camera_info: expected the size of the depth 320x240.*got 640x240'),
    ({'width': 0, 'height': 0}, 'got 0x0'),
    ({'binning_x': 4}, 'got 80x240'),
    ({'distortion_model': 'thin_prism', 'd': [0.1] * 4},
     "expected plumb_bob, rational_polynomial, equidistant or no distortion, got 'thin_prism'"),
    ({'distortion_model': 'equidistant', 'd': [0.1] * 5}, 'camera_info.d: expected 4 finite'),
    ({'d': [0.1] * 3}, 'camera_info.d: expected 4, 5, 8, 12, 14 finite numbers for plumb_bob'),
    ({'d': [float('nan')] * 5}, 'camera_info.d: expected 4, 5, 8, 12, 14 finite'),
])
def test_what_is_no_camera_is_refused(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        camera_model(camera_info(**changes), SHAPE, 'undistort')


def test_a_known_camera_is_kept_and_a_new_one_noticed():
    cameras = Cameras()
    first = cameras.model(camera_info(d=BARREL), SHAPE, 'undistort')
    assert cameras.model(camera_info(d=BARREL), SHAPE, 'undistort') is first
    assert cameras.model(camera_info(), SHAPE, 'undistort') is not first
