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
"""Fusion of a frame with the warped history: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core import temporal
from graph_depth_refiner.core.jit.options import FUSED, INLINE, ONE, U, ZERO
from graph_depth_refiner.core.noise import NoiseModel

_BLOCK = temporal.BLOCK
_BIAS_GATE, _GATE, _CLIP = (
    np.float32(one) for one in (temporal.BIAS_GATE, temporal.GATE, temporal.CLIP))
_MISPLACED = np.float32(temporal.MISPLACED)
_OUTLIER = np.float32(temporal.OUTLIER_SHARE)
_EXPECTED = np.float32(temporal.EXPECTED)
_LEAST = np.float32(temporal.LEAST_FRAMES)
_MEAN, _MISFIT, _IMAGE = temporal.MEAN, temporal.MISFIT, temporal.IMAGE
_REACHES = (temporal.REACH, temporal.REACH, temporal.REACH, temporal.IMAGE_REACH)
_STEEPEST = np.float32(temporal.STEEPEST)
_LEAST_WEIGHT = np.float32(temporal.LEAST_WEIGHT)
# The sums along a row are written out for these reaches; unsigned indices are fast.
_1, _2, _3, _4 = (np.uint64(one) for one in (1, 2, 3, 4))


def bias_sums(d: np.ndarray, m: np.ndarray, planes: np.ndarray, frames: np.ndarray,
              noise: NoiseModel) -> np.ndarray:
    """Return sums of relative residuals that may be bias, and their count, by blocks."""
    sums = np.zeros((2, -(-d.shape[0] // _BLOCK), -(-d.shape[1] // _BLOCK)), np.float32)
    _bias_sums(d, m, planes[0], frames, np.float32(noise.floor), np.float32(noise.share), sums)
    return sums


@njit(parallel=True, **FUSED)
def _bias_sums(d, m, value, frames, floor, share, sums):
    height, width = d.shape
    for row in prange(sums.shape[1]):
        for y in range(row * _BLOCK, min(height, (row + 1) * _BLOCK)):
            for x in range(width):
                if m[y, x] > ZERO and frames[y, x] > ZERO:
                    r = d[y, x] - value[y, x]
                    sigma = (floor + share * d[y, x]) * np.sqrt(ONE + ONE / max(frames[y, x], ONE))
                    if abs(r) < _BIAS_GATE * sigma:
                        sums[0, row, x // _BLOCK] += r / value[y, x]
                        sums[1, row, x // _BLOCK] += ONE


def fuse(d: np.ndarray, m: np.ndarray, grey: np.ndarray, planes: np.ndarray, frames: np.ndarray,
         seen: np.ndarray, bias: np.ndarray, noise: NoiseModel, flow: float, limit: float,
         means: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the running mean, its frames, the history without bias, H W each, and counts."""
    floor, share = np.float32(noise.floor), np.float32(noise.share)
    maps = np.empty((4, *d.shape), np.float32)
    value, weight = np.empty_like(d), np.empty_like(d)
    _residuals(d, m, grey, planes, frames, seen, bias, floor, share, np.float32(flow * _MISPLACED),
               np.float32(limit), value, weight, maps)
    fused, left = np.empty_like(d), np.empty_like(d)
    counts = np.zeros((d.shape[0], 2), np.int64)
    _fuse(d, m, value, weight, maps, np.float32(limit), np.float32(temporal.unseen_share(flow)),
          np.float32(means), fused, left, counts)
    return fused, left, value, counts.sum(axis=0)


@njit(parallel=True, **FUSED)
def _residuals(d, m, grey, planes, frames, seen, bias, floor, share, misplaced, limit, value,
               weight, maps):
    """Free the history of bias, weigh it, and give residuals in standard deviations."""
    height, width = d.shape
    rows, columns = bias.shape
    inverse = np.float32(1 / _BLOCK)
    for y in prange(height):
        v = max(ZERO, min((np.float32(y) + np.float32(0.5)) * inverse - np.float32(0.5),
                          np.float32(rows - 1)))
        v0 = min(int(v), max(0, rows - 2))
        v1 = min(v0 + 1, rows - 1)
        av = v - np.float32(v0)
        for x in range(width):
            n = min(frames[y, x], limit)
            old = planes[0, y, x]
            if n > ZERO and old > ZERO:
                u = max(ZERO, min((np.float32(x) + np.float32(0.5)) * inverse - np.float32(0.5),
                                  np.float32(columns - 1)))
                u0 = min(int(u), max(0, columns - 2))
                u1 = min(u0 + 1, columns - 1)
                au = u - np.float32(u0)
                offset = ((ONE - av) * ((ONE - au) * bias[v0, u0] + au * bias[v0, u1])
                          + av * ((ONE - au) * bias[v1, u0] + au * bias[v1, u1]))
                old *= ONE + offset
                sigma = floor + share * old
                error = misplaced * min(
                    _roughness(planes, frames, y, x), _STEEPEST * old) / sigma
                n = n / (ONE + n * error * error)
            else:
                n, old, sigma = ZERO, ZERO, ONE
            both = np.float32((m[y, x] > ZERO) & (n > ZERO))
            spread = sigma * np.sqrt(ONE + ONE / max(n, _LEAST_WEIGHT))
            r = both * max(-_CLIP, min(_CLIP, (d[y, x] - old) / spread))
            value[y, x], weight[y, x] = old, n
            maps[0, y, x] = both
            maps[1, y, x] = r
            maps[2, y, x] = abs(r)
            change = abs(np.float32(grey[y, x]) - np.float32(seen[y, x])) * np.float32(1 / 255)
            maps[3, y, x] = change if n > ZERO else ZERO


