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

from graph_depth_refiner.core.jit.options import FUSED, INLINE, ONE, U, ZERO
from graph_depth_refiner.core.jit.simd import (
    abs_run,
    at_most_run,
    choose_run,
    counting_run,
    inverse_root,
    inverse_run,
    LANES,
    less_run,
    load_run,
    most_run,
    spread_run,
    store_bytes,
    store_run,
    store_triples,
)
from graph_depth_refiner.core.output import CORRECTED, CORRECTED_UNITS, FILLED, MEASURED, UNKNOWN
from graph_depth_refiner.core.rows_numba import wide_enough
from graph_depth_refiner.frame import Intrinsics

_NAN = np.float32(np.nan)
_UNKNOWN, _MEASURED, _CORRECTED, _FILLED = (
    np.float32(kind) for kind in (UNKNOWN, MEASURED, CORRECTED, FILLED))


def describe(planes: np.ndarray, d: np.ndarray, m: np.ndarray, frame_count: np.ndarray,
             noise: tuple[float, float], intrinsics: Intrinsics, limits: tuple[float, float]
             ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return depth H W, normals H W 3, confidence H W and provenance H W of planes."""
    columns = d.shape[1]
    planes, d, m, frame_count = wide_enough(planes, d, m, frame_count)
    depth, confidence = np.empty_like(d), np.empty_like(d)
    normals = np.empty((*d.shape, 3), np.float32)
    provenance = np.empty(d.shape, np.uint8)
    k = intrinsics
    camera = np.array([k.fx, k.fy, k.cx, k.cy], np.float32)
    _describe(planes, d, m, frame_count, np.float32(CORRECTED_UNITS * noise[0]),
              np.float32(CORRECTED_UNITS * noise[1]), camera,
              np.float32(limits[0]), np.float32(limits[1]), depth, normals, confidence,
              provenance)
    if columns < d.shape[1]:
        depth, normals, confidence, provenance = (
            one[:, :columns].copy() for one in (depth, normals, confidence, provenance))
    return depth, normals, confidence, provenance


@njit(parallel=True, **FUSED)
def _describe(planes, d, m, frame_count, far, share, camera, least, most, depth, normals,
              confidence, provenance):
    height, width = depth.shape
    for y in prange(height):
        for start in range(0, width, LANES):
            _describe_run(planes, d[y], m[y], frame_count[y], far, share, camera, least, most, y,
                          min(start, width - LANES), depth[y], normals[y].ravel(), confidence[y],
                          provenance[y])


@njit(**INLINE)
def _describe_run(planes, d, m, frame_count, far, share, camera, least, most, y, x, depth,
                  normals, confidence, provenance):
    """Describe neighbouring pixels of a row: normals, depth, confidence and provenance."""
    at, zero, one, nan = U(x), spread_run(ZERO), spread_run(ONE), spread_run(_NAN)
    value = load_run(planes[0, y], at)
    ux, uy = load_run(planes[1, y], at), load_run(planes[2, y], at)
    known = at_most_run(spread_run(least), value) * at_most_run(value, spread_run(most))
    a, b = spread_run(camera[0]) * ux, spread_run(camera[1]) * uy
    across = spread_run(np.float32(x) - camera[2]) + counting_run()
    c = value - ux * across - uy * spread_run(np.float32(y) - camera[3])
    inverse = choose_run(known, zero - inverse_root(a * a + b * b + c * c), nan)
    store_triples(normals, U(3) * at, a * inverse, b * inverse, c * inverse)
    store_run(depth, at, choose_run(known, inverse_run(choose_run(known, value, one)), nan))
    measured, n = load_run(d, at), load_run(frame_count, at)
    held = n * inverse_run(one + n)
    there = less_run(zero, measured)
    fits = there * at_most_run(
        abs_run(value - measured), spread_run(far) + spread_run(share) * measured)
    sure = choose_run(fits, most_run(load_run(m, at), held), held)
    store_run(confidence, at, choose_run(known, sure, zero))
    kind = choose_run(fits, spread_run(_MEASURED), choose_run(
        there, spread_run(_CORRECTED), spread_run(_FILLED)))
    store_bytes(provenance, at, choose_run(known, kind, spread_run(_UNKNOWN)))
