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
"""Filling of holes in a map in noise units, the plain twin of graph_depth_refiner.core.inpainting_numba."""

from __future__ import annotations

import numpy as np

from graph_depth_refiner.core.inpainting import (
    COLOR_FADE,
    DISTANCE_FADE,
    NEGLIGIBLE,
    OCCLUSION_GAP,
    OCCLUSION_SLACK,
    OCCLUSION_STEP,
    RIM_CAUTION,
    RIM_ROWS,
    RIM_SPAN,
    RIM_STEP,
    SAME_SURFACE_SLOPES,
    SAME_SURFACE_STEP,
    STEPS,
    TOWARDS_MEAN,
    UNDECIDED,
)


def fill_background(z: np.ndarray, reliable: np.ndarray) -> np.ndarray:
    """Fill holes with the smaller of the sure values left and right of them; 0 where none."""
    values = _seen(z, _reach(reliable)[:2])  # 2 H W
    smaller = np.where(np.isnan(values), np.inf, values).min(axis=0)
    return np.where(reliable, z, np.where(np.isfinite(smaller), smaller, 0)).astype(np.float32)


def fill_occluded(z: np.ndarray, reliable: np.ndarray, color: np.ndarray) -> np.ndarray:
    """Fill occlusions with the background, other holes from around; 0 where nothing is seen."""
    reach = _reach(reliable)  # 8 H W
    left, right = reach[:2]
    values = _seen(z, reach)
    first, last = _rim_slopes(z, reliable)  # H 1 each
    filled = _from_around(values, reach, color)
    step = values[1] - values[0]  # NaN, and so no occlusion, where one is missing
    hidden = (step > OCCLUSION_STEP) & (
        left + right - 1 <= OCCLUSION_GAP * step + OCCLUSION_SLACK)
    filled = np.where(hidden, values[0], filled)
    filled = np.where((left == 0) & (right > 0), values[1] - right * first, filled)
    filled = np.where((left > 0) & (right == 0), values[0] + left * last, filled)
    return np.where(reliable, z, filled).astype(np.float32)


def _reach(reliable: np.ndarray) -> np.ndarray:
    """Return how many steps away the next sure pixel is in each direction, 0 where none is."""
    return np.stack([_reach_one(reliable, dy, dx) for dy, dx in STEPS])  # 8 H W


def _reach_one(reliable: np.ndarray, dy: int, dx: int) -> np.ndarray:
    if dy == 0:
        return _reach_one(reliable.T, dx, 0).T
    reach = np.zeros(reliable.shape, int)
    rows = range(1, len(reliable)) if dy < 0 else range(len(reliable) - 2, -1, -1)
    for y in rows:
        ahead = np.where(reliable[y + dy], 1, np.where(reach[y + dy] > 0, reach[y + dy] + 1, 0))
        to, at = slice(max(0, -dx), len(ahead) - max(0, dx)), slice(max(0, dx), None)
        reach[y, to] = ahead[at][:len(ahead) - abs(dx)]
    return reach


def _seen(z: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """Return the value of the next sure pixel in each direction, NaN where none is."""
    y, x = _ends(reach)
    return np.where(reach > 0, z[y, x], np.nan)  # K H W


def _ends(reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = np.indices(reach.shape[1:])
    dy, dx = STEPS[:len(reach)].T[:, :, None, None]
    return rows + reach * dy, columns + reach * dx  # K H W each


def _from_around(values: np.ndarray, reach: np.ndarray, color: np.ndarray) -> np.ndarray:
    """Return the weighted median of what is seen around, interpolated on one surface."""
    opposite = np.arange(len(reach)) ^ 1
    other, away = values[opposite], reach[opposite]
    together = np.abs(values - other) <= (
        SAME_SURFACE_STEP + SAME_SURFACE_SLOPES[:, None, None] * (reach + away))
    between = (values * away + other * reach) / np.maximum(reach + away, 1)
    y, x = _ends(reach)
    color_distance = np.abs(color[:, y, x] - color[:, None]).sum(axis=0)  # 8 H W
    distance = reach * np.linalg.norm(STEPS, axis=1)[:, None, None]
    weights = np.exp(-color_distance / COLOR_FADE - distance / DISTANCE_FADE) + NEGLIGIBLE
    values = np.nan_to_num(np.where(together, between, values))
    weights = np.where(reach > 0, weights, 0)
    median = weighted_median(values, weights)
    apart = (values * weights).sum(axis=0) / np.maximum(weights.sum(axis=0), NEGLIGIBLE) - median
    return np.where(np.abs(apart) > UNDECIDED, median + TOWARDS_MEAN * apart, median)


def weighted_median(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the first value, in their order, by which half of the weight is reached; or 0."""
    order = np.argsort(np.where(weights > 0, values, np.inf), axis=0, kind='stable')
    reached = np.cumsum(np.take_along_axis(weights, order, 0), axis=0)
    at = np.argmax(2 * reached >= reached[-1], axis=0)[None]
    median = np.take_along_axis(np.take_along_axis(values, order, 0), at, 0)[0]
    return np.where(reached[-1] > 0, median, 0)


def _rim_slopes(z: np.ndarray, reliable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the slopes along x at the first and the last sure pixel of every row."""
    first = np.argmax(reliable, axis=1)
    last = reliable.shape[1] - 1 - np.argmax(reliable[:, ::-1], axis=1)
    return tuple(
        np.array([[_rim_slope(z, reliable, y, x, inward)] for y, x in enumerate(ends)])
        for ends, inward in ((first, 1), (last, -1)))


def _rim_slope(z: np.ndarray, reliable: np.ndarray, y: int, x: int, inward: int) -> float:
    rows = slice(max(0, y - RIM_ROWS), y + RIM_ROWS + 1)
    run = np.arange(1, RIM_SPAN + 1)
    run = run[(x + inward * run >= 0) & (x + inward * run < z.shape[1])]
    step = z[rows, x + inward * run] - z[y, x]
    same = reliable[rows, x + inward * run] & (
        np.abs(step) <= RIM_STEP + SAME_SURFACE_SLOPES[0] * run)
    return (same * inward * run * step).sum() / ((same * run * run).sum() + RIM_CAUTION)
