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
"""From planes to what is published: depth, normals, confidence and provenance."""

from __future__ import annotations

import numpy as np

from graph_depth_refiner.core import camera
from graph_depth_refiner.core.output import CORRECTED, CORRECTED_UNITS, FILLED, MEASURED, UNKNOWN
from graph_depth_refiner.core.resolution import spread
from graph_depth_refiner.frame import Intrinsics


def describe(planes: np.ndarray, d: np.ndarray, m: np.ndarray, frame_count: np.ndarray,
             unit: float, intrinsics: Intrinsics, limits: tuple[float, float]
             ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """
    Return depth H W, normals H W 3, confidence H W and provenance H W of planes.

    The evidence may be of a resolution a whole number of times lower. Inverse depth
    outside the limits is unknown.
    """
    value = planes[0]
    known = (value >= np.float32(limits[0])) & (value <= np.float32(limits[1]))
    depth = np.full(d.shape, np.nan, np.float32)
    np.divide(np.float32(1), value, out=depth, where=known)
    q = camera.plane_vectors(np.where(known, planes, 1), intrinsics)  # 3 H W
    normals = np.moveaxis(-q / np.linalg.norm(q, axis=0), 0, -1).astype(np.float32)
    normals[~known] = np.nan
    n = spread(frame_count, d.shape, d.shape[0] // frame_count.shape[0])
    held = n / (1 + n)
    moved = np.abs(value - d) > CORRECTED_UNITS * unit
    provenance = np.where(d > 0, np.where(moved, CORRECTED, MEASURED), FILLED)
    confidence = np.where(provenance == MEASURED, np.maximum(m, held), held)
    provenance = np.where(known, provenance, UNKNOWN).astype(np.uint8)
    return depth, normals, np.where(known, confidence, 0).astype(np.float32), provenance
