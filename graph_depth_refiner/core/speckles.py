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
"""
Speckles: small connected patches of a map, which false matches make.

Patches are connected components of reliable pixels whose values differ by little, as in speckle
filters of stereo matching (Hirschmueller, PAMI 2008).
"""

from __future__ import annotations

import cv2
import numpy as np

# False matches come in small patches and at any depth, mostly too far: patches of less than
# these shares of the image that lie outside the range of the larger ones are dropped. Near
# things may be small in the image, hence two shares.
LARGE_FAR, LARGE_NEAR = 0.005, 0.001
RANGE_MARGIN = 3.0  # units
RANGE_TAIL = 0.005  # share of the values left out at the end of the range
RANGE_SAMPLING = 7  # every so many pixels serve to find the range


def patch_areas(z: np.ndarray, reliable: np.ndarray, step: float) -> np.ndarray:
    """Return for reliable pixels the area, in pixels, of their component; else 0."""
    rows, columns = z.shape
    # every pixel is a node; between two nodes is a link where the step is small
    links = np.zeros((2 * rows - 1, 2 * columns - 1), np.uint8)
    links[::2, ::2] = reliable
    links[::2, 1::2] = reliable[:, :-1] & reliable[:, 1:] & (np.abs(z[:, 1:] - z[:, :-1]) <= step)
    links[1::2, ::2] = reliable[:-1] & reliable[1:] & (np.abs(z[1:] - z[:-1]) <= step)
    labels = cv2.connectedComponents(links, connectivity=4)[1][::2, ::2]  # H W
    areas = np.bincount(labels.ravel())
    areas[0] = 0
    return areas[labels]


def in_range(z: np.ndarray, areas: np.ndarray) -> np.ndarray:
    """Return where patches are large, or neither nearer nor farther than all large ones."""
    kept = np.ones(z.shape, bool)
    for share, side, quantile in ((LARGE_FAR, 1, RANGE_TAIL), (LARGE_NEAR, -1, 1 - RANGE_TAIL)):
        large = areas > share * z.size
        if large.any():
            limit = np.quantile(z[large][::RANGE_SAMPLING], quantile)
            kept &= large | (side * (z - limit) >= -RANGE_MARGIN)
    return kept
