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
"""Normal equations of the camera's motion: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.odometry import (
    BLOCK,
    DEPTH_SCALE,
    FLAT_BLOCK,
    MARGIN,
    OUTLIER,
    SEEN,
    TERMS,
)
from graph_depth_refiner.frame import Intrinsics


@njit(inline='always')
def _add(acc, j, r, w, terms):
    """Add w J^T J and w J^T r of one sample, upper triangle row by row."""
    k = 0
    for a in range(TERMS):
        for b in range(a, TERMS):
            if b < terms:
                acc[k] += w * j[a] * j[b]
            k += 1
        if a < terms:
            acc[k] += w * j[a] * r
        k += 1


@njit(inline='always')
def _bilinear(image, u, v):
    """Return the image at (u, v), and where that lies: cell and share of its far side."""
    x = min(max(int(np.floor(u)), 0), image.shape[1] - 2)
    y = min(max(int(np.floor(v)), 0), image.shape[0] - 2)
    fu, fv = u - x, v - y
    top = (1 - fu) * image[y, x] + fu * image[y, x + 1]
    low = (1 - fu) * image[y + 1, x] + fu * image[y + 1, x + 1]
    return (1 - fv) * top + fv * low, x, y, fu, fv


@njit(inline='always')
def _slopes(image, x, y, fu, fv):
    """Return both slopes of the image in a cell: central differences, interpolated."""
    left, right = max(x - 1, 0), min(x + 2, image.shape[1] - 1)
    up, down = max(y - 1, 0), min(y + 2, image.shape[0] - 1)
    across = (1 - fv) * (
        (1 - fu) * (image[y, x + 1] - image[y, left]) + fu * (image[y, right] - image[y, x])
    ) + fv * ((1 - fu) * (image[y + 1, x + 1] - image[y + 1, left])
              + fu * (image[y + 1, right] - image[y + 1, x]))
    along = (1 - fu) * (
        (1 - fv) * (image[y + 1, x] - image[up, x]) + fv * (image[down, x] - image[y, x])
    ) + fu * ((1 - fv) * (image[y + 1, x + 1] - image[up, x + 1])
              + fv * (image[down, x + 1] - image[y, x + 1]))
    return 0.5 * across, 0.5 * along


@njit(inline='always')
def _measured(d, m, u, v):
    """Return column, row, d and weight of what is measured around (u, v), and its share."""
    first, top = int(np.floor(u)), int(np.floor(v))
    column, row, value, weight, share = 0.0, 0.0, 0.0, 0.0, 0.0
    for y in range(top, top + 2):
        for x in range(first, first + 2):
            part = (1 - abs(y - v)) * (1 - abs(x - u))
            own = part * m[y, x]
            if own > 0:
                share += part
                weight += own
                column += own * x
                row += own * y
                value += own * d[y, x]
    if weight > 0:
        column, row, value = column / weight, row / weight, value / weight
    return column, row, value, weight, share


@njit(parallel=True, nogil=True, cache=True)
def _blocks(x, n, before, d, m, now, scale, stride, motion, gain_bias, camera, sigma,
            photometric_sigma, block_flow_scale, sums, shifts):
    """Sum the normal equations of every block, weighted by how little it moves on its own."""
    height, width = n.shape
    fx, fy, cx, cy = camera[0], camera[1], camera[2], camera[3]
    right, bottom = width - 1 - MARGIN, height - 1 - MARGIN
    gain, bias = gain_bias[0], gain_bias[1]
    across = -(-width // BLOCK)
    for block in prange(sums.shape[0]):
        j = np.empty(TERMS)
        acc = sums[block]
        acc[:] = 0
        fuu = fuv = fvv = fur = fvr = 0.0
        first_y, first_u = (block // across) * BLOCK, (block % across) * BLOCK
        for y in range(first_y + stride // 2, min(first_y + BLOCK, height), stride):
            for u in range(first_u + stride // 2, min(first_u + BLOCK, width), stride):
                inverse, ux, uy = float(x[0, y, u]), float(x[1, y, u]), float(x[2, y, u])
                if inverse <= 0 or n[y, u] <= 0:
                    continue
                rx, ry = (u - cx) / fx, (y - cy) / fy
                z = 1 / inverse
                px = (motion[0, 0] * rx + motion[0, 1] * ry + motion[0, 2]) * z + motion[0, 3]
                py = (motion[1, 0] * rx + motion[1, 1] * ry + motion[1, 2]) * z + motion[1, 3]
                pz = (motion[2, 0] * rx + motion[2, 1] * ry + motion[2, 2]) * z + motion[2, 3]
                if pz <= 0:
                    continue
                hu, hv = fx * px / pz + cx, fy * py / pz + cy
                # said so that NaN, of a plane at no distance, is outside as well
                if not (MARGIN <= hu <= right and MARGIN <= hv <= bottom):
                    continue
                is_now, cell_x, cell_y, fu, fv = _bilinear(
                    now, (hu + 0.5) * scale - 0.5, (hv + 0.5) * scale - 0.5)
                gu, gv = _slopes(now, cell_x, cell_y, fu, fv)
                was, _, _, _, _ = _bilinear(
                    before, (u + 0.5) * scale - 0.5, (y + 0.5) * scale - 0.5)
                r = is_now - gain * was - bias
                gu, gv = gu * scale, gv * scale
                ix, iy = gu * fx / pz, gv * fy / pz
                iz = -(ix * px + iy * py) / pz
                j[0], j[1], j[2] = py * iz - pz * iy, pz * ix - px * iz, px * iy - py * ix
                j[3], j[4], j[5] = ix, iy, iz
                j[6], j[7] = -was, -1
                e = r / photometric_sigma
                w = 1 / ((1 + e * e) * (1 + e * e) * photometric_sigma * photometric_sigma)
                _add(acc, j, r, w, TERMS)
                fuu += w * gu * gu
                fuv += w * gu * gv
                fvv += w * gv * gv
                fur += w * gu * r
                fvr += w * gv * r
                acc[SEEN] += 1
                acc[SEEN + 1] += e * e < OUTLIER
                # depth: point to plane, at the centre of what is measured where it lands
                column, row, value, weight, share = _measured(d, m, hu, hv)
                if weight <= 0:
                    continue
                a0, b0, c0 = fx * ux, fy * uy, inverse - ux * (u - cx) - uy * (y - cy)
                qa = motion[0, 0] * a0 + motion[0, 1] * b0 + motion[0, 2] * c0
                qb = motion[1, 0] * a0 + motion[1, 1] * b0 + motion[1, 2] * c0
                qc = motion[2, 0] * a0 + motion[2, 1] * b0 + motion[2, 2] * c0
                s = 1 + qa * motion[0, 3] + qb * motion[1, 3] + qc * motion[2, 3]
                qa, qb, qc = qa / s, qb / s, qc / s
                vx, vy = (column - cx) / fx, (row - cy) / fy
                predicted = qa * vx + qb * vy + qc
                r = value - predicted
                j[0], j[1], j[2] = vy * qc - qb, qa - vx * qc, vx * qb - vy * qa
                j[3], j[4], j[5] = predicted * qa, predicted * qb, predicted * qc
                e = r / (DEPTH_SCALE * sigma)
                w = weight / ((1 + e * e) * (1 + e * e) * sigma * sigma)
                _add(acc, j, r, w, 6)
                acc[SEEN + 2] += share
                acc[SEEN + 3] += share * (e * e < OUTLIER)
        # how far the block would move on its own, in pixels: a Lucas-Kanade step
        floor = FLAT_BLOCK / (photometric_sigma * photometric_sigma)
        fuu, fvv = fuu + floor, fvv + floor
        det = fuu * fvv - fuv * fuv
        su, sv = (fvv * fur - fuv * fvr) / det, (fuu * fvr - fuv * fur) / det
        squared = su * su + sv * sv
        shifts[block] = np.sqrt(squared)
        ratio = squared / (block_flow_scale * block_flow_scale)
        still = 1 / ((1 + ratio) * (1 + ratio))
        for k in range(SEEN):
            acc[k] *= still


def normal_equations(x: np.ndarray, n: np.ndarray, before: np.ndarray, d: np.ndarray,
                     m: np.ndarray, now: np.ndarray, stride: int, motion: np.ndarray,
                     gain_bias: np.ndarray, intrinsics: Intrinsics, sigma: float,
                     photometric_sigma: float, block_flow_scale: float
                     ) -> tuple[np.ndarray, np.ndarray]:
    """Linearise the misfit of planes and images at a motion, in float64; see the reference."""
    height, width = n.shape
    sums = np.empty((-(-height // BLOCK) * -(-width // BLOCK), SEEN + 4))
    shifts = np.empty(len(sums))
    k = intrinsics
    _blocks(x, n, before, d, m, now, now.shape[1] / width, stride, motion.astype(np.float64),
            gain_bias, np.array([k.fx, k.fy, k.cx, k.cy], np.float64), float(sigma),
            photometric_sigma, block_flow_scale, sums, shifts)
    return sums, shifts
