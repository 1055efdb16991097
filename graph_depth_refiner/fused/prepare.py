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
A better start on the fused backend; the plain twin is graph_depth_refiner.prepare.

Everything is in noise units: a vote of similar pixels, slopes of planes in closed form, and
graph weights that know of depth.
"""

from __future__ import annotations

import math

from numba import njit, prange
import numpy as np

from graph_depth_refiner.fused.fading import fading
from graph_depth_refiner.fused.holes import weighted_median
from graph_depth_refiner.fused.rows import FUSED, ONE, step_to, U, with_margin, ZERO
from graph_depth_refiner.prepare_rules import LEAST_SPREAD, LEAST_WEIGHT, RIDGE, VOTERS
from graph_depth_refiner.problem import window_of

_REACH = VOTERS // 2


def outvote(z: np.ndarray, color: np.ndarray, stride: int, limit: float, share: float,
            sigma: float) -> np.ndarray:
    """
    Return the map with pixels replaced that similar pixels around them contradict.

    Of the voters, a square of pixels `stride` apart weighted by colour, fewer than `share`
    are within `limit` of the pixel; it takes their weighted median if that is not either.
    """
    result = z.copy()
    _vote(
        z, color, stride, np.float32(limit), np.float32(share),
        np.float32(0.5 / (color.shape[0] * sigma * sigma)), result)
    return result


def fit_slopes(z: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the slopes, 2 H W, of the least-squares plane through every pixel of the map."""
    slopes = np.empty((2, *z.shape), np.float32)
    _fit(_with_margin(z[None], w), w, slopes)
    return slopes


def depth_aware(w: np.ndarray, x: np.ndarray, sigma: float) -> np.ndarray:
    """Return the weights times how well the planes x of two pixels predict each other."""
    aware = np.empty_like(w)
    _weigh(_with_margin(x, w), w, np.float32(0.5 / sigma ** 2), aware)
    return aware


def give_way(w: np.ndarray, x: np.ndarray, half: float) -> np.ndarray:
    """Return the weights of every pixel scaled down by how its slopes differ around it."""
    scaled = np.empty_like(w)
    _give_way(_with_margin(x, w), w, np.float32(1 / half), scaled)
    return scaled


