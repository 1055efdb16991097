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
"""From planes to what is published, in one pass: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.jit.options import FUSED
from graph_depth_refiner.core.output import CORRECTED, CORRECTED_UNITS, FILLED, MEASURED, UNKNOWN
from graph_depth_refiner.frame import Intrinsics

_NAN = np.float32(np.nan)


def describe(planes: np.ndarray, d: np.ndarray, m: np.ndarray, frame_count: np.ndarray,
             noise: tuple[float, float], intrinsics: Intrinsics, limits: tuple[float, float]
             ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return depth H W, normals H W 3, confidence H W and provenance H W of planes."""
    depth, confidence = np.empty_like(d), np.empty_like(d)
    normals = np.empty((*d.shape, 3), np.float32)
    provenance = np.empty(d.shape, np.uint8)
    k = intrinsics
    camera = np.array([k.fx, k.fy, k.cx, k.cy], np.float32)
    _describe(planes, d, m, frame_count, np.float32(CORRECTED_UNITS * noise[0]),
              np.float32(CORRECTED_UNITS * noise[1]), camera,
              np.float32(limits[0]), np.float32(limits[1]), depth, normals, confidence,
              provenance)
    return depth, normals, confidence, provenance


@njit(parallel=True, **FUSED)
def _describe(planes, d, m, frame_count, far, share, camera, least, most, depth, normals,
              confidence, provenance):
    height, width = d.shape
    fx, fy, cx, cy = camera[0], camera[1], camera[2], camera[3]
    for y in prange(height):
        for x in range(width):
            value, ux, uy = planes[0, y, x], planes[1, y, x], planes[2, y, x]
            if not (value >= least and value <= most):
                depth[y, x] = _NAN
                normals[y, x, 0] = normals[y, x, 1] = normals[y, x, 2] = _NAN
                confidence[y, x] = np.float32(0)
                provenance[y, x] = UNKNOWN
                continue
            a, b = fx * ux, fy * uy
            c = value - ux * (np.float32(x) - cx) - uy * (np.float32(y) - cy)
            inverse = np.float32(-1) / np.sqrt(a * a + b * b + c * c)
            depth[y, x] = np.float32(1) / value
            normals[y, x, 0] = a * inverse
            normals[y, x, 1] = b * inverse
            normals[y, x, 2] = c * inverse
            n = frame_count[y, x]
            held = n / (np.float32(1) + n)
            if d[y, x] <= 0:
                provenance[y, x] = FILLED
                confidence[y, x] = held
            elif abs(value - d[y, x]) > far + share * d[y, x]:
                provenance[y, x] = CORRECTED
                confidence[y, x] = held
            else:
                provenance[y, x] = MEASURED
                confidence[y, x] = max(m[y, x], held)
