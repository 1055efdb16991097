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

from graph_depth_refiner.core.jit.options import FAST, U
from graph_depth_refiner.core.odometry import (
    Alignment,
    BLOCK,
    BLOCK_FLOW_SCALE,
    DEPTH_SCALE,
    FLAT_BLOCK,
    LEAST_AGREEING,
    LEAST_ALIKE,
    LEAST_SAMPLES,
    MARGIN,
    OUTLIER,
    PHOTOMETRIC_SIGMA,
    PLAN,
    SEEN,
    STILL,
    TERMS,
)
from graph_depth_refiner.frame import Intrinsics

_NEXT = U(1)


@njit(nogil=True, cache=True, fastmath=FAST, forceinline=True)
def _sum_products(rows, weighted, count, sums):
    """
    Sum J^T W J and J^T W r of some samples, in sums: the upper triangle row by row.

    rows, TERMS + 1 N, are those of J and r; weighted is room for as many.
    """
    for a in range(TERMS):
        for s in range(U(count)):
            weighted[s] = rows[TERMS + 1, s] * rows[a, s]
        for b in range(a, TERMS + 1):
            total = 0.0
            for s in range(U(count)):
                total += weighted[s] * rows[b, s]
            sums[a * (TERMS + 1) - a * (a - 1) // 2 + b - a] = total


@njit(inline='always')
def _cell(image, u, v):
    """Return the cell of the image that (u, v) is in, and the share of its far side."""
    x = min(max(int(np.floor(u)), 0), image.shape[1] - 2)
    y = min(max(int(np.floor(v)), 0), image.shape[0] - 2)
    return U(x), U(y), u - x, v - y


@njit(inline='always')
def _bilinear(image, x, y, fu, fv):
    """Return the image in a cell."""
    top = (1 - fu) * image[y, x] + fu * image[y, x + _NEXT]
    low = (1 - fu) * image[y + _NEXT, x] + fu * image[y + _NEXT, x + _NEXT]
    return (1 - fv) * top + fv * low


@njit(inline='always')
def _slopes(image, x, y, fu, fv):
    """Return both slopes of the image in a cell: central differences, interpolated."""
    left = x - _NEXT if x > 0 else x
    right = x + _NEXT + _NEXT if x + _NEXT + _NEXT < image.shape[1] else x + _NEXT
    up = y - _NEXT if y > 0 else y
    down = y + _NEXT + _NEXT if y + _NEXT + _NEXT < image.shape[0] else y + _NEXT
    beyond, below = x + _NEXT, y + _NEXT
    a, b, c, e = image[y, x], image[y, beyond], image[below, x], image[below, beyond]
    across = (1 - fv) * ((1 - fu) * (b - image[y, left]) + fu * (image[y, right] - a)) \
        + fv * ((1 - fu) * (e - image[below, left]) + fu * (image[below, right] - c))
    along = (1 - fu) * ((1 - fv) * (c - image[up, x]) + fv * (image[down, x] - a)) \
        + fu * ((1 - fv) * (e - image[up, beyond]) + fv * (image[down, beyond] - b))
    return 0.5 * across, 0.5 * along


@njit(inline='always')
def _measured(d, m, u, v):
    """Return column, row, d and weight of what is measured around (u, v), and its share."""
    column, row = int(u), int(v)  # inside the image, and so above 0
    fu, fv, x, y = u - column, v - row, U(column), U(row)
    a, b, c, e = (1 - fu) * (1 - fv), fu * (1 - fv), (1 - fu) * fv, fu * fv
    ma, mb, mc, me = m[y, x], m[y, x + _NEXT], m[y + _NEXT, x], m[y + _NEXT, x + _NEXT]
    share = (a if ma > 0 else 0.0) + (b if mb > 0 else 0.0) \
        + (c if mc > 0 else 0.0) + (e if me > 0 else 0.0)
    a, b, c, e = a * ma, b * mb, c * mc, e * me
    weight = a + b + c + e
    inverse = 1 / weight if weight > 0 else 0.0
    value = a * d[y, x] + b * d[y, x + _NEXT] + c * d[y + _NEXT, x] \
        + e * d[y + _NEXT, x + _NEXT]
    return (column + inverse * (b + e), row + inverse * (c + e), inverse * value, weight, share)


@njit(nogil=True, cache=True, forceinline=True)
def _append(rows, s, a, b, c, d, e, f, g, h, r, w):
    rows[0, s], rows[1, s], rows[2, s], rows[3, s], rows[4, s] = a, b, c, d, e
    rows[5, s], rows[6, s], rows[7, s], rows[8, s], rows[9, s] = f, g, h, r, w


@njit(parallel=True, nogil=True, cache=True, fastmath={'arcp', 'contract', 'nsz'})
def _blocks(x, n, before, d, m, now, scale, stride, motion, gain_bias, camera, sigma,
            photometric_sigma, block_flow_scale, sums, shifts):
    """Sum the normal equations of every block, weighted by how little it moves on its own."""
    height, width = n.shape
    fx, fy, cx, cy = camera[0], camera[1], camera[2], camera[3]
    right, bottom = width - 1 - MARGIN, height - 1 - MARGIN
    gain, bias = gain_bias[0], gain_bias[1]
    across = -(-width // BLOCK)
    most = 2 * ((BLOCK - 1) // stride + 1) ** 2  # residuals of a block, of image and depth
    for block in prange(sums.shape[0]):
        rows, count = np.empty((TERMS + 2, most)), U(0)  # J, r and weights
        weighted, acc = np.empty(most), sums[block]
        acc[SEEN:] = 0
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
                cell_x, cell_y, fu, fv = _cell(
                    now, (hu + 0.5) * scale - 0.5, (hv + 0.5) * scale - 0.5)
                is_now = _bilinear(now, cell_x, cell_y, fu, fv)
                gu, gv = _slopes(now, cell_x, cell_y, fu, fv)
                if scale == 1:
                    was = float(before[y, u])
                else:
                    cell_x, cell_y, fu, fv = _cell(
                        before, (u + 0.5) * scale - 0.5, (y + 0.5) * scale - 0.5)
                    was = _bilinear(before, cell_x, cell_y, fu, fv)
                r = is_now - gain * was - bias
                gu, gv = gu * scale, gv * scale
                ix, iy = gu * fx / pz, gv * fy / pz
                iz = -(ix * px + iy * py) / pz
                e = r / photometric_sigma
                w = 1 / ((1 + e * e) * (1 + e * e) * photometric_sigma * photometric_sigma)
                _append(rows, count, py * iz - pz * iy, pz * ix - px * iz, px * iy - py * ix,
                        ix, iy, iz, -was, -1.0, r, w)
                count += U(1)
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
                e = r / (DEPTH_SCALE * sigma)
                w = weight / ((1 + e * e) * (1 + e * e) * sigma * sigma)
                _append(rows, count, vy * qc - qb, qa - vx * qc, vx * qb - vy * qa,
                        predicted * qa, predicted * qb, predicted * qc, 0.0, 0.0, r, w)
                count += U(1)
                acc[SEEN + 2] += share
                acc[SEEN + 3] += share * (e * e < OUTLIER)
        _sum_products(rows, weighted, count, acc)
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
    sums, shifts = _room(n.shape)
    _blocks(x, n, before, d, m, now, now.shape[1] / n.shape[1], stride,
            motion.astype(np.float64), gain_bias, _camera(intrinsics), float(sigma),
            photometric_sigma, block_flow_scale, sums, shifts)
    return sums, shifts


def _room(shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return where the sums and the shift of every block go."""
    sums = np.empty((-(-shape[0] // BLOCK) * -(-shape[1] // BLOCK), SEEN + 4))
    return sums, np.empty(len(sums))


def _camera(k: Intrinsics) -> np.ndarray:
    return np.array([k.fx, k.fy, k.cx, k.cy], np.float64)


def search_motion(problem: Alignment, matrix: np.ndarray, plan: tuple, block_flow_scale: float
                  ) -> np.ndarray:
    """Return the 16 numbers of the motion that is found from a first one on, 1 if trusted."""
    now, near, nothing = problem.now, float(problem.near), np.append(np.eye(4), 0.0)
    if not near > 0:
        return nothing
    matrix, gain_bias = np.array(matrix, np.float64), np.array([1.0, 0.0])
    sums, shifts = _room(now.d.shape)
    total, scale = np.zeros(SEEN + 4), float(block_flow_scale)
    for floor, stride, iterations, wider, most in plan:
        images = problem.images[min(floor, len(problem.images) - 1)]
        scale = _search(
            problem.past.planes, problem.steady, images[0], now.d, now.m, images[1], stride,
            iterations, STILL * 2 ** floor, most, matrix, gain_bias, _camera(now.intrinsics),
            wider * float(now.sigma), wider * PHOTOMETRIC_SIGMA, scale, near, sums, shifts, total)
        if scale == 0:
            return nothing
    height, width = now.d.shape
    seen, alike, measured, agreeing = total[SEEN:]
    trusted = (np.isfinite(matrix).all()
               and measured > LEAST_SAMPLES * height * width / PLAN[-1][1] ** 2
               and agreeing > LEAST_AGREEING * measured and alike > LEAST_ALIKE * seen)
    return np.append(matrix, trusted)


@njit(nogil=True, cache=True)
def _search(x, n, before, d, m, now, stride, iterations, still, most, matrix, gain_bias,
            camera, sigma, photometric_sigma, block_flow_scale, near, sums, shifts, total):
    """Take Gauss-Newton steps; return the scale of the motion of blocks, 0 if it failed."""
    step = np.empty(TERMS)
    for _ in range(iterations):
        _blocks(x, n, before, d, m, now, now.shape[1] / n.shape[1], stride, matrix, gain_bias,
                camera, sigma, photometric_sigma, block_flow_scale, sums, shifts)
        for k in range(SEEN + 4):
            total[k] = 0.0
            for block in range(len(sums)):
                total[k] += sums[block, k]
        shift = _median_shift(sums, shifts)
        if not _solve(total, near, step) or shift > most:
            return 0.0
        _move(matrix, step)
        gain_bias[0] += step[6]
        gain_bias[1] += step[7]
        block_flow_scale = max(BLOCK_FLOW_SCALE, 2 * shift)
        if camera[0] * max(np.abs(step[:3]).max(), near * np.abs(step[3:6]).max()) < still:
            break
    return block_flow_scale


@njit(nogil=True, cache=True)
def _median_shift(sums, shifts):
    """Return the upper median of how far blocks with samples would move, 0 if none has."""
    known = np.sort(shifts[sums[:, SEEN] > 0])
    return known[len(known) // 2] if len(known) > 0 else 0.0


@njit(nogil=True, cache=True)
def _solve(total, near, step):
    """
    Find the Gauss-Newton step, slightly damped, by Cholesky; tell whether there is one.

    It is solved for in units free of the scene's scale: translations times `near`.
    """
    lower, k, trace = np.zeros((TERMS, TERMS)), 0, 0.0
    for a in range(TERMS):
        own = 1 / near if 3 <= a < 6 else 1.0
        for b in range(a, TERMS):
            lower[b, a] = total[k] * own * (1 / near if 3 <= b < 6 else 1.0)
            k += 1
        step[a] = -total[k] * own
        k += 1
        trace += lower[a, a]
    damping = 1e-6 * trace / TERMS + 1e-12
    for a in range(TERMS):
        for b in range(a + 1):
            value = lower[a, b] + (damping if a == b else 0.0)
            for c in range(b):
                value -= lower[a, c] * lower[b, c]
            if a == b:
                if not 0 < value < np.inf:
                    return False
                lower[a, a] = np.sqrt(value)
            else:
                lower[a, b] = value / lower[b, b]
    for a in range(TERMS):
        for c in range(a):
            step[a] -= lower[a, c] * step[c]
        step[a] /= lower[a, a]
    for a in range(TERMS - 1, -1, -1):
        for c in range(a + 1, TERMS):
            step[a] -= lower[c, a] * step[c]
        step[a] /= lower[a, a]
    step[3:6] /= near
    return np.isfinite(step).all()


@njit(nogil=True, cache=True)
def _move(matrix, step):
    """Put a small motion, rotation vector and translation, behind a motion 4 4, in place."""
    x, y, z = step[0], step[1], step[2]
    squared = x * x + y * y + z * z
    angle = np.sqrt(squared)
    # sin(t) / t and (1 - cos(t)) / t^2 of Rodrigues' formula
    a = np.sin(angle) / angle if angle > 1e-4 else 1 - squared / 6
    half = np.sin(0.5 * angle) / angle if angle > 1e-4 else 0.5 - squared / 48
    b = 2 * half * half
    for column in range(4):
        p, q, r = matrix[0, column], matrix[1, column], matrix[2, column]
        u, v, w = y * r - z * q, z * p - x * r, x * q - y * p
        matrix[0, column] = p + a * u + b * (y * w - z * v) + step[3] * matrix[3, column]
        matrix[1, column] = q + a * v + b * (z * u - x * w) + step[4] * matrix[3, column]
        matrix[2, column] = r + a * w + b * (x * v - y * u) + step[5] * matrix[3, column]
