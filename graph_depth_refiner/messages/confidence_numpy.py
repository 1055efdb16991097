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
"""Confidence derived from depth, the reference in numpy and OpenCV."""

from __future__ import annotations

import cv2
import numpy as np


def inverse_depth(depth: np.ndarray, d: np.ndarray) -> None:
    """Fill d (H W float32) with inverse depth, 0 where it is none."""
    with np.errstate(divide='ignore', over='ignore', invalid='ignore'):
        inverse = 1 / depth
    valid = np.isfinite(depth) & (depth > 0) & np.isfinite(inverse)
    d[:] = np.where(valid, inverse, 0)


def judge(d: np.ndarray, median: np.ndarray, noise: np.float32, jump: np.float32,
          grades: tuple[np.float32, np.float32], confidence: np.ndarray) -> None:
    """
    Fill the confidence (H W) of inverse depth d by what is around it.

    Noise and jump: the deviation, and the share of d beyond it, at which a pixel is not one of
    its neighbours. Grades are those of an inconsistent pixel and of one at a jump.
    """
    confidence[:] = d > 0
    limit = jump * d + noise
    for size in ((3, 1), (1, 3)):
        kernel = np.full(size, 1, np.float32)
        kernel[size[0] // 2, size[1] // 2] = -2
        bend = np.abs(cv2.filter2D(d, -1, kernel, borderType=cv2.BORDER_REPLICATE))
        confidence[(d > 0) & (bend > limit)] = grades[1]
    confidence[(d > 0) & (np.abs(d - median) > noise)] = grades[0]