@njit(**INLINE)
def _roughness(planes, frames, y, x):
    """Return the largest step to a neighbour with a history, beyond what the plane says."""
    height, width = frames.shape
    value, ux, uy = planes[0, y, x], planes[1, y, x], planes[2, y, x]
    roughest = ZERO
    if x > 0 and frames[y, x - 1] > ZERO:
        roughest = max(roughest, abs(value - ux - planes[0, y, x - 1]))
    if x + 1 < width and frames[y, x + 1] > ZERO:
        roughest = max(roughest, abs(value + ux - planes[0, y, x + 1]))
    if y > 0 and frames[y - 1, x] > ZERO:
        roughest = max(roughest, abs(value - uy - planes[0, y - 1, x]))
    if y + 1 < height and frames[y + 1, x] > ZERO:
        roughest = max(roughest, abs(value + uy - planes[0, y + 1, x]))
    return roughest


@njit(parallel=True, **FUSED)
def _fuse(d, m, value, weight, maps, limit, unseen, means, fused, left, counts):
    """Decide from the means around every pixel; the image is mirrored beyond its border."""
    height, width = d.shape
    inverse = ONE / means
    for row in prange(height):
        y = np.int64(row)
        sums = np.zeros((4, width + 4), np.float32)
        for k in range(4):
            reach = _REACHES[k]
            for dy in range(-reach, reach + 1):
                _add(maps[k, _mirrored(y + dy, height)], sums[k])
            for x in (-2, -1, width, width + 1):
                sums[k, x + 2] = sums[k, _mirrored(x, width) + 2]
        both, mean, misfit, image = sums[0], sums[1], sums[2], sums[3]
        seen = kept = 0
        for x in range(U(width)):
            n = weight[y, x]
            count = ONE / max(_five(both, x), np.float32(25e-6))
            n *= _falling(
                (image[x + _1] + image[x + _2] + image[x + _3]) / np.float32(9), _IMAGE)
            w = m[y, x]
            if w > ZERO:
                n *= _falling(abs(_five(mean, x)) * count * inverse, _MEAN) \
                    * _falling((_five(misfit, x) * count - _EXPECTED) * inverse, _MISFIT)
                seen += weight[y, x] > ZERO
                if n > ZERO and maps[2, y, x] < _GATE:
                    fused[y, x] = (n * value[y, x] + w * d[y, x]) / (n + w)
                    left[y, x] = min(n + w, limit)
                    kept += 1
                elif n * _OUTLIER >= _LEAST:  # an outlier amid neighbours that agree
                    fused[y, x] = value[y, x]
                    left[y, x] = n * _OUTLIER
                    kept += 1
                else:
                    fused[y, x], left[y, x] = d[y, x], w
            elif n * unseen >= _LEAST:
                fused[y, x], left[y, x] = value[y, x], n * unseen
            else:
                fused[y, x] = left[y, x] = ZERO
        counts[y, 0], counts[y, 1] = seen, kept


@njit(**INLINE)
def _mirrored(i, n):
    while not 0 <= i < n:
        i = -1 - i if i < 0 else 2 * n - 1 - i
    return i


@njit(**INLINE)
def _add(row, sums):
    for x in range(U(row.size)):
        sums[x + _2] += row[x]


@njit(**INLINE)
def _five(sums, x):
    """Return the sum of five neighbours."""
    return sums[x] + sums[x + _1] + sums[x + _2] + sums[x + _3] + sums[x + _4]


@njit(**INLINE)
def _falling(value, limits):
    """Return 1 below the first limit, 0 beyond the second, linear between."""
    part = (np.float32(limits[1]) - value) * np.float32(1 / (limits[1] - limits[0]))
    return min(ONE, max(ZERO, part))