def _with_margin(x, w):
    return with_margin(x, 1.0, window_of(len(w)) // 2)


@njit(parallel=True, **FUSED)
def _vote(z, color, stride, limit, share, fade, result):
    height, width = z.shape
    for y in prange(height):
        total = np.zeros(width, np.float32)
        below = np.zeros(width, np.float32)
        above = np.zeros(width, np.float32)
        for a in range(-_REACH, _REACH + 1):
            v = y + a * stride
            if v < 0 or v >= height:
                continue
            for b in range(-_REACH, _REACH + 1):
                _poll(z, color, y, v, b * stride, limit, fade, total, below, above)
        values = np.empty(VOTERS * VOTERS, np.float32)
        weights = np.empty(VOTERS * VOTERS, np.float32)
        for x in range(width):
            against = max(below[x], above[x])
            if total[x] - below[x] - above[x] < share * total[x] and 2 * against >= total[x]:
                result[y, x] = _elected(z, color, y, x, stride, fade, values, weights)


@njit(**{**FUSED, 'forceinline': True})
def _poll(z, color, y, v, shift, limit, fade, total, below, above):
    """Add the votes of one voter of each pixel of a row."""
    here, there = U(max(0, -shift)), U(max(0, shift))
    mine, its = z[y], z[v]
    r, g, b = color[0, y], color[1, y], color[2, y]
    p, q, s = color[0, v], color[1, v], color[2, v]
    for x in range(U(max(0, z.shape[1] - abs(shift)))):
        i, j = here + x, there + x
        unlike = (r[i] - p[j]) ** 2 + (g[i] - q[j]) ** 2 + (b[i] - s[j]) ** 2
        weight = fading(unlike * fade)
        rise = its[j] - mine[i]
        total[i] += weight
        below[i] += weight if rise < -limit else ZERO
        above[i] += weight if rise > limit else ZERO


@njit(**FUSED)
def _elected(z, color, y, x, stride, fade, values, weights):
    height, width = z.shape
    count = 0
    for a in range(-_REACH, _REACH + 1):
        for b in range(-_REACH, _REACH + 1):
            v, u = y + a * stride, x + b * stride
            if 0 <= v < height and 0 <= u < width:
                unlike = (color[0, y, x] - color[0, v, u]) ** 2
                unlike += (color[1, y, x] - color[1, v, u]) ** 2
                unlike += (color[2, y, x] - color[2, v, u]) ** 2
                values[count] = z[v, u]
                weights[count] = fading(unlike * fade)
                count += 1
    return weighted_median(values, weights, count)


@njit(parallel=True, **FUSED)
def _fit(z, w, slopes):
    edges, height, width = w.shape
    r = (z.shape[1] - height) // 2
    n = U(width)
    for y in prange(height):
        sums = np.zeros((5, width), np.float32)
        xx, xy, yy, xz, yz = sums[0], sums[1], sums[2], sums[3], sums[4]
        mine = z[0, y + r]
        for o in range(edges):
            dy, dx = step_to(o, edges, r)
            fx, fy = np.float32(dx), np.float32(dy)
            its, row = z[0, y + r + dy], w[o, y]
            s, t = U(r), U(r + dx)
            for x in range(n):
                weight = row[x]
                rise = its[t + x] - mine[s + x]
                xx[x] += weight * fx * fx
                xy[x] += weight * fx * fy
                yy[x] += weight * fy * fy
                xz[x] += weight * fx * rise
                yz[x] += weight * fy * rise
        ux, uy = slopes[0, y], slopes[1, y]
        for x in range(n):
            spread = xx[x] + yy[x]
            p, q = xx[x] + np.float32(RIDGE) * spread, yy[x] + np.float32(RIDGE) * spread
            det = p * q - xy[x] * xy[x]
            scale = ONE / det if spread > np.float32(LEAST_SPREAD) else ZERO
            ux[x] = (q * xz[x] - xy[x] * yz[x]) * scale
            uy[x] = (p * yz[x] - xy[x] * xz[x]) * scale


@njit(parallel=True, **FUSED)
def _weigh(x, w, fade, aware):
    edges, height, width = w.shape
    r = (x.shape[1] - height) // 2
    n = U(width)
    for y in prange(height):
        d, ux, uy = x[0, y + r], x[1, y + r], x[2, y + r]
        s = U(r)
        for o in range(edges):
            dy, dx = step_to(o, edges, r)
            fx, fy, t = np.float32(dx), np.float32(dy), U(r + dx)
            e, ex, ey = x[0, y + r + dy], x[1, y + r + dy], x[2, y + r + dy]
            old, new = w[o, y], aware[o, y]
            for i in range(n):
                rise = e[t + i] - d[s + i]
                there = rise - ux[s + i] * fx - uy[s + i] * fy
                back = rise - ex[t + i] * fx - ey[t + i] * fy
                weight = old[i] * fading(max(there * there, back * back) * fade)
                new[i] = weight if weight >= np.float32(LEAST_WEIGHT) else ZERO


@njit(parallel=True, **FUSED)
def _give_way(x, w, steep, scaled):
    edges, height, width = w.shape
    r = (x.shape[1] - height) // 2
    n = U(width)
    for y in prange(height):
        turn, total = np.zeros(width, np.float32), np.zeros(width, np.float32)
        ux, uy, s = x[1, y + r], x[2, y + r], U(r)
        for o in range(edges):
            dy, dx = step_to(o, edges, r)
            vx, vy, t, row = x[1, y + r + dy], x[2, y + r + dy], U(r + dx), w[o, y]
            for i in range(n):
                a, b = vx[t + i] - ux[s + i], vy[t + i] - uy[s + i]
                turn[i] += row[i] * math.sqrt(a * a + b * b)
                total[i] += row[i]
        for i in range(n):
            mean = turn[i] / max(total[i], np.float32(LEAST_WEIGHT)) * steep
            total[i] = ONE / (ONE + mean * mean)
        for o in range(edges):
            for i in range(n):
                scaled[o, y, i] = w[o, y, i] * total[i]
