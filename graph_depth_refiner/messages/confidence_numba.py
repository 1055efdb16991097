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
"""Confidence derived from depth, compiled."""

from __future__ import annotations

from numba import njit
import numpy as np

from graph_depth_refiner.core.jit.options import EXACT, EXACT_INLINE, ONE, U, ZERO

LARGEST = np.finfo(np.float32).max


@njit(**EXACT)
def inverse_depth(depth, d):
    """Fill d (H W float32) with inverse depth, 0 where it is none."""
    for row in range(len(depth)):
        z, out = depth[row], d[row]
        for column in range(U(len(z))):
            inverse = ONE / z[column]
            valid = (z[column] > ZERO) & (z[column] <= LARGEST) & (inverse <= LARGEST)
            out[column] = inverse if valid else ZERO


@njit(**EXACT)
def judge(d, median, noise, jump, grades, confidence):
    """
    Fill the confidence (H W) of inverse depth d by what is around it.

    Noise and jump: the deviation, and the share of d beyond it, at which a pixel is not one of
    its neighbours. Grades are those of an inconsistent pixel and of one at a jump.
    """
    height, width = d.shape
    for row in range(height):
        rows = d[row], d[max(row - 1, 0)], d[min(row + 1, height - 1)], median[row]
        out = confidence[row]
        for column in range(U(1), U(width - 1)):
            out[column] = _grade(
                rows, column, column - U(1), column + U(1), noise, jump, grades)
        out[0] = _grade(rows, U(0), U(0), U(min(1, width - 1)), noise, jump, grades)
        if width > 1:
            out[width - 1] = _grade(
                rows, U(width - 1), U(width - 2), U(width - 1), noise, jump, grades)


@njit(**EXACT_INLINE)
def _grade(rows, at, left, right, noise, jump, grades):
    here, above, below, median = rows
    d = here[at]
    limit = jump * d + noise
    across = abs(above[at] - np.float32(2) * d + below[at]) > limit
    along = abs(here[left] - np.float32(2) * d + here[right]) > limit
    grade = grades[1] if across | along else ONE
    grade = grades[0] if abs(d - median[at]) > noise else grade
    return grade if d > ZERO else ZERO
