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
"""Gate and fusion of carried planes: what they are believed, and what they add."""

from __future__ import annotations

import cv2
import numpy as np

from graph_depth_refiner.core.temporal import (
    BIAS,
    CLIP,
    IMAGE,
    IMAGE_REACH,
    MISFIT,
    OUTLIER,
    REACH,
    SAME,
    SAME_SLOPE,
)


def consistency_gate(d: np.ndarray, m: np.ndarray, color: np.ndarray, warped: np.ndarray,
          frame_count: np.ndarray, warped_color: np.ndarray, sigma: float) -> np.ndarray:
    """Return how far the carried planes are believed, H W in [0, 1]."""
    both = (m > 0) & (frame_count > 0)
    residual = np.where(both, np.clip((d - warped[0]) / np.float32(sigma), -CLIP, CLIP), 0)
    color_distance = np.abs(color.astype(np.float32) - warped_color).mean(0) / 255
    share = np.maximum(_blur(both, REACH), np.float32(1e-6))
    history_weight = _falling(np.abs(_blur(residual, REACH)) / share, BIAS) \
        * _falling(_blur(np.abs(residual), REACH) / share, MISFIT) \
        * _falling(_blur(color_distance, IMAGE_REACH), IMAGE)
    return np.where(frame_count > 0, history_weight, 0).astype(np.float32)


def fuse(d: np.ndarray, m: np.ndarray, chosen: np.ndarray, warped: np.ndarray,
         frame_count: np.ndarray, sigma: float, limit: float
         ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return planes 3 H W to start from, data d and m, and the evidence left, H W each."""
    same = np.abs(warped[0] - chosen[0]) < SAME * sigma
    same &= np.abs(warped[1:] - chosen[1:]).sum(0) * SAME_SLOPE < sigma
    n = np.where(same, np.minimum(frame_count, limit), 0)  # H W
    old = np.where(n > 0, warped, chosen)
    planes = old + (chosen - old) / (1 + n)  # a running mean
    kept = np.where(np.abs(d - chosen[0]) <= OUTLIER * sigma, m, 0)
    total = kept + n
    data = np.where(total > 0, (kept * d + n * warped[0]) / np.maximum(total, 1e-9), planes[0])
    weight = np.maximum(kept, np.minimum(n, 1))
    result = planes, data, weight, np.minimum(total, limit)
    return tuple(one.astype(np.float32) for one in result)


def _blur(values: np.ndarray, reach: int) -> np.ndarray:
    side = 2 * reach + 1
    return cv2.blur(values.astype(np.float32), (side, side), borderType=cv2.BORDER_REFLECT)


def _falling(value: np.ndarray, limits: tuple[float, float]) -> np.ndarray:
    """Return 1 below the first limit, 0 beyond the second, linear between."""
    return np.clip((limits[1] - value) / (limits[1] - limits[0]), 0, 1)
