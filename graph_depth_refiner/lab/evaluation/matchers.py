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
"""Disparity maps from OpenCV's matchers, with left-right consistency as confidence."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np

FRACTION = 16.0  # OpenCV writes disparities in sixteenths of a pixel
CONSISTENCY = 0.5  # px within which the left and the right map agree

Match = Callable[[np.ndarray, np.ndarray], np.ndarray]


def sgbm(left: np.ndarray, right: np.ndarray, disparities: int) -> tuple[np.ndarray, np.ndarray]:
    """Match semi-globally in colour; return disparity (NaN where none) and confidence."""
    matcher = cv2.StereoSGBM_create(
        minDisparity=0, numDisparities=_sixteens(disparities), blockSize=5, P1=200, P2=800,
        preFilterCap=31, uniquenessRatio=5, mode=cv2.StereoSGBM_MODE_HH)
    return _both_ways(matcher.compute, left, right, _sixteens(disparities))


def bm(left: np.ndarray, right: np.ndarray, disparities: int) -> tuple[np.ndarray, np.ndarray]:
    """Match blocks in grey; return disparity (NaN where none) and confidence."""
    matcher = cv2.StereoBM_create(numDisparities=_sixteens(disparities), blockSize=13)
    matcher.setUniquenessRatio(5)
    matcher.setTextureThreshold(5)
    return _both_ways(matcher.compute, _grey(left), _grey(right), _sixteens(disparities))


MATCHERS = {'SGBM': sgbm, 'BM': bm}


def consistent(left: np.ndarray, right: np.ndarray, within: float = CONSISTENCY) -> np.ndarray:
    """Return 1 where the disparity of the left map is found again in the right map, else 0."""
    rows, columns = left.shape
    x = np.arange(columns)[None, :] - np.rint(np.nan_to_num(left)).astype(int)  # H W
    seen = np.take_along_axis(right, np.clip(x, 0, columns - 1), axis=1)
    agree = (x >= 0) & (np.abs(left - seen) <= within)  # false for NaN
    return agree.astype(np.float32)


def _both_ways(
        compute: Match, left: np.ndarray, right: np.ndarray, disparities: int,
) -> tuple[np.ndarray, np.ndarray]:
    disparity = _padded(compute, left, right, disparities)
    # seen in a mirror the right image is the left one of the pair
    mirrored = _padded(compute, right[:, ::-1], left[:, ::-1], disparities)
    return disparity, consistent(disparity, mirrored[:, ::-1])


def _padded(compute: Match, left: np.ndarray, right: np.ndarray, disparities: int) -> np.ndarray:
    """Match the whole width: OpenCV leaves out the columns whose search range is cut."""
    left, right = (
        cv2.copyMakeBorder(np.ascontiguousarray(image), 0, 0, disparities, 0, cv2.BORDER_REPLICATE)
        for image in (left, right))
    disparity = compute(left, right)[:, disparities:].astype(np.float32) / np.float32(FRACTION)
    return np.where(disparity >= 0, disparity, np.float32(np.nan))  # H W


def _sixteens(disparities: int) -> int:
    return -(-disparities // 16) * 16


def _grey(image: np.ndarray) -> np.ndarray:
    return image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
