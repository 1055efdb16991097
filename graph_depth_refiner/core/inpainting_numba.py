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
"""Filling of holes in a map in noise units: CPU kernels."""

from __future__ import annotations

import math

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.inpainting import (
    COLOR_FADE,
    DIRECTIONS,
    DISTANCE_FADE,
    HALF,
    NEGLIGIBLE,
    OCCLUSION_GAP,
    OCCLUSION_SLACK,
    OCCLUSION_STEP,
    ONE_SIDED,
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
from graph_depth_refiner.core.jit.options import EXACT


def fill_background(z: np.ndarray, reliable: np.ndarray) -> np.ndarray:
    """Fill holes with the smaller of the reliable values left and right of them; 0 where none."""
    filled = np.empty_like(z)
    _background(z, reliable, _reach(reliable, 2), filled)
    return filled


def fill_occluded(z: np.ndarray, reliable: np.ndarray, color: np.ndarray) -> np.ndarray:
    """Fill occlusions with the background, other holes from around; 0 where nothing is seen."""
    filled = np.empty_like(z)
    _occluded(z, reliable, color, _reach(reliable, DIRECTIONS), STEPS, filled)
    return filled


def _reach(reliable, directions):
    """Return how many steps away the next reliable pixel is in each direction, 0 where none is."""
    reach = np.zeros((directions, *reliable.shape), np.int32)
    _look(reliable, STEPS, reach)
    return reach


@njit(parallel=True, **EXACT)
def _look(reliable, steps, reach):
    height, width = reliable.shape
    for k in prange(reach.shape[0]):
        dy, dx = steps[k]
        for a in range(height):  # against the direction, so that the pixel ahead is known
            y = a if dy <= 0 else height - 1 - a
            for b in range(width):
                x = b if dx <= 0 else width - 1 - b
                v, u = y + dy, x + dx
                if 0 <= v < height and 0 <= u < width:
                    if reliable[v, u]:
                        reach[k, y, x] = 1
                    elif reach[k, v, u] > 0:
                        reach[k, y, x] = reach[k, v, u] + 1


@njit(parallel=True, **EXACT)
def _background(z, reliable, reach, filled):
    height, width = z.shape
    for y in prange(height):
        for x in range(width):
            left, right = reach[0, y, x], reach[1, y, x]
            filled[y, x] = z[y, x] if reliable[y, x] else np.float32(0)
            if reliable[y, x] or left + right == 0:
                continue
            if left == 0 or (right > 0 and z[y, x + right] < z[y, x - left]):
                filled[y, x] = z[y, x + right]
            else:
                filled[y, x] = z[y, x - left]


@njit(parallel=True, **EXACT)
def _occluded(z, reliable, color, reach, steps, filled):
    height, width = z.shape
    for y in prange(height):
        values = np.empty(DIRECTIONS, np.float32)
        weights = np.empty(DIRECTIONS, np.float32)
        slopes = _rim_slopes(z, reliable, y, reach)
        for x in range(width):
            left, right = reach[0, y, x], reach[1, y, x]
            if reliable[y, x]:
                filled[y, x] = z[y, x]
            elif left == 0 and right > 0:
                filled[y, x] = z[y, x + right] - right * slopes[0]
            elif left > 0 and right == 0:
                filled[y, x] = z[y, x - left] + left * slopes[1]
            elif left > 0 and _occlusion(z[y, x + right] - z[y, x - left], left + right - 1):
                filled[y, x] = z[y, x - left]
            else:
                count = _around(z, color, y, x, reach, steps, values, weights)
                filled[y, x] = _agreed(values, weights, count)


@njit(**EXACT)
def _occlusion(step, gap):
    """Tell whether a gap in a row is what a foreground on its right hides from one camera."""
    return step > OCCLUSION_STEP and gap <= OCCLUSION_GAP * step + OCCLUSION_SLACK


@njit(**EXACT)
def _rim_slopes(z, reliable, y, reach):
    """Return the slopes along x at the first and the last reliable pixel of a row."""
    width = z.shape[1]
    first = 0 if reliable[y, 0] else reach[1, y, 0]
    last = width - 1 if reliable[y, width - 1] else width - 1 - reach[0, y, width - 1]
    return _rim_slope(z, reliable, y, first, 1), _rim_slope(z, reliable, y, last, -1)


@njit(**EXACT)
def _rim_slope(z, reliable, y, x, inward):
    height, width = z.shape
    rise, run = np.float32(0), np.float32(0)
    for v in range(max(0, y - RIM_ROWS), min(height, y + RIM_ROWS + 1)):
        for k in range(1, RIM_SPAN + 1):
            u = x + inward * k
            if 0 <= u < width and reliable[v, u]:
                step = z[v, u] - z[y, x]
                if abs(step) <= RIM_STEP + SAME_SURFACE_SLOPES[0] * k:
                    rise += inward * k * step
                    run += k * k
    return rise / (run + np.float32(RIM_CAUTION))


@njit(**EXACT)
def _around(z, color, y, x, reach, steps, values, weights):
    """Collect the values of reliable pixels around a pixel, and their weights."""
    count = 0
    for k in range(DIRECTIONS):
        a, b = reach[k, y, x], reach[k ^ 1, y, x]
        if a == 0:
            continue
        v, u = y + a * steps[k, 0], x + a * steps[k, 1]
        value, bridged = z[v, u], False
        if b > 0:
            other = z[y + b * steps[k ^ 1, 0], x + b * steps[k ^ 1, 1]]
            if abs(value - other) <= SAME_SURFACE_STEP + SAME_SURFACE_SLOPES[k] * (a + b):
                value, bridged = (value * b + other * a) / (a + b), True
        color_distance = np.float32(0)
        for channel in range(color.shape[0]):
            color_distance += abs(color[channel, y, x] - color[channel, v, u])
        away = a * math.sqrt(steps[k, 0] ** 2 + steps[k, 1] ** 2)
        values[count] = value
        weights[count] = math.exp(-color_distance / COLOR_FADE - away / DISTANCE_FADE) + NEGLIGIBLE
        weights[count] *= np.float32(1) if bridged else np.float32(ONE_SIDED)
        count += 1
    return count


@njit(**EXACT)
def _agreed(values, weights, count):
    """Return the weighted median, or nearly the mean where the two are far apart."""
    median = weighted_median(values, weights, count)
    total, moment = np.float32(0), np.float32(0)
    for k in range(count):
        total += weights[k]
        moment += weights[k] * values[k]
    apart = moment / total - median if count > 0 else np.float32(0)
    return median + np.float32(TOWARDS_MEAN) * apart if abs(apart) > UNDECIDED else median


@njit(**EXACT)
def weighted_median(values, weights, count):
    """Return the first value, in their order, by which half of the weight is reached; or 0."""
    if count == 0:
        return np.float32(0)
    total = np.float32(0)
    for a in range(count):
        value, weight, b = values[a], weights[a], a
        while b > 0 and values[b - 1] > value:
            values[b], weights[b] = values[b - 1], weights[b - 1]
            b -= 1
        values[b], weights[b] = value, weight
    for a in range(count):
        total += weights[a]
    below = np.float32(0)
    for a in range(count):
        below += weights[a]
        if below >= np.float32(HALF) * total:
            return values[a]
    return values[count - 1]
