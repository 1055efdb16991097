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
The search for the camera's motion as Triton kernels: two launches for each of its steps.

The first sums the normal equations of every block of pixels, one program each. The second, a
single program, adds the blocks up, solves for the step and takes it. Where the search stands is
a record on the device, which nobody reads before the end.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from graph_depth_refiner.core import odometry as stage
from graph_depth_refiner.core.triton_launch import launch, scalar

_BLOCK, _TERMS, _SEEN = (
    tl.constexpr(one) for one in (stage.BLOCK, stage.TERMS, stage.SEEN))
_OUTLIER, _DEPTH_SCALE = tl.constexpr(stage.OUTLIER), tl.constexpr(stage.DEPTH_SCALE)
_FLAT_BLOCK, _FLOW = tl.constexpr(stage.FLAT_BLOCK), tl.constexpr(stage.BLOCK_FLOW_SCALE)
_STILL = tl.constexpr(stage.STILL)
_MARGIN = tl.constexpr(stage.MARGIN)
# the record: the motion, whether it is trusted, gain and bias of the image, the scale of the
# motion of blocks, whether the search is on, whether it failed
RECORD = 22
_TRUSTED, _GAIN, _BIAS, _SCALE, _ACTIVE, _FAILED, _RECORD = map(
    tl.constexpr, (16, 17, 18, 19, 20, 21, RECORD))
_LEAST_AGREEING, _LEAST_ALIKE = map(
    tl.constexpr, (stage.LEAST_AGREEING, stage.LEAST_ALIKE))
ROW = 64  # numbers of a block: the sums, the counts, and its shift


