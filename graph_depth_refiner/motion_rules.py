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
"""What the plain and the fused alignment have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TERMS = 8  # rotation, translation, gain and bias of the image
SEEN = TERMS * (TERMS + 3) // 2  # where the counts stand behind the sums
BLOCK = 20  # pixels; what moves by itself is told apart block by block
OUTLIER = 4.0  # squared residual, in its own unit, beyond which a sample does not agree
DEPTH_SCALE = 2.0  # noise units: a residual in depth of one is this much
FLAT_BLOCK = 1e-4  # squared gradient of the image that keeps an even block in its place
EDGE_ON = 0.8  # a plane half a pixel aside differs less than this from its point, as a ratio


def _places() -> np.ndarray:
    """Return where the terms of J^T J and, last in each row, of J^T r stand in the sums."""
    rows, columns = np.triu_indices(TERMS, m=TERMS + 1)
    places = np.zeros((TERMS, TERMS + 1), int)
    places[rows, columns] = np.arange(SEEN)
    square = places[:, :TERMS]
    square += np.triu(square, 1).T
    return places


PLACES = _places()


@dataclass(frozen=True, eq=False)
class Equations:
    """Normal equations of the alignment, and how well it fits."""

    matrix: np.ndarray  # TERMS TERMS, J^T J
    vector: np.ndarray  # TERMS, J^T r
    shifts: np.ndarray  # pixels by which each block would like to move by itself
    seen: float  # samples inside the image,
    alike: float  # and those of them that look alike
    measured: float  # samples with depth,
    agreeing: float  # and those of them that agree

    @classmethod
    def of_sums(cls, sums: np.ndarray, shifts: np.ndarray) -> Equations:
        """Unpack rows of the upper triangle, each followed by its J^T r, then the counts."""
        return cls(sums[PLACES[:, :TERMS]], sums[PLACES[:, TERMS]], shifts, *sums[SEEN:])
