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
"""The noise of a sensor: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.jit.options import EXACT, FUSED, ONE, U, ZERO
from graph_depth_refiner.core.noise import COMMON, NoiseModel

_COMMON = np.float32(COMMON)
_DIGIT = 11  # bits of a number that are sorted by at once


def known_sigma(noise: NoiseModel, d: np.ndarray, frames: np.ndarray, unit: float) -> np.ndarray:
    """Return the deviation, H W, of means d of so many frames; a unit where nothing is known."""
    sigma = np.empty_like(d)
    _known_sigma(d, frames, np.float32(noise.floor), np.float32(noise.share), np.float32(unit),
                 sigma)
    return sigma


@njit(parallel=True, **FUSED)
def _known_sigma(d, frames, floor, share, unit, sigma):
    height, width = d.shape
    for y in prange(height):
        for x in range(U(width)):
            value = d[y, x]
            known = (share * value + floor) * np.sqrt(
                _COMMON + (ONE - _COMMON) / max(frames[y, x], ONE))
            sigma[y, x] = known if value > ZERO else unit


def rising_order(values: np.ndarray) -> np.ndarray:
    """Return the places of N float32 above 0 in rising order, equal ones as they come."""
    keys = values.view(np.uint32)  # numbers above 0 rise as their bits do
    return _radix_order(keys, np.empty(len(keys), np.int64), np.empty(len(keys), np.int64))


@njit(**EXACT)
def _radix_order(keys, order, other):
    for i in range(keys.size):
        order[i] = i
    for digit in range(0, 32, _DIGIT):
        places = np.zeros((1 << _DIGIT) + 1, np.int64)
        for i in range(keys.size):
            places[((keys[i] >> digit) & ((1 << _DIGIT) - 1)) + 1] += 1
        for value in range(1 << _DIGIT):
            places[value + 1] += places[value]
        for i in order:
            value = (keys[i] >> digit) & ((1 << _DIGIT) - 1)
            other[places[value]] = i
            places[value] += 1
        order, other = other, order
    return order
