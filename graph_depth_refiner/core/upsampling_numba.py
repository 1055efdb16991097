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
"""From planes of the solved resolution to planes of every pixel: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core import upsampling
from graph_depth_refiner.core.jit.options import FUSED, INLINE, ONE, ZERO

_WIDTH, _KEPT = np.float32(upsampling.WIDTH), np.float32(upsampling.KEPT)
_NEAR, _LEAST = np.float32(upsampling.NEAR), np.float32(upsampling.LEAST)
_HALF = np.float32(0.5)
_SIDES = upsampling.SIDES


def upsample_planes(planes: np.ndarray, frames: np.ndarray, d: np.ndarray, sigma: np.ndarray,
                    scale: int) -> np.ndarray:
    """
    Return planes 3 h w at every pixel of a `scale` times larger image, 3 H W.

    frames, h w, are 0 where a plane only goes on into a hole: measured pixels heed the others.
    d, H W, is what is known of the inverse depth there, 0 where nothing is, and sigma, H W,
    its standard deviation. A plane of inverse depth 0 is none.
    """
    large = np.empty((3, *d.shape), np.float32)
    _upsample(planes, frames, d, sigma, scale, large)
    return large


@njit(parallel=True, **FUSED)
def _upsample(planes, frames, d, sigma, scale, large):
    height, width = d.shape
    rows, columns = planes.shape[1:]
    share = np.float32(1 / scale)
    for y in prange(height):
        v = (np.float32(y) + _HALF) * share - _HALF
        v0 = int(np.floor(v))
        for x in range(width):
            u = (np.float32(x) + _HALF) * share - _HALF
            u0 = int(np.floor(u))
            own_row, own_column = min(y // scale, rows - 1), min(x // scale, columns - 1)
            known = d[y, x] > ZERO
            value = d[y, x]
            spread = sigma[y, x]
            if not known:  # the plane of its own cell stands for it
                value = planes[0, own_row, own_column]
                if value > ZERO:
                    value += planes[1, own_row, own_column] * (u - np.float32(own_column)) \
                        + planes[2, own_row, own_column] * (v - np.float32(own_row))
            total = sum_d = sum_x = sum_y = ZERO
            inverse = ONE / (_WIDTH * spread)
            for k in range(4):
                row = min(max(v0 + k // 2, 0), rows - 1)
                column = min(max(u0 + k % 2, 0), columns - 1)
                near = (ONE - abs(np.float32(v0 + k // 2) - v)) * (
                    ONE - abs(np.float32(u0 + k % 2) - u)) + _NEAR
                base = planes[0, row, column]
                if base > ZERO and (frames[row, column] > ZERO or not known):
                    ux, uy = planes[1, row, column], planes[2, row, column]
                    there = base + ux * (u - np.float32(column)) + uy * (v - np.float32(row))
                    e = (there - value) * inverse
                    a = ONE - e * e
                    if a > ZERO:
                        a = near * a * a
                        total += a
                        sum_d += a * there
                        sum_x += a * ux
                        sum_y += a * uy
            if total > _LEAST:
                a = ONE / total
                fit = sum_d * a
                large[1, y, x], large[2, y, x] = sum_x * a * share, sum_y * a * share
                if known:
                    e = value - fit
                    noise = _KEPT * spread
                    if abs(e) > noise:
                        fit += e * (ONE - noise * noise / (e * e))
                large[0, y, x] = fit
            else:
                if known:
                    value = _on_a_side(planes, frames, own_row, own_column, u, v, value,
                                       _WIDTH * spread)
                large[0, y, x] = value
                large[1, y, x] = planes[1, own_row, own_column] * share
                large[2, y, x] = planes[2, own_row, own_column] * share


@njit(**INLINE)
def _on_a_side(planes, frames, row, column, u, v, value, close):
    """
    Return a value that no plane around explains on the nearer of two sides it lies between.

    Such a pixel mixes two surfaces (flying pixel). One that is nearer or farther than all
    planes around it is a thing of its own, and stays.
    """
    rows, columns = frames.shape
    above, below = np.float32(np.inf), np.float32(np.inf)  # how far the sides are
    for r in range(max(0, row - _SIDES), min(rows, row + _SIDES + 1)):
        for c in range(max(0, column - _SIDES), min(columns, column + _SIDES + 1)):
            if frames[r, c] > ZERO:
                off = planes[0, r, c] + planes[1, r, c] * (u - np.float32(c)) \
                    + planes[2, r, c] * (v - np.float32(r)) - value
                if off > close:
                    above = min(above, off)
                elif off < -close:
                    below = min(below, -off)
                else:
                    return value
    if above < np.float32(np.inf) and below < np.float32(np.inf):
        return value + above if above < below else value - below
    return value
