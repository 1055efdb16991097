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
"""Linearise the misfit that shows the motion of the camera: the reference."""

from __future__ import annotations

import numpy as np

from graph_depth_refiner.core import camera
from graph_depth_refiner.core.odometry import (
    BLOCK,
    DEPTH_SCALE,
    Equations,
    FLAT_BLOCK,
    OUTLIER,
    SEEN,
    TERMS,
)
from graph_depth_refiner.frame import Intrinsics


def normal_equations(x: np.ndarray, n: np.ndarray, before: np.ndarray, d: np.ndarray,
                     m: np.ndarray, now: np.ndarray, stride: int, motion: np.ndarray,
                     gain_bias: np.ndarray, intrinsics: Intrinsics, sigma: float, photometric_sigma: float,
                     block_flow_scale: float) -> Equations:
    """
    Linearise the misfit of planes and images at a motion.

    Samples are every `stride`-th plane x (3 H W) with evidence n. The image residual is
    now(pi(P')) - gain before - bias; the depth residual is that of the measured d against
    the moved plane at the pixel where the point lands. The images may be smaller.
    """
    height, width = n.shape
    k, scale = intrinsics, now.shape[1] / width
    v, u = np.meshgrid(_samples(height, stride), _samples(width, stride), indexing='ij')
    use = (x[0, v, u] > 0) & (n[v, u] > 0)
    v, u = v[use], u[use]
    inverse = x[0, v, u].astype(float)
    ray = np.stack([(u - k.cx) / k.fx, (v - k.cy) / k.fy, np.ones(u.size)])  # 3 N
    p = motion[:3, :3] @ (ray / inverse) + motion[:3, 3:]  # 3 N
    with np.errstate(all='ignore'):
        hu, hv = k.fx * p[0] / p[2] + k.cx, k.fy * p[1] / p[2] + k.cy
        use = (p[2] > 0) & (hu >= 1) & (hv >= 1) & (hu <= width - 2) & (hv <= height - 2)
    u, v, p, hu, hv = u[use], v[use], p[:, use], hu[use], hv[use]
    blocks = (v // BLOCK) * -(-width // BLOCK) + u // BLOCK
    sums = np.zeros((-(-height // BLOCK) * -(-width // BLOCK), SEEN + 4))

    is_now, gu, gv = _bilinear(now, (hu + 0.5) * scale - 0.5, (hv + 0.5) * scale - 0.5)
    was, _, _ = _bilinear(before, (u + 0.5) * scale - 0.5, (v + 0.5) * scale - 0.5)
    gu, gv = gu * scale, gv * scale
    r = is_now - gain_bias[0] * was - gain_bias[1]
    slope = np.stack([gu * k.fx / p[2], gv * k.fy / p[2], np.zeros(u.size)])
    slope[2] = -(slope[0] * p[0] + slope[1] * p[1]) / p[2]
    j = np.stack([*np.cross(p, slope, axis=0), *slope, -was, -np.ones(u.size)])  # 8 N
    e = r / photometric_sigma
    w = 1 / ((1 + e * e) * photometric_sigma) ** 2
    _add(sums, blocks, j, r, w)
    np.add.at(sums, (blocks, SEEN), 1)
    np.add.at(sums, (blocks, SEEN + 1), e * e < OUTLIER)
    flow = np.zeros((len(sums), 5))
    np.add.at(flow, blocks, np.stack([w * gu * gu, w * gu * gv, w * gv * gv, w * gu * r,
                                      w * gv * r], axis=1))
    q = camera.plane_vectors(x.astype(float), intrinsics)[:, v, u]  # 3 N
    _add_depth(sums, blocks, q, (hu, hv), d, m, motion, intrinsics, sigma)
    shifts = _shifts(flow, photometric_sigma)
    sums[:, :SEEN] *= (1 / (1 + (shifts / block_flow_scale) ** 2) ** 2)[:, None]
    return Equations.of_sums(sums.sum(axis=0), shifts[sums[:, SEEN] > 0])


def _samples(side: int, stride: int) -> np.ndarray:
    """Return every stride-th place of every block."""
    return np.concatenate([np.arange(first + stride // 2, min(first + BLOCK, side), stride)
                           for first in range(0, side, BLOCK)])


def _add_depth(sums, blocks, planes, place, d, m, motion, intrinsics, sigma):
    """Add the point-to-plane equations, at the centre of the pixel where a point lands."""
    k = intrinsics
    column, row = np.rint(place[0]).astype(int), np.rint(place[1]).astype(int)
    weight = m[row, column].astype(float)
    use = weight > 0
    blocks, planes, column, row, weight = (
        blocks[use], planes[:, use].astype(float), column[use], row[use], weight[use])
    rays = np.stack([(column - k.cx) / k.fx, (row - k.cy) / k.fy, np.ones(row.size)])  # 3 N
    q = motion[:3, :3] @ planes
    q = q / (1 + motion[:3, 3] @ q)
    there = (q * rays).sum(axis=0)
    r = d[row, column] - there
    j = np.zeros((TERMS, row.size))
    j[:3] = -np.cross(q, rays, axis=0)
    j[3:6] = there * q
    e = r / (DEPTH_SCALE * sigma)
    _add(sums, blocks, j, r, weight / ((1 + e * e) * sigma) ** 2)
    np.add.at(sums, (blocks, SEEN + 2), 1)
    np.add.at(sums, (blocks, SEEN + 3), e * e < OUTLIER)


def _add(sums, blocks, j, r, w):
    """Add w J^T J and w J^T r of samples to their blocks, upper triangle row by row."""
    k = 0
    for a in range(TERMS):
        for b in range(a, TERMS):
            np.add.at(sums, (blocks, k), w * j[a] * j[b])
            k += 1
        np.add.at(sums, (blocks, k), w * j[a] * r)
        k += 1


def _bilinear(image, u, v):
    """Return the image at (u, v) and its two derivatives."""
    iu = np.clip(np.floor(u).astype(int), 0, image.shape[1] - 2)
    iv = np.clip(np.floor(v).astype(int), 0, image.shape[0] - 2)
    fu, fv = u - iu, v - iv
    corners = (image[iv + a, iu + b].astype(float) for a in (0, 1) for b in (0, 1))
    one, two, three, four = corners
    top, low = (1 - fu) * one + fu * two, (1 - fu) * three + fu * four
    left, right = (1 - fv) * one + fv * three, (1 - fv) * two + fv * four
    return (1 - fv) * top + fv * low, right - left, low - top


def _shifts(flow, photometric_sigma):
    """Return how far every block would like to move by itself, in pixels."""
    uu, uv, vv, ur, vr = flow.T
    uu, vv = uu + FLAT_BLOCK / photometric_sigma ** 2, vv + FLAT_BLOCK / photometric_sigma ** 2
    determinant = uu * vv - uv * uv
    return np.hypot((vv * ur - uv * vr) / determinant, (uu * vr - uv * ur) / determinant)
