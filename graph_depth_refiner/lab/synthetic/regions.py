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
"""Which pixels of an exact view are plane, curved, edge or thin, to tell errors apart."""

from __future__ import annotations

import cv2
import numpy as np

JUMP = 0.04  # ratio of the depths of neighbours that is an edge
BAND = 4  # px on either side of one, in an image 640 px wide
BENT = 0.01  # change of a component of the normal within 5x5 px at which a surface is not flat
LARGE = 0.01  # share of the image that a flat area needs to be a plane
_BEYOND = 100.0  # metres, in place of infinite depth


def find_regions(depth: np.ndarray, normals: np.ndarray,
                 thin: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """
    Return masks, H W bool, that together hold every pixel with a surface exactly once.

    plane: large flat areas away from depth edges. curved: the rest away from depth edges, that is
    round things, creases and small faces. edge: within some pixels of a depth edge. thin: as told.
    Depth and normals are exact; depth is infinite or NaN where there is nothing.
    """
    exists = np.isfinite(depth)
    whole = np.where(exists, depth, np.float32(_BEYOND)).astype(np.float32)
    three = np.ones((3, 3), np.uint8)
    jump = (cv2.dilate(whole, three) > (1 + JUMP) * cv2.erode(whole, three)).astype(np.uint8)
    side = 2 * max(1, round(BAND * depth.shape[1] / 640)) + 1
    band = cv2.dilate(jump, np.ones((side, side), np.uint8)) > 0
    thin = np.zeros(depth.shape, bool) if thin is None else thin
    calm = exists & ~band & ~thin
    plane = _large(calm & _flat(normals))
    return {'plane': plane, 'curved': calm & ~plane, 'edge': exists & band & ~thin,
            'thin': exists & thin}


def _flat(normals: np.ndarray) -> np.ndarray:
    """Return where the normal is the same all around, H W bool."""
    known = np.nan_to_num(normals).astype(np.float32)
    five = np.ones((5, 5), np.uint8)
    return (cv2.dilate(known, five) - cv2.erode(known, five)).max(-1) < BENT


def _large(mask: np.ndarray) -> np.ndarray:
    """Return the connected areas of a mask that are large enough, H W bool."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=4)
    large = stats[:, cv2.CC_STAT_AREA] >= LARGE * mask.size
    large[0] = False  # all that is not in the mask
    return large[labels]