def search_motion(problem: stage.Alignment, matrix: torch.Tensor, plan: tuple,
                  block_flow_scale: float) -> torch.Tensor:
    """Return the 16 numbers of the motion from a first one on, and 1 if it is trusted."""
    now = problem.now
    height, width = now.d.shape
    rows, columns = -(-height // stage.BLOCK), -(-width // stage.BLOCK)
    record = matrix.new_empty(RECORD)
    near = scalar(problem.near, matrix)
    launch(begin_kernel, 1, matrix.contiguous(), near, record, float(block_flow_scale))
    sigma = scalar(now.sigma, matrix)
    blocks = matrix.new_empty(rows * columns, ROW)
    k = now.intrinsics
    planes, steady, d, m = (one.contiguous() for one in (
        problem.past.planes, problem.steady, now.d, now.m))
    for floor, stride, iterations, wider, most in plan:
        before, after = (
            one.contiguous() for one in problem.images[min(floor, len(problem.images) - 1)])
        for number in range(iterations):
            launch(blocks_kernel, rows * columns, planes, steady, before, d, m, after, record,
                   sigma, blocks, k.fx, k.fy, k.cx, k.cy, float(wider),
                   wider * stage.PHOTOMETRIC_SIGMA, height, width, *after.shape, columns,
                   stride=stride, samples=64, num_warps=2)
            last = number == iterations - 1
            launch(step_kernel, 1, blocks, record, near, k.fx, rows * columns, 2.0 ** floor,
                   stage.LEAST_SAMPLES * height * width / stage.PLAN[-1][1] ** 2, float(most),
                   last=last, room=triton.next_power_of_2(rows * columns), num_warps=8)
    return record[:17]


@triton.jit
def begin_kernel(matrix, near, record, scale):
    """Write where a search begins."""
    place = tl.arange(0, 32)
    value = tl.load(matrix + place, mask=place < 16, other=0.0)
    value = tl.where(place == _GAIN, 1.0, value)
    value = tl.where(place == _SCALE, scale, value)
    bad = tl.load(near) <= 0
    value = tl.where(place == _ACTIVE, tl.where(bad, 0.0, 1.0), value)
    value = tl.where(place == _FAILED, tl.where(bad, 1.0, 0.0), value)
    tl.store(record + place, value, mask=place < _RECORD)


@triton.jit
def _pixel(image, row, column, use, rows, columns):
    """Return pixels of an image that goes on with its edge."""
    row = tl.minimum(tl.maximum(row, 0), rows - 1)
    column = tl.minimum(tl.maximum(column, 0), columns - 1)
    return tl.load(image + row * columns + column, mask=use, other=0.0).to(tl.float64)


@triton.jit
def _bilinear(image, u, v, use, rows, columns):
    """Return the image at (u, v) and its two slopes, of central differences, interpolated."""
    column = tl.minimum(tl.maximum(tl.floor(u).to(tl.int32), 0), columns - 2)
    row = tl.minimum(tl.maximum(tl.floor(v).to(tl.int32), 0), rows - 2)
    fu, fv = u - column, v - row
    one = _pixel(image, row, column, use, rows, columns)
    two = _pixel(image, row, column + 1, use, rows, columns)
    three = _pixel(image, row + 1, column, use, rows, columns)
    four = _pixel(image, row + 1, column + 1, use, rows, columns)
    top, low = one + fu * (two - one), three + fu * (four - three)
    left, right = one + fv * (three - one), two + fv * (four - two)
    before = (1 - fu) * _pixel(image, row - 1, column, use, rows, columns) \
        + fu * _pixel(image, row - 1, column + 1, use, rows, columns)
    after = (1 - fu) * _pixel(image, row + 2, column, use, rows, columns) \
        + fu * _pixel(image, row + 2, column + 1, use, rows, columns)
    down = 0.5 * ((1 - fv) * (low - before) + fv * (after - top))
    before = (1 - fv) * _pixel(image, row, column - 1, use, rows, columns) \
        + fv * _pixel(image, row + 1, column - 1, use, rows, columns)
    after = (1 - fv) * _pixel(image, row, column + 2, use, rows, columns) \
        + fv * _pixel(image, row + 1, column + 2, use, rows, columns)
    across = 0.5 * ((1 - fu) * (right - before) + fu * (after - left))
    return top + fv * (low - top), across, down


@triton.jit
def _measured(d, m, u, v, use, width):
    """Return column, row, d and weight of what is measured around (u, v), and its share."""
    first, top = tl.floor(u).to(tl.int32), tl.floor(v).to(tl.int32)
    total, share = tl.zeros_like(u), tl.zeros_like(u)
    columns, rows, values = tl.zeros_like(u), tl.zeros_like(u), tl.zeros_like(u)
    for corner in tl.static_range(4):
        row, column = top + corner // 2, first + corner % 2
        part = (1.0 - tl.abs(row - v)) * (1.0 - tl.abs(column - u))
        at = row * width + column
        weight = part * tl.load(m + at, mask=use, other=0.0).to(tl.float64)
        total += weight
        columns += weight * column
        rows += weight * row
        values += weight * tl.load(d + at, mask=use, other=0.0).to(tl.float64)
        share += tl.where(weight > 0, part, 0.0)
    inverse = 1.0 / tl.where(share > 0, total, 1.0)
    return columns * inverse, rows * inverse, values * inverse, total, share


@triton.jit
def _entry(record, place: tl.constexpr):
    return tl.load(record + place)


@triton.jit
def _term(a: tl.constexpr, j0, j1, j2, j3, j4, j5, j6, j7, r):
    """Return one of the derivatives, or the residual."""
    if a == 0:
        return j0
    elif a == 1:
        return j1
    elif a == 2:
        return j2
    elif a == 3:
        return j3
    elif a == 4:
        return j4
    elif a == 5:
        return j5
    elif a == 6:
        return j6
    elif a == 7:
        return j7
    else:
        return r


@triton.jit(do_not_specialize=['height', 'width', 'rows', 'columns', 'across'])
def blocks_kernel(planes, n, before, d, m, now, record, sigmas, blocks, fx, fy, cx, cy, wider,
                  photometric, height, width, rows, columns, across, stride: tl.constexpr,
                  samples: tl.constexpr):
    """Write the sums of one block, weighted by how little it moves on its own, and its shift."""
    if tl.load(record + _ACTIVE) == 0:
        return
    block = tl.program_id(0)
    per_row: tl.constexpr = (_BLOCK - stride // 2 + stride - 1) // stride
    sample = tl.arange(0, samples)
    y = (block // across) * _BLOCK + stride // 2 + (sample // per_row) * stride
    x = (block % across) * _BLOCK + stride // 2 + (sample % per_row) * stride
    use = (sample < per_row * per_row) & (y < height) & (x < width)
    size = height * width
    place = y * width + x
    inverse = tl.load(planes + place, mask=use, other=0.0).to(tl.float64)
    ux = tl.load(planes + size + place, mask=use, other=0.0).to(tl.float64)
    uy = tl.load(planes + 2 * size + place, mask=use, other=0.0).to(tl.float64)
    use = use & (inverse > 0) & (tl.load(n + place, mask=use, other=0.0) > 0)
    r00, r01, r02 = _entry(record, 0), _entry(record, 1), _entry(record, 2)
    r10, r11, r12 = _entry(record, 4), _entry(record, 5), _entry(record, 6)
    r20, r21, r22 = _entry(record, 8), _entry(record, 9), _entry(record, 10)
    t0, t1, t2 = _entry(record, 3), _entry(record, 7), _entry(record, 11)
    x, y = x.to(tl.float64), y.to(tl.float64)
    rx, ry = (x - cx) / fx, (y - cy) / fy
    z = 1.0 / tl.where(use, inverse, 1.0)
    px = (r00 * rx + r01 * ry + r02) * z + t0
    py = (r10 * rx + r11 * ry + r12) * z + t1
    pz = (r20 * rx + r21 * ry + r22) * z + t2
    use = use & (pz > 0)
    pz = tl.where(use, pz, 1.0)
    to_u, to_v = px / pz * fx + cx, py / pz * fy + cy
    use = use & (to_u >= _MARGIN) & (to_v >= _MARGIN) & (to_u <= width - 1 - _MARGIN) & (
        to_v <= height - 1 - _MARGIN)
    to_u, to_v = tl.where(use, to_u, 1.0), tl.where(use, to_v, 1.0)
    px, py = tl.where(use, px, 0.0), tl.where(use, py, 0.0)
    scale = tl.zeros_like(x) + columns
    scale = scale / width
    is_now, gu, gv = _bilinear(
        now, (to_u + 0.5) * scale - 0.5, (to_v + 0.5) * scale - 0.5, use, rows, columns)
    was, flat_u, flat_v = _bilinear(
        before, (x + 0.5) * scale - 0.5, (y + 0.5) * scale - 0.5, use, rows, columns)
    gu, gv = gu * scale, gv * scale
    r = is_now - _entry(record, _GAIN) * was - _entry(record, _BIAS)
    ix, iy = gu / pz * fx, gv / pz * fy
    iz = -(ix * px + iy * py) / pz
    e = r / photometric
    w = tl.where(use, 1.0 / ((1 + e * e) * (1 + e * e) * photometric * photometric), 0.0)
    j0, j1, j2 = py * iz - pz * iy, pz * ix - px * iz, px * iy - py * ix
    j6 = -was
    j7 = tl.zeros_like(was) - 1.0
    # how far the block would move on its own, in pixels: a Lucas-Kanade step
    flat = 1.0 / (photometric * photometric) * _FLAT_BLOCK
    uu, vv = tl.sum(w * gu * gu, axis=0) + flat, tl.sum(w * gv * gv, axis=0) + flat
    uv = tl.sum(w * gu * gv, axis=0)
    ur, vr = tl.sum(w * gu * r, axis=0), tl.sum(w * gv * r, axis=0)
    determinant = uu * vv - uv * uv
    su, sv = (vv * ur - uv * vr) / determinant, (uu * vr - uv * ur) / determinant
    squared = su * su + sv * sv
    allowed = tl.load(record + _SCALE)
    ratio = squared / (allowed * allowed)
    still = 1.0 / ((1 + ratio) * (1 + ratio))
    # depth: point to plane, where the point lands
    column, row, measured, weight, share = _measured(d, m, to_u, to_v, use, width)
    has_depth = use & (share > 0)
    a0, b0, c0 = ux * fx, uy * fy, inverse - ux * (x - cx) - uy * (y - cy)
    qa = r00 * a0 + r01 * b0 + r02 * c0
    qb = r10 * a0 + r11 * b0 + r12 * c0
    qc = r20 * a0 + r21 * b0 + r22 * c0
    s = tl.where(has_depth, 1.0 + qa * t0 + qb * t1 + qc * t2, 1.0)
    qa, qb, qc = (tl.where(has_depth, qa / s, 0.0), tl.where(has_depth, qb / s, 0.0),
                  tl.where(has_depth, qc / s, 0.0))
    vx, vy = (column - cx) / fx, (row - cy) / fy
    predicted = qa * vx + qb * vy + qc
    rd = measured - predicted
    sigma = tl.load(sigmas) * wider
    ed = rd / (sigma * _DEPTH_SCALE)
    wd = tl.where(has_depth, weight / ((1 + ed * ed) * (1 + ed * ed) * sigma * sigma), 0.0)
    k0, k1, k2 = vy * qc - qb, qa - vx * qc, vx * qb - vy * qa
    k3, k4, k5 = predicted * qa, predicted * qb, predicted * qc
    none = tl.zeros_like(was)
    at = blocks + block * 64
    for a in tl.static_range(8):
        for b in tl.static_range(a, 9):
            total = tl.sum(
                w * _term(a, j0, j1, j2, ix, iy, iz, j6, j7, r)
                * _term(b, j0, j1, j2, ix, iy, iz, j6, j7, r)
                + wd * _term(a, k0, k1, k2, k3, k4, k5, none, none, rd)
                * _term(b, k0, k1, k2, k3, k4, k5, none, none, rd), axis=0)
            tl.store(at + a * (19 - a) // 2 + b - a, total * still)
    tl.store(at + _SEEN, tl.sum(use.to(tl.float64), axis=0))
    tl.store(at + _SEEN + 1, tl.sum((use & (e * e < _OUTLIER)).to(tl.float64), axis=0))
    tl.store(at + _SEEN + 2, tl.sum(tl.where(has_depth, share, 0.0), axis=0))
    agrees = has_depth & (ed * ed < _OUTLIER)
    tl.store(at + _SEEN + 3, tl.sum(tl.where(agrees, share, 0.0), axis=0))
    tl.store(at + _SEEN + 4, tl.sqrt(squared))


@triton.jit
def _column_sum(blocks, number, row, there):
    return tl.sum(tl.load(blocks + row * 64 + number, mask=there, other=0.0), axis=0)


@triton.jit
def _pick(values, place, number):
    """Return one of some values."""
    return tl.sum(tl.where(place == number, values, 0.0), axis=0)


@triton.jit(do_not_specialize=['count'])
def step_kernel(blocks, record, near, fx, count, pixel, samples, most, last: tl.constexpr,
                room: tl.constexpr):
    """
    Add the blocks up, solve for the step, take it, and note whether the search goes on.

    After the last one at a level it goes on at the next, unless it failed.
    """
    if tl.load(record + _ACTIVE) > 0:
        _take_step(blocks, record, near, fx, count, pixel, samples, most, room)
    if last:
        tl.debug_barrier()
        tl.store(record + _ACTIVE, 1.0 - tl.load(record + _FAILED))


@triton.jit
def _take_step(blocks, record, near, fx, count, pixel, samples, most, room: tl.constexpr):
    block = tl.arange(0, room)
    there = block < count
    # the median of the shifts of blocks that are seen: the upper one of two
    shifts = tl.load(blocks + block * 64 + _SEEN + 4, mask=there, other=0.0).to(tl.float32)
    seen = there & (tl.load(blocks + block * 64 + _SEEN, mask=there, other=0.0) > 0)
    ordered = tl.sort(tl.where(seen, shifts, float('inf')))
    half = tl.sum(seen.to(tl.int32), axis=0) // 2
    shift = tl.sum(tl.where(block == half, ordered, 0.0), axis=0)
    shift = tl.where(shift < float('inf'), shift, 0.0).to(tl.float64)
    unit = 1.0 / tl.load(near)
    rows = tl.arange(0, 8)[:, None]
    columns = tl.arange(0, 16)[None, :]
    matrix = tl.zeros([8, 16], tl.float64)
    for a in range(8):
        for b in range(a, 9):
            total = _column_sum(blocks, a * (19 - a) // 2 + b - a, block, there)
            at = (rows == a) & (columns == b)
            matrix += tl.where(at | ((rows == b) & (columns == a)), total, 0.0)
    in_metres = (rows >= 3) & (rows < 6)
    matrix = tl.where(in_metres, matrix * unit, matrix)
    matrix = tl.where((columns >= 3) & (columns < 6), matrix * unit, matrix)
    matrix = tl.where(columns == 8, -matrix, matrix)
    damping = 1e-6 * tl.sum(tl.sum(tl.where(rows == columns, matrix, 0.0), axis=1), axis=0) / 8
    matrix += tl.where(rows == columns, damping + 1e-12, 0.0)
    for a in range(8):  # Gauss-Jordan: the matrix is positive definite
        pivot = tl.sum(tl.where(rows == a, matrix, 0.0), axis=0)[None, :]
        pivot = pivot / tl.sum(tl.where(columns == a, pivot, 0.0), axis=1)[:, None]
        factor = tl.sum(tl.where(columns == a, matrix, 0.0), axis=1)[:, None]
        matrix = tl.where(rows == a, pivot, matrix - factor * pivot)
    solved = tl.sum(tl.where(columns == 8, matrix, 0.0), axis=1)  # 8
    number = tl.arange(0, 8)
    solved = tl.where((number >= 3) & (number < 6), solved * unit, solved)
    bad = tl.sum((tl.abs(solved) < float('inf')).to(tl.int32), axis=0) < 8
    bad = bad | (shift > most)
    in_image = _column_sum(blocks, _SEEN, block, there)
    alike = _column_sum(blocks, _SEEN + 1, block, there)
    measured = _column_sum(blocks, _SEEN + 2, block, there)
    agreeing = _column_sum(blocks, _SEEN + 3, block, there)
    trusted = (measured > samples) & (agreeing > measured * _LEAST_AGREEING) & (
        alike > in_image * _LEAST_ALIKE)
    tl.store(record + _TRUSTED, tl.where(trusted & (bad == 0), 1.0, 0.0))
    if bad:
        tl.store(record + _FAILED, 1.0)
        tl.store(record + _ACTIVE, 0.0)
    else:
        wx, wy, wz = _pick(solved, number, 0), _pick(solved, number, 1), _pick(solved, number, 2)
        sx, sy, sz = _pick(solved, number, 3), _pick(solved, number, 4), _pick(solved, number, 5)
        square = wx * wx + wy * wy + wz * wz
        # series: a step of the search turns by little, and sin and cos of float64 are long
        sine = 1.0 - square / 6 * (1.0 - square / 20 * (1.0 - square / 42 * (1.0 - square / 72)))
        cosine = 0.5 - square / 24 * (
            1.0 - square / 30 * (1.0 - square / 56 * (1.0 - square / 90)))
        for column in tl.static_range(4):
            x, y, z, last = (
                tl.load(record + column), tl.load(record + 4 + column),
                tl.load(record + 8 + column), tl.load(record + 12 + column))
            along = wx * x + wy * y + wz * z
            nx = x + sine * (wy * z - wz * y) + cosine * (wx * along - square * x) + sx * last
            ny = y + sine * (wz * x - wx * z) + cosine * (wy * along - square * y) + sy * last
            nz = z + sine * (wx * y - wy * x) + cosine * (wz * along - square * z) + sz * last
            tl.store(record + column, nx)
            tl.store(record + 4 + column, ny)
            tl.store(record + 8 + column, nz)
        tl.store(record + _GAIN, tl.load(record + _GAIN) + _pick(solved, number, 6))
        tl.store(record + _BIAS, tl.load(record + _BIAS) + _pick(solved, number, 7))
        tl.store(record + _SCALE, tl.maximum(2 * shift, _FLOW))
        turn = tl.maximum(tl.maximum(tl.abs(wx), tl.abs(wy)), tl.abs(wz))
        moved = tl.maximum(tl.maximum(tl.abs(sx), tl.abs(sy)), tl.abs(sz)) * tl.load(near)
        if fx * tl.maximum(turn, moved) < pixel * _STILL:
            tl.store(record + _ACTIVE, 0.0)
