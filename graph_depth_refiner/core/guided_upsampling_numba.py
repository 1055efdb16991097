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
"""Predictions at full resolution by colour: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.guided_upsampling import OWN, SIDE
from graph_depth_refiner.core.inpainting_numba import weighted_median
from graph_depth_refiner.core.jit.fast_exp import fading
from graph_depth_refiner.core.jit.options import FUSED, INLINE, LIMIT, ZERO

_REACH = SIDE // 2
_OWN, _HALF = np.float32(OWN), np.float32(0.5)


def predict_by_color(planes: np.ndarray, color: np.ndarray, image: np.ndarray, d: np.ndarray,
                     scale: int, close: float, sigma: float) -> np.ndarray:
    """
    Return the inverse depth, H W, that planes 3 h w predict in a `scale` times larger image.

    color, C h w, and image, C H W, are uint8; d, H W, is the measurement, 0 where there is
    none. Cells that predict the same within `close` are one surface: the own cell counts.
    """
    predicted = np.empty_like(d)
    fade = 0.5 / (len(color) * (255 * sigma) ** 2)
    _predict(planes, color, image, d, scale, np.float32(close), np.float32(fade), predicted)
    return predicted


@njit(parallel=True, **FUSED)
def _predict(planes, color, image, d, scale, close, fade, predicted):
    height, width = d.shape
    rows, columns = planes.shape[1:]
    share = np.float32(1 / scale)
    for row in prange(height):
        y = np.int64(row)
        v = (np.float32(y) + _HALF) * share - _HALF
        r = min(y // scale, rows - 1)
        values = np.empty(SIDE * SIDE + 1, np.float32)
        weights = np.empty(SIDE * SIDE + 1, np.float32)
        for x in range(width):
            u = (np.float32(x) + _HALF) * share - _HALF
            c = min(x // scale, columns - 1)
            count, low, high = 0, LIMIT, -LIMIT
            for a in range(max(0, r - _REACH), min(rows, r + _REACH + 1)):
                for b in range(max(0, c - _REACH), min(columns, c + _REACH + 1)):
                    values[count] = _at(planes, a, b, v, u)
                    low, high = min(low, values[count]), max(high, values[count])
                    count += 1
            if high - low <= close:
                predicted[y, x] = _at(planes, r, c, v, u)
                continue
            count, total = 0, ZERO
            for a in range(max(0, r - _REACH), min(rows, r + _REACH + 1)):
                for b in range(max(0, c - _REACH), min(columns, c + _REACH + 1)):
                    distance = ZERO
                    for channel in range(color.shape[0]):
                        step = np.float32(image[channel, y, x]) - np.float32(color[channel, a, b])
                        distance += step * step
                    weights[count] = fading(distance * fade)
                    total += weights[count]
                    count += 1
            if d[y, x] > ZERO:
                values[count], weights[count] = d[y, x], _OWN * total / np.float32(count)
                count += 1
            predicted[y, x] = weighted_median(values, weights, count)


@njit(**INLINE)
def _at(planes, row, column, v, u):
    return planes[0, row, column] + planes[1, row, column] * (u - np.float32(column)) \
        + planes[2, row, column] * (v - np.float32(row))
