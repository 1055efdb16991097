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
"""Carry planes along a rigid motion, and linearise the misfit that shows the motion."""

from __future__ import annotations

import numpy as np

from graph_depth_refiner import camera
from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.motion_rules import (
    BLOCK,
    DEPTH_SCALE,
    EDGE_ON,
    Equations,
    FLAT_BLOCK,
    OUTLIER,
    SEEN,
    TERMS,
)


def carry(x: np.ndarray, n: np.ndarray, color: np.ndarray, motion: np.ndarray,
          intrinsics: Intrinsics) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Return planes 3 H W, evidence H W and colour C H W as seen after P' = R P + t.

    A plane <q, P> = 1 becomes q' = R q / (1 + <R q, t>), exactly. Of the planes that land
    on a pixel the nearest stays; a crack between them takes the nearest of its neighbours.
    """
    height, width = n.shape
    target, moved = _aim(x, n, motion, intrinsics)
    landed = np.flatnonzero(target >= 0)
    # the last write wins: nearest last, and of equally near ones the first
    order = landed[np.lexsort((-landed, moved[0].ravel()[landed]))]
    source = np.full(n.size, -1)
    source[target.ravel()[order]] = order
    source = source.reshape(n.shape)
    source, dy, dx = _without_cracks(source, moved[0].ravel())
    found = source >= 0
    carried = moved.reshape(3, -1)[:, source] * found  # 3 H W
    carried[0] += carried[1] * dx + carried[2] * dy
    evidence = n.ravel()[source] * found
    seen = color.reshape(len(color), -1)[:, source] * found
    return carried.astype(np.float32), evidence.astype(np.float32), seen.astype(np.uint8)


def _aim(x, n, motion, intrinsics):
    """Return the pixel each plane lands on (-1 none), and its d, ux, uy there."""
    height, width = n.shape
    k, rotation, translation = intrinsics, motion[:3, :3], motion[:3, 3]
    across, down = camera.pixel_offsets(n.shape, intrinsics)
    rays = np.stack(np.broadcast_arrays(across / k.fx, down / k.fy, np.float32(1)))  # 3 H W
    here = (x[0] > 0) & (n > 0)
    point = np.einsum('ij,jhw->ihw', rotation, rays) + x[0] * translation[:, None, None]
    here &= point[2] > 0
    depth = np.where(here, point[2], 1)
    column = np.rint(k.fx * point[0] / depth + k.cx)
    row = np.rint(k.fy * point[1] / depth + k.cy)
    here &= (column >= 0) & (column < width) & (row >= 0) & (row < height)
    q = np.einsum('ij,jhw->ihw', rotation, camera.plane_vectors(x, intrinsics))
    scale = 1 + np.einsum('ihw,i->hw', q, translation)
    here &= scale > 0
    q = q / np.where(here, scale, 1)
    value = q[0] * (column - k.cx) / k.fx + q[1] * (row - k.cy) / k.fy + q[2]
    straight = x[0] / depth  # inverse depth of the point itself
    # seen edge-on a plane is elsewhere half a pixel aside
    here &= (value >= EDGE_ON * straight) & (EDGE_ON * value <= straight)
    target = np.where(here, row * width + column, -1).astype(np.int64)
    return target, np.stack([value, q[0] / k.fx, q[1] / k.fy])


def _without_cracks(source, near):
    """Let pixels that nothing landed on take the nearest plane of their four neighbours."""
    dy, dx = np.zeros(source.shape), np.zeros(source.shape)
    best = np.zeros(source.shape)
    filled = source.copy()
    padded = np.pad(source, 1, constant_values=-1)
    height, width = source.shape
    for sy, sx in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        other = padded[1 + sy:1 + sy + height, 1 + sx:1 + sx + width]
        value = np.where(other >= 0, near[other], 0)
        better = (source < 0) & (value > best)
        best = np.where(better, value, best)
        filled = np.where(better, other, filled)
        dy, dx = np.where(better, -sy, dy), np.where(better, -sx, dx)
    return filled, dy, dx


def normal_equations(x: np.ndarray, n: np.ndarray, before: np.ndarray, d: np.ndarray,
                     m: np.ndarray, now: np.ndarray, stride: int, motion: np.ndarray,
                     light: np.ndarray, intrinsics: Intrinsics, sigma: float, shade: float,
                     pace: float) -> Equations:
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
    r = is_now - light[0] * was - light[1]
    slope = np.stack([gu * k.fx / p[2], gv * k.fy / p[2], np.zeros(u.size)])
    slope[2] = -(slope[0] * p[0] + slope[1] * p[1]) / p[2]
    j = np.stack([*np.cross(p, slope, axis=0), *slope, -was, -np.ones(u.size)])  # 8 N
    e = r / shade
    w = 1 / ((1 + e * e) * shade) ** 2
    _add(sums, blocks, j, r, w)
    np.add.at(sums, (blocks, SEEN), 1)
    np.add.at(sums, (blocks, SEEN + 1), e * e < OUTLIER)
    flow = np.zeros((len(sums), 5))
    np.add.at(flow, blocks, np.stack([w * gu * gu, w * gu * gv, w * gv * gv, w * gu * r,
                                      w * gv * r], axis=1))
    q = camera.plane_vectors(x.astype(float), intrinsics)[:, v, u]  # 3 N
    _add_depth(sums, blocks, q, (hu, hv), d, m, motion, intrinsics, sigma)
    shifts = _shifts(flow, shade)
    sums[:, :SEEN] *= (1 / (1 + (shifts / pace) ** 2) ** 2)[:, None]
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


def _shifts(flow, shade):
    """Return how far every block would like to move by itself, in pixels."""
    uu, uv, vv, ur, vr = flow.T
    uu, vv = uu + FLAT_BLOCK / shade ** 2, vv + FLAT_BLOCK / shade ** 2
    determinant = uu * vv - uv * uv
    return np.hypot((vv * ur - uv * vr) / determinant, (uu * vr - uv * ur) / determinant)
