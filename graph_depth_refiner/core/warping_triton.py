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
Forward warping of planes with a z-buffer, as Triton kernels: two launches.

The z-buffer holds 64 bits a pixel: those of the inverse depth, which order as the numbers do as
long as these are positive, and then the number of the plane, so that of equally near ones the
first stays, whatever the order in which they land.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from graph_depth_refiner.core.triton_launch import BLOCK, launch, programs
from graph_depth_refiner.core.warping import CRACK_SHARE, CRACK_STEP, EDGE_ON
from graph_depth_refiner.frame import Intrinsics

_EDGE_ON, _CRACK_SHARE = tl.constexpr(EDGE_ON), tl.constexpr(CRACK_SHARE)
_CRACK_STEP = tl.constexpr(CRACK_STEP)
_LOW = tl.constexpr(0x7FFFFFFF)
_ROUNDER = tl.constexpr(12582912.0)  # 1.5 * 2^23: adding it rounds a float32 to the even


def warp(d: torch.Tensor, n: torch.Tensor, color: torch.Tensor, slopes: torch.Tensor,
         motion: torch.Tensor, intrinsics: Intrinsics
         ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """
    Return inverse depth H W, frame count H W and colour C H W as seen after P' = R P + t.

    The slopes, 2 h w, are those of the planes at the same or a lower resolution.
    """
    (height, width), (rows, columns) = n.shape, slopes.shape[1:]
    k = intrinsics
    d, n, color, slopes, motion = (one.contiguous() for one in (d, n, color, slopes, motion))
    nearest = torch.zeros(height * width, dtype=torch.int64, device=d.device)
    grid = programs(height * width)
    launch(land_kernel, grid, d, n, slopes, motion, nearest, k.fx, k.fy, k.cx, k.cy, height,
           width, rows, columns, scale=height // rows, block=BLOCK)
    warped, frames, colors = torch.empty_like(d), torch.empty_like(n), torch.empty_like(color)
    launch(gather_kernel, grid, n, color, nearest, warped, frames, colors, height, width,
           channels=len(color), block=BLOCK)
    return warped, frames, colors


@triton.jit
def _entry(motion, place: tl.constexpr):
    return tl.load(motion + place).to(tl.float32)


@triton.jit
def _rounded(value):
    """Return the nearest whole number, the even of two; beyond the image any."""
    return (tl.minimum(tl.maximum(value, -4e6), 4e6) + _ROUNDER) - _ROUNDER


@triton.jit
def _project(inverse_depth, n, slopes, motion, source, known, width, height, rows, columns,
             scale: tl.constexpr, fx, fy, cx, cy):
    """Return where a plane lands (column, row, whether at all), and its inverse depth there."""
    d = tl.load(inverse_depth + source, mask=known, other=0.0)
    behind = tl.load(n + source, mask=known, other=0.0)
    y, x = source // width, source % width
    cell = tl.minimum(y // scale, rows - 1) * columns + tl.minimum(x // scale, columns - 1)
    ux = tl.load(slopes + cell, mask=known, other=0.0) / scale
    uy = tl.load(slopes + rows * columns + cell, mask=known, other=0.0) / scale
    across, down = x.to(tl.float32) - cx, y.to(tl.float32) - cy
    r00, r01, r02 = _entry(motion, 0), _entry(motion, 1), _entry(motion, 2)
    r10, r11, r12 = _entry(motion, 4), _entry(motion, 5), _entry(motion, 6)
    r20, r21, r22 = _entry(motion, 8), _entry(motion, 9), _entry(motion, 10)
    t0, t1, t2 = _entry(motion, 3), _entry(motion, 7), _entry(motion, 11)
    rx, ry = across / fx, down / fy
    px = r00 * rx + r01 * ry + r02 + d * t0
    py = r10 * rx + r11 * ry + r12 + d * t1
    pz = r20 * rx + r21 * ry + r22 + d * t2
    column = _rounded(fx * px / pz + cx)
    row = _rounded(fy * py / pz + cy)
    a, b, c = fx * ux, fy * uy, d - ux * across - uy * down
    qx = r00 * a + r01 * b + r02 * c
    qy = r10 * a + r11 * b + r12 * c
    qz = r20 * a + r21 * b + r22 * c
    ahead = 1.0 + qx * t0 + qy * t1 + qz * t2
    value = (qx * (column - cx) / fx + qy * (row - cy) / fy + qz) / ahead
    straight = d / pz
    lands = known & (d > 0) & (behind > 0) & (pz > 0) & (ahead > 0) & (column >= 0) & (
        column < width) & (row >= 0) & (row < height) & (value >= straight * _EDGE_ON) & (
        value * _EDGE_ON <= straight)
    return column, row, lands, value


@triton.jit(do_not_specialize=['height', 'width', 'rows', 'columns'])
def land_kernel(inverse_depth, n, slopes, motion, nearest, fx, fy, cx, cy, height, width, rows,
                columns, scale: tl.constexpr, block: tl.constexpr):
    """Let every plane land; of those on a pixel the nearest stays, and of these the first."""
    place = tl.program_id(0) * block + tl.arange(0, block)
    column, row, lands, value = _project(
        inverse_depth, n, slopes, motion, place, place < height * width, width, height, rows,
        columns, scale, fx, fy, cx, cy)
    lands = lands & (value > 0)
    target = tl.where(lands, row, 0.0).to(tl.int32) * width + tl.where(
        lands, column, 0.0).to(tl.int32)
    bits = tl.where(lands, value, 0.0).to(tl.int32, bitcast=True).to(tl.int64)
    tl.atomic_max(nearest + target, (bits << 32) | (-place + _LOW).to(tl.int64), mask=lands)


@triton.jit
def _hit(nearest, place, inside):
    """Return the inverse depth of what landed on a pixel, 0 if nothing did, and its number."""
    both = tl.load(nearest + place, mask=inside, other=0)
    value = (both >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    return value, tl.where(both > 0, -(both & 0xFFFFFFFF).to(tl.int32) + _LOW, -1)


@triton.jit(do_not_specialize=['height', 'width'])
def gather_kernel(n, color, nearest, warped, frames, colors, height, width,
                  channels: tl.constexpr, block: tl.constexpr):
    """Write what is seen at every pixel; a crack takes the nearest plane of its neighbours."""
    size = height * width
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    y, x = place // width, place % width
    value, hit = _hit(nearest, place, valid)
    down_value, down = _hit(nearest, place + width, valid & (y + 1 < height))
    up_value, up = _hit(nearest, place - width, valid & (y > 0))
    right_value, right = _hit(nearest, place + 1, valid & (x + 1 < width))
    left_value, left = _hit(nearest, place - 1, valid & (x > 0))
    crack = (hit < 0) & (((left >= 0) & (right >= 0)) | ((up >= 0) & (down >= 0)))
    best, opposite, source = down_value, up_value, down
    better = up_value > best
    best, source = tl.where(better, up_value, best), tl.where(better, up, source)
    opposite = tl.where(better, down_value, opposite)
    better = right_value > best
    best, source = tl.where(better, right_value, best), tl.where(better, right, source)
    opposite = tl.where(better, left_value, opposite)
    better = left_value > best
    best, source = tl.where(better, left_value, best), tl.where(better, left, source)
    opposite = tl.where(better, right_value, opposite)
    mean = tl.where(best - opposite <= best * _CRACK_STEP, 0.5 * (best + opposite), best)
    source, value = tl.where(crack, source, hit), tl.where(crack, mean, value)
    found = valid & (source >= 0)
    at = tl.where(found, source, 0)
    tl.store(warped + place, tl.where(found, value, 0.0), mask=valid)
    behind = tl.load(n + at, mask=found, other=0.0) * tl.where(hit >= 0, 1.0, _CRACK_SHARE)
    tl.store(frames + place, behind, mask=valid)
    for channel in tl.static_range(channels):
        seen = tl.load(color + channel * size + at, mask=found, other=0)
        tl.store(colors + channel * size + place, seen, mask=valid)
