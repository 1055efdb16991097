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
"""Loops over pixels that alignment and fusion need: they import nothing of the package."""

from __future__ import annotations

from numba import njit
import numpy as np

NEAREST = 0.05  # metres; nothing is projected nearer than this
IMAGE_GATE = 0.03  # of the depth; the image is compared where both depths agree this far
WIDEST_SIGMAS = 3.0  # residual, in deviations, at which the point-to-plane weight is a half
PHOTOMETRIC_SIGMA = 0.02  # of an image in [0, 1]
LEAST_SHARE = 0.4  # of the pixels of a window that a plane is fitted to
LEAST_SPREAD = 1e-3  # px^4, determinant of the scatter of those pixels


@njit(nogil=True, cache=True)
def point_to_plane_equations(
        source, source_grey, points, normals, grey, gradient_x, gradient_y, motion, camera, gate,
        noise_growth, image_weight, stride):
    """
    Return the normal equations of a motion that takes one frame onto another.

    source: points of the moved frame, H W 3, and its image; points, normals, grey and its
    gradients: of the target. camera is fx, fy, cx, cy; gate the largest distance relative to the
    depth. Point-to-plane distances (Chen and Medioni 1992) under a deviation of
    noise_growth * z^2, and image differences (Steinbruecker et al. 2011), both with Cauchy
    weights. Returns J^T J (6 6), J^T r (6), the number of pixels that agree, and of those that
    meet a measured one.
    """
    squares, gradient, jacobian = np.zeros((6, 6)), np.zeros(6), np.zeros(6)
    agreeing, met = 0, 0
    height, width = grey.shape
    fx, fy, cx, cy = camera
    turn, shift = motion[:3, :3], motion[:3, 3]
    for row in range(0, source.shape[0], stride):
        for column in range(0, source.shape[1], stride):
            x0, y0, z0 = source[row, column, 0], source[row, column, 1], source[row, column, 2]
            if not z0 > 0:
                continue
            x = turn[0, 0] * x0 + turn[0, 1] * y0 + turn[0, 2] * z0 + shift[0]
            y = turn[1, 0] * x0 + turn[1, 1] * y0 + turn[1, 2] * z0 + shift[1]
            z = turn[2, 0] * x0 + turn[2, 1] * y0 + turn[2, 2] * z0 + shift[2]
            if z <= 2 * NEAREST:
                continue
            u, v = fx * x / z + cx, fy * y / z + cy
            i, j = int(round(v)), int(round(u))
            if i < 2 or j < 2 or i >= height - 2 or j >= width - 2:
                continue
            there = points[i, j, 2]
            if not there > 0:
                continue
            met += 1
            sigma = noise_growth * z * z
            nx, ny, nz = normals[i, j, 0], normals[i, j, 1], normals[i, j, 2]
            if nx == nx:
                r = nx * (x - points[i, j, 0]) + ny * (y - points[i, j, 1]) + nz * (z - there)
                if abs(z - there) < gate * z and abs(r) < gate * z:
                    share = abs(r) / (WIDEST_SIGMAS * sigma)
                    weight = 1.0 / (1.0 + share * share) / (sigma * sigma)
                    _motion_derivative(jacobian, nx, ny, nz, x, y, z)
                    _add(squares, gradient, jacobian, weight, r)
                    agreeing += 1
            if image_weight > 0 and abs(z - there) < IMAGE_GATE * z:
                r = _bilinear(grey, u, v) - source_grey[row, column]
                gx, gy = gradient_x[i, j] * fx / z, gradient_y[i, j] * fy / z
                share = abs(r) / (2 * PHOTOMETRIC_SIGMA)
                weight = image_weight / (1.0 + share * share) / PHOTOMETRIC_SIGMA ** 2
                _motion_derivative(jacobian, gx, gy, -(gx * x + gy * y) / z, x, y, z)
                _add(squares, gradient, jacobian, weight, r)
    return squares, gradient, agreeing, met


@njit(nogil=True, cache=True, inline='always')
def _motion_derivative(jacobian, gx, gy, gz, x, y, z):
    """Turn a derivative by a point into one by the rotation and shift of its motion."""
    jacobian[0], jacobian[1], jacobian[2] = gz * y - gy * z, gx * z - gz * x, gy * x - gx * y
    jacobian[3], jacobian[4], jacobian[5] = gx, gy, gz


@njit(nogil=True, cache=True, inline='always')
def _add(squares, gradient, jacobian, weight, residual):
    for k in range(6):
        gradient[k] += weight * jacobian[k] * residual
        for m in range(6):
            squares[k, m] += weight * jacobian[k] * jacobian[m]


@njit(nogil=True, cache=True, inline='always')
def _bilinear(image, u, v):
    j, i = int(u), int(v)
    a, b = u - j, v - i
    return ((1 - b) * ((1 - a) * image[i, j] + a * image[i, j + 1])
            + b * ((1 - a) * image[i + 1, j] + a * image[i + 1, j + 1]))


