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
"""Where an image changed: the largest mean difference of the tiles of every band of rows."""

from __future__ import annotations

import numpy as np

BAND = 16  # rows that are kept or rebuilt together
TILE = 32  # columns at least, unless the image is narrower, over which a change must show


def by_band(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Compare guides, H W or C H W; the last band may be smaller."""
    height, width = now.shape[-2:]
    tiles = max(1, width // TILE)
    rows, columns = np.arange(0, height, BAND), np.arange(tiles) * width // tiles
    difference = np.abs(before - now).reshape(-1, height, width)
    sums = np.add.reduceat(np.add.reduceat(difference, columns, axis=2), rows, axis=1)
    sizes = np.outer(np.diff(rows, append=height), np.diff(columns, append=width))
    return (sums / sizes).max(axis=(0, 2)).astype(np.float32)  # bands
