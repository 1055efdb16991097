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
"""
A first estimate of the camera's motion: corners followed from image to image.

The best corner of every tile (Shi and Tomasi, CVPR 1994) is tracked by pyramidal Lucas-Kanade
and the pose found by AP3P (Ke and Roumeliotis, CVPR 2017) inside RANSAC.
"""

from __future__ import annotations

import cv2
import numpy as np

from graph_depth_refiner.core.statistics import upper_median
from graph_depth_refiner.frame import Intrinsics

TILE = 14  # pixels of the halved image; the best corner of every tile is followed
CORNER = 3  # pixels of it, side of the window a corner must show in
WINDOW, LEVELS = 15, 4  # side of the window that is followed, and levels of the pyramid above
# pixels, shorter side of images that are followed at half their size, at half the price
LARGE, HALVED_WINDOW = 200, 11
# what is found is only where a search begins: so many steps, and pixels of a step that end them
SETTLED = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 8, 0.05)
CLOSE = 1.5  # pixels by which a corner may be off the motion it belongs to
TRIES = 50  # motions that are guessed
LEAST, LEAST_SHARE = 15, 0.25  # corners that must agree, and their share of those found again


def estimate_pose_pnp(before: np.ndarray, now: np.ndarray, d: np.ndarray,
                      intrinsics: Intrinsics) -> np.ndarray | None:
    """
    Return the motion P' = R P + t, 4 4, that most corners agree with, None if too few do.

    The images are H W in [0, 1]; d is the inverse depth of the first, 0 where unknown. What
    moves by itself is an outlier as long as it is the smaller part.
    """
    if min(before.shape) < 4 * TILE:
        return None
    images = [(image * np.float32(255)).astype(np.uint8) for image in (before, now)]
    x, y = corners(images[0])
    start = np.stack([x, y], axis=-1).astype(np.float32)  # N 2
    scale, window, levels = 1, WINDOW, LEVELS
    if min(before.shape) >= LARGE:
        scale, window, levels = 2, HALVED_WINDOW, LEVELS - 1
        images = [halved(one) for one in images]
    end, found, _ = cv2.calcOpticalFlowPyrLK(
        images[0], images[1], start / scale, start / scale, winSize=(window, window),
        maxLevel=levels, criteria=SETTLED)
    end *= scale  # of halved images off by half a pixel, as the start is
    known = (found[:, 0] > 0) & (d[y, x] > 0)
    if np.count_nonzero(known) < LEAST:
        return None
    k = intrinsics
    rays = np.stack([(x - k.cx) / k.fx, (y - k.cy) / k.fy, np.ones(len(x))], axis=-1)[known]
    points = rays / d[y, x][known, None]  # N 3
    unit = upper_median(points[:, 2])  # free of the scale of the scene
    camera = np.array([[k.fx, 0, k.cx], [0, k.fy, k.cy], [0, 0, 1]])
    try:
        done, rotation, shift, agreeing = cv2.solvePnPRansac(
            points / unit, end[known].astype(np.float64), camera, None, iterationsCount=TRIES,
            reprojectionError=CLOSE, flags=cv2.SOLVEPNP_AP3P)
    except cv2.error:  # points that no camera could see
        return None
    if not done or len(agreeing) < max(LEAST, LEAST_SHARE * len(points)):
        return None
    motion = np.eye(4)
    motion[:3, :3], motion[:3, 3] = cv2.Rodrigues(rotation)[0], unit * shift[:, 0]
    return motion if np.isfinite(motion).all() else None


def corners(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return column and row of the best corner of every tile of an image, H W uint8."""
    small = halved(image)
    rows, columns = (side // TILE for side in small.shape)
    score = cv2.cornerMinEigenVal(small, CORNER)[:rows * TILE, :columns * TILE]
    tiles = score.reshape(rows, TILE, columns, TILE).swapaxes(1, 2).reshape(-1, TILE * TILE)
    best, tile = tiles.argmax(axis=1), np.arange(rows * columns)
    return (2 * (tile % columns * TILE + best % TILE),
            2 * (tile // columns * TILE + best // TILE))


def halved(image: np.ndarray) -> np.ndarray:
    """Return an image, H W, of half its size, by averages."""
    return cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
