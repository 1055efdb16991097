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
    none. Where the cells around one predict the same at its centre within `close`, they are
    one surface, and the cell counts alone.
    """
    predicted = np.empty_like(d)
    fade = 0.5 / (len(color) * (255 * sigma) ** 2)
    _predict(planes, color, image, d, scale, np.float32(close), np.float32(fade), predicted)
    return predicted


@njit(parallel=True, **FUSED)
def _predict(planes, color, image, d, scale, close, fade, predicted):
    height, width = d.shape
    rows, columns = planes.shape[1:]
    for row in prange(rows):
        r = np.int64(row)
        values = np.empty(SIDE * SIDE + 1, np.float32)
        weights = np.empty(SIDE * SIDE + 1, np.float32)
        bottom = (r + 1) * scale if r + 1 < rows else height
        for c in range(columns):
            right = (c + 1) * scale if c + 1 < columns else width
            alike = _one_surface(planes, r, c, close)
            for y in range(r * scale, bottom):
                v = (np.float32(y) + _HALF) / np.float32(scale) - _HALF
                for x in range(c * scale, right):
                    u = (np.float32(x) + _HALF) / np.float32(scale) - _HALF
                    if alike:
                        predicted[y, x] = _at(planes, r, c, v, u)
                    else:
                        predicted[y, x] = _median(planes, color, image, d, y, x, v, u, r, c, fade,
                                                  values, weights)


@njit(**INLINE)
def _one_surface(planes, r, c, close):
    """Tell whether the cells around one predict the same at its centre."""
    rows, columns = planes.shape[1:]
    low, high = LIMIT, -LIMIT
    for a in range(max(0, r - _REACH), min(rows, r + _REACH + 1)):
        for b in range(max(0, c - _REACH), min(columns, c + _REACH + 1)):
            value = _at(planes, a, b, np.float32(r), np.float32(c))
            low, high = min(low, value), max(high, value)
    return high - low <= close


@njit(**FUSED)
def _median(planes, color, image, d, y, x, v, u, r, c, fade, values, weights):
    """Return the median of what the cells around a pixel predict, by colour."""
    rows, columns = planes.shape[1:]
    count, total = 0, ZERO
    for a in range(max(0, r - _REACH), min(rows, r + _REACH + 1)):
        for b in range(max(0, c - _REACH), min(columns, c + _REACH + 1)):
            distance = ZERO
            for channel in range(color.shape[0]):
                step = np.float32(image[channel, y, x]) - np.float32(color[channel, a, b])
                distance += step * step
            values[count] = _at(planes, a, b, v, u)
            weights[count] = fading(distance * fade)
            total += weights[count]
            count += 1
    if d[y, x] > ZERO:
        values[count], weights[count] = d[y, x], _OWN * total / np.float32(count)
        count += 1
    return weighted_median(values, weights, count)


@njit(**INLINE)
def _at(planes, row, column, v, u):
    return planes[0, row, column] + planes[1, row, column] * (u - np.float32(column)) \
        + planes[2, row, column] * (v - np.float32(row))