@njit(nogil=True, cache=True)
def splat(depth, motion, camera, slope_x, slope_y):
    """
    Forward-warp a depth map along a motion to the nearest pixels, with a z-buffer.

    slope_x, slope_y (H W, inverse depth per pixel of the target) take each point to the middle of
    its pixel. Returns the depth H W, 0 where nothing arrives, and the flat index of the pixel
    it came from, -1 where none.
    """
    height, width = depth.shape
    fx, fy, cx, cy = camera
    moved = np.zeros((height, width), np.float32)
    inverse = np.zeros((height, width), np.float32)
    origin = np.full((height, width), -1, np.int64)
    turn, shift = motion[:3, :3], motion[:3, 3]
    for row in range(height):
        for column in range(width):
            z0 = depth[row, column]
            if not z0 > 0:
                continue
            x0, y0 = (column - cx) / fx * z0, (row - cy) / fy * z0
            x = turn[0, 0] * x0 + turn[0, 1] * y0 + turn[0, 2] * z0 + shift[0]
            y = turn[1, 0] * x0 + turn[1, 1] * y0 + turn[1, 2] * z0 + shift[1]
            z = turn[2, 0] * x0 + turn[2, 1] * y0 + turn[2, 2] * z0 + shift[2]
            if z <= NEAREST:
                continue
            u, v = fx * x / z + cx, fy * y / z + cy
            i, j = int(round(v)), int(round(u))
            if i < 0 or j < 0 or i >= height or j >= width:
                continue
            d = 1 / z
            if d > inverse[i, j]:
                inverse[i, j] = d
                origin[i, j] = row * width + column
                d += slope_x[i, j] * (j - u) + slope_y[i, j] * (i - v)
                moved[i, j] = 1 / d if d > 1e-3 else z
    return moved, origin


@njit(nogil=True, cache=True)
def densest_group(stack, tolerance):
    """
    Return per pixel the centre of the densest group of the values of a stack N H W.

    A group is the longest run of sorted values within twice the tolerance (H W, metres); zeros
    are unknown. Its centre is halfway between mean and median: of quantised values neither alone
    is right. Returns the centre H W, the size of the group and the number of known values.
    """
    count, height, width = stack.shape
    centre = np.zeros((height, width), np.float32)
    size = np.zeros((height, width), np.int32)
    total = np.zeros((height, width), np.int32)
    known = np.empty(count, np.float32)
    for i in range(height):
        for j in range(width):
            m = 0
            for k in range(count):
                if stack[k, i, j] > 0:
                    known[m] = stack[k, i, j]
                    m += 1
            total[i, j] = m
            if m == 0:
                continue
            values = np.sort(known[:m])
            best, start, last = 0, 0, 0
            for first in range(m):
                while last < m and values[last] - values[first] <= 2 * tolerance[i, j]:
                    last += 1
                if last - first > best:
                    best, start = last - first, first
            size[i, j] = best
            mean = 0.0
            for k in range(start, start + best):
                mean += values[k]
            median = 0.5 * (values[start + (best - 1) // 2] + values[start + best // 2])
            centre[i, j] = 0.5 * (mean / best + median)
    return centre, size, total


@njit(nogil=True, cache=True)
def fit_planes(d, known, radius, gate):
    """
    Fit planes of inverse depth to the pixels of a window that are close to them.

    d: inverse depth H W; gate: how close in inverse depth, H W, wider in the first of the two
    rounds. Returns d, ux, uy (3 H W) at each known pixel, NaN where too few are close.
    """
    height, width = d.shape
    planes = np.full((3, height, width), np.nan, np.float32)
    for i in range(height):
        for j in range(width):
            if not known[i, j]:
                continue
            p0, p1, p2 = d[i, j], 0.0, 0.0
            found = True
            for turn in range(2):
                n = sx = sy = sxx = sxy = syy = sd = sxd = syd = 0.0
                for v in range(max(0, i - radius), min(height, i + radius + 1)):
                    for u in range(max(0, j - radius), min(width, j + radius + 1)):
                        if not known[v, u]:
                            continue
                        x, y = u - j, v - i
                        reach = gate[i, j]
                        if turn == 0:
                            reach *= 1.5 + 0.75 * max(abs(x), abs(y))
                        if abs(d[v, u] - (p0 + p1 * x + p2 * y)) > reach:
                            continue
                        n += 1
                        sx += x
                        sy += y
                        sxx += x * x
                        sxy += x * y
                        syy += y * y
                        sd += d[v, u]
                        sxd += x * d[v, u]
                        syd += y * d[v, u]
                if n < LEAST_SHARE * (2 * radius + 1) ** 2:
                    found = False
                    break
                mx, my, md = sx / n, sy / n, sd / n
                xx, xy, yy = sxx / n - mx * mx, sxy / n - mx * my, syy / n - my * my
                xd, yd = sxd / n - mx * md, syd / n - my * md
                determinant = xx * yy - xy * xy
                if determinant < LEAST_SPREAD:
                    found = False
                    break
                p1, p2 = (xd * yy - yd * xy) / determinant, (yd * xx - xd * xy) / determinant
                p0 = md - p1 * mx - p2 * my
            if found:
                planes[0, i, j], planes[1, i, j], planes[2, i, j] = p0, p1, p2
    return planes
