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
"""Tracked corners tell how the camera moved, whatever else moves."""

from __future__ import annotations

import cv2
import numpy as np

from graph_depth_refiner.core.feature_tracking import corners, estimate_pose_pnp, TILE
from graph_depth_refiner.frame import Intrinsics

K = Intrinsics(100.0, 100.0, 80.0, 60.0)
SHAPE = (120, 160)


def texture():
    """Return smooth random shades in [0, 1], larger than the image."""
    noise = np.random.default_rng(0).random((SHAPE[0], SHAPE[1] + 40)).astype(np.float32)
    smooth = cv2.GaussianBlur(noise, (0, 0), 1.5)
    return (smooth - smooth.min()) / np.ptp(smooth)


def test_a_wall_that_moves_past_is_a_camera_that_moves():
    shades = texture()
    before, now = shades[:, 20:180], shades[:, 23:183]  # the wall moves left by 3 pixels
    d = np.full(SHAPE, 0.5, np.float32)
    motion = estimate_pose_pnp(before, now, d, K)
    # 3 px = f t / z, so t = 3 * 2 / 100 = 0.06 m to the left; no pixel is off by half of one
    ends = [motion[:3, :3] @ point + motion[:3, 3] for point in ((0, 0, 2), (1.2, 0.8, 2))]
    assert np.allclose(ends, [(-0.06, 0, 2), (1.14, 0.8, 2)], atol=0.01)


def test_a_large_thing_that_stays_in_view_is_outvoted():
    shades = texture()
    before, now = shades[:, 20:180].copy(), shades[:, 23:183].copy()
    now[30:90, 50:110] = before[30:90, 50:110]  # a fifth of the image moves with the camera
    d = np.full(SHAPE, 0.5, np.float32)
    d[30:90, 50:110] = 1.0
    motion = estimate_pose_pnp(before, now, d, K)
    assert abs((motion[:3, :3] @ (0, 0, 2) + motion[:3, 3])[0] + 0.06) < 0.01


def test_no_guess_without_corners_or_depth():
    flat = np.full(SHAPE, 0.5, np.float32)
    shades = texture()[:, :160]
    other = np.random.default_rng(1).random(SHAPE).astype(np.float32)
    assert estimate_pose_pnp(shades, shades, 0 * flat, K) is None
    assert estimate_pose_pnp(shades, other, flat, K) is None
    assert estimate_pose_pnp(shades[:20, :20], shades[:20, :20], flat[:20, :20], K) is None


def test_every_tile_has_its_best_corner():
    side = 2 * TILE  # in the image itself
    image = np.zeros((2 * side, 3 * side), np.uint8)
    top, left = side + 6, 2 * side + 6
    image[top:, left:] = 255  # one corner, in the last tile
    x, y = corners(image)
    assert len(x) == 6 and abs(x[5] - left) <= 2 and abs(y[5] - top) <= 2
