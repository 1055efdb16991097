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
from graph_depth_refiner.core.output import (
    CORRECTED,
    CORRECTED_UNITS,
    FILLED,
    in_turn,
    MEASURED,
    UNKNOWN,
)
from graph_depth_refiner.core.rows_numba import wide_enough
from graph_depth_refiner.core.upsampling_numba import (
    bands_of,
    clear_row,
    keep_planes,
    numbers_of,
    rows_of,
    upsample_band,
    upsample_planes,
)
from graph_depth_refiner.frame import Intrinsics

Described = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

_NAN = np.float32(np.nan)
_UNKNOWN, _MEASURED, _CORRECTED, _FILLED = (
    np.float32(kind) for kind in (UNKNOWN, MEASURED, CORRECTED, FILLED))


def describe(planes: np.ndarray, d: np.ndarray, m: np.ndarray, frame_count: np.ndarray,
             noise: tuple[float, float], intrinsics: Intrinsics, limits: tuple[float, float]
             ) -> Described:
    """Return depth H W, normals H W 3, confidence H W and provenance H W of planes."""
    columns = d.shape[1]
    planes, d, m, frame_count = wide_enough(planes, d, m, frame_count)
    numbers, described = _numbers(noise, intrinsics, limits), _empty(d.shape)
    _describe(planes, d, m, frame_count, numbers, *described)
    if columns < d.shape[1]:
        depth, normals, confidence, provenance = (one[:, :columns].copy() for one in described)
        return depth, normals, confidence, provenance
    return described


def upsample_and_describe(cells: tuple, kept: np.ndarray | None, shown: tuple) -> Described:
    """Do both row by row: planes are described before they leave the core."""
    planes, frames, around, behind, noise, unit, scale = cells
    d, m, frame_count, deviation, intrinsics, limits = shown
    if d.shape[1] < LANES:
        return in_turn(upsample_planes, keep_planes, describe, cells, kept, shown)
    kept = np.ones(d.shape, np.uint8) if kept is None else kept.view(np.uint8)
    described = _empty(d.shape)
    _upsample_and_describe(
        planes, frames, around, behind, numbers_of(noise, unit), scale, kept, d, m, frame_count,
        _numbers(deviation, intrinsics, limits), *described)
    return described


def _empty(shape: tuple[int, int]) -> Described:
    return (np.empty(shape, np.float32), np.empty((*shape, 3), np.float32),
            np.empty(shape, np.float32), np.empty(shape, np.uint8))


def _numbers(noise: tuple[float, float], intrinsics: Intrinsics, limits: tuple[float, float]
             ) -> np.ndarray:
    """Return fx, fy, cx, cy, floor and share of what is corrected, and the limits of d."""
    k = intrinsics
    return np.array([k.fx, k.fy, k.cx, k.cy, CORRECTED_UNITS * noise[0],
                     CORRECTED_UNITS * noise[1], *limits], np.float32)


@njit(parallel=True, **FUSED)
def _describe(planes, d, m, frame_count, numbers, depth, normals, confidence, provenance):
    for y in prange(len(depth)):
        _describe_row(planes[:, y], d[y], m[y], frame_count[y], numbers, y, depth[y], normals[y],
                      confidence[y], provenance[y])


@njit(parallel=True, **FUSED)
def _upsample_and_describe(planes, frames, around, behind, noise, scale, kept, d, m, frame_count,
                           numbers, depth, normals, confidence, provenance):
    for between in prange(bands_of(len(d), scale)):
        band = np.int64(between)
        first, end = rows_of(band, len(d), scale)
        rows = np.empty((3, scale, d.shape[1]), np.float32)
        upsample_band(planes, frames, around, behind, noise, scale, band, first, rows)
        for y in range(first, end):
            row = rows[:, y - first]
            clear_row(kept[y], row[0])
            _describe_row(row, d[y], m[y], frame_count[y], numbers, y, depth[y],
                          normals[y], confidence[y], provenance[y])


@njit(**INLINE)
def _describe_row(planes, d, m, frame_count, numbers, y, depth, normals, confidence, provenance):
    for start in range(0, d.size, LANES):
        _describe_run(planes, d, m, frame_count, numbers[4], numbers[5], numbers[:4], numbers[6],
                      numbers[7], y, min(start, d.size - LANES), depth, normals.ravel(),
                      confidence, provenance)


@njit(**INLINE)
def _describe_run(planes, d, m, frame_count, far, share, camera, least, most, y, x, depth,
                  normals, confidence, provenance):
    """Describe neighbouring pixels of a row: normals, depth, confidence and provenance."""
    at, zero, one, nan = U(x), spread_run(ZERO), spread_run(ONE), spread_run(_NAN)
    value = load_run(planes[0], at)
    ux, uy = load_run(planes[1], at), load_run(planes[2], at)
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
