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
"""Robust statistics: CPU kernels."""

from __future__ import annotations

from numba import njit
import numpy as np

from graph_depth_refiner.core.jit.options import EXACT
from graph_depth_refiner.core.statistics import stride_for

_DIGITS = ((21, 11), (10, 11), (0, 10))  # first bit and number of those that are counted by


def positive_median(image: np.ndarray, otherwise: float = 0.0) -> float:
    """Return the median of those of some pixels, H W, that are above 0, if any is."""
    step = stride_for(image.shape)
    return _positive_median(image.view(np.uint32), step, otherwise)


@njit(**EXACT)
def _positive_median(image, step, otherwise):
    height, width = image.shape
    for stride in (step, 1):
        keys, count = np.empty(-(-height // stride) * -(-width // stride), np.uint32), 0
        for y in range(0, height, stride):
            for x in range(0, width, stride):
                keys[count] = image[y, x]
                # the bits of numbers above 0, infinite ones included, as whole numbers
                count += np.uint32(0) < image[y, x] <= np.uint32(0x7F800000)
        if count > 0:
            return float(upper_median(keys[:count]))
    return otherwise


@njit(**EXACT)
def upper_median(keys):
    """
    Return the median of the float32, 0 or above, that these N uint32 are the bits of.

    They rise as their bits do, which are found one digit after the other by counting. The keys
    are left in another order.
    """
    count, rank = keys.size, keys.size // 2
    found = np.uint32(0)
    for digit in range(len(_DIGITS)):
        first, bits = np.uint32(_DIGITS[digit][0]), _DIGITS[digit][1]
        mask = np.uint32((1 << bits) - 1)
        counts = np.zeros(1 << bits, np.int32)
        for i in range(count):
            counts[(keys[i] >> first) & mask] += 1
        value = 0
        while rank >= counts[value]:
            rank -= counts[value]
            value += 1
        found |= np.uint32(value) << first
        left = 0
        for i in range(count):
            key = keys[i]
            keys[left] = key
            left += ((key >> first) & mask) == np.uint32(value)
        count = left
    return np.array([found], np.uint32).view(np.float32)[0]
