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
"""Where an image changed, tile by tile; the twin of band_changes.py."""

from __future__ import annotations

from numba import njit
import numpy as np

from graph_depth_refiner.band_changes import BAND, TILE
from graph_depth_refiner.fused.rows import FUSED, U, ZERO


def by_band(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Compare guides, H W or C H W; the last band may be smaller."""
    shape = (-1, *now.shape[-2:])
    largest = np.zeros(-(-now.shape[-2] // BAND), np.float32)
    _by_band(before.reshape(shape), now.reshape(shape), largest)
    return largest


@njit(**FUSED)
def _by_band(before, now, largest):
    channels, height, width = now.shape
    tiles = max(1, width // TILE)
    columns = np.empty(width, np.float32)
    for band in range(len(largest)):
        first, last = band * BAND, min(height, (band + 1) * BAND)
        for c in range(channels):
            columns[:] = ZERO
            for y in range(first, last):
                a, b = before[c, y], now[c, y]
                for x in range(U(width)):
                    columns[x] += abs(a[x] - b[x])
            for tile in range(tiles):
                left, right = tile * width // tiles, (tile + 1) * width // tiles
                mean = columns[left:right].sum() / np.float32((last - first) * (right - left))
                largest[band] = max(largest[band], mean)
