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
Planes of holes by geodesic distance in the image, as Triton kernels: three launches.

The sweep is one program that goes from row to row; along a row, where one pixel depends on the
one before it, the cheapest paths are found by a scan (see `geodesic_fill_torch.along_row`).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from graph_depth_refiner.core import geodesic_fill as stage
from graph_depth_refiner.core import geodesic_fill_torch
from graph_depth_refiner.core.triton_launch import BLOCK, launch, programs, scalar

WIDEST = 2048  # pixels of a row that one program can hold in its registers
_FIT_LIMIT, _APART = tl.constexpr(stage.FIT_LIMIT), tl.constexpr(stage.APART)
_SLOPE_SHARE, _SWEEPS = tl.constexpr(stage.SLOPE_SHARE), tl.constexpr(2 * stage.ROUNDS)
_UNREACHED = tl.constexpr(stage.UNREACHED)
_BARRIER = tl.constexpr(geodesic_fill_torch.BARRIER)
_LEFT, _DIAGONAL, _ABOVE, _ = map(tl.constexpr, stage.STEP_COSTS)


def geodesic_fill(d: torch.Tensor, m: torch.Tensor, color: torch.Tensor, sigma,
                  planes: torch.Tensor) -> None:
    """Give pixels of holes the plane of the measured pixel nearest in the image, in place."""
    height, width = d.shape
    if width > WIDEST:
        geodesic_fill_torch.geodesic_fill(d, m, color, sigma, planes)
        return
    cost, sources = (torch.empty(d.shape, dtype=torch.int32, device=d.device) for _ in range(2))
    room = triton.next_power_of_2(width)
    row = torch.empty(room, dtype=torch.int32, device=d.device)
    grid, sigma = programs(height * width), scalar(sigma, d)
    before = planes.clone()
    launch(begin_kernel, grid, d.contiguous(), m.contiguous(), before, sigma, cost, sources,
           height, width, block=BLOCK)
    launch(sweep_kernel, 1, m.contiguous(), color.contiguous(), cost, sources, row, height, width,
           channels=len(color), room=room, num_warps=min(16, max(1, room // 64)))
    launch(extend_kernel, grid, m.contiguous(), before, sources, sigma, planes, height, width,
           block=BLOCK)


@triton.jit(do_not_specialize=['height', 'width'])
def begin_kernel(data, m, planes, sigma, cost, sources, height, width, block: tl.constexpr):
    """Let paths begin where a plane is close to its measurement."""
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < height * width
    off = tl.load(data + place, mask=valid, other=0.0) - tl.load(
        planes + place, mask=valid, other=0.0)
    fits = (tl.load(m + place, mask=valid, other=0.0) > 0) & (
        tl.abs(off) < tl.load(sigma).to(tl.float32) * _FIT_LIMIT)
    tl.store(cost + place, tl.where(fits, 0, _UNREACHED), mask=valid)
    tl.store(sources + place, place, mask=valid)


@triton.jit
def _change(color, one, other, inside, size, channels: tl.constexpr):
    """Return the squared change of colour between two pixels."""
    change = tl.zeros_like(one)
    for channel in tl.static_range(channels):
        step = tl.load(color + channel * size + one, mask=inside, other=0).to(tl.int32) - tl.load(
            color + channel * size + other, mask=inside, other=0).to(tl.int32)
        change += step * step
    return change


@triton.jit
def _smaller(one, other):
    return tl.minimum(one, other)


@triton.jit(do_not_specialize=['height', 'width'])
def sweep_kernel(m, color, cost, sources, row, height, width, channels: tl.constexpr,
                 room: tl.constexpr):
    """Find the cheapest path to each pixel of a hole, and where it begins."""
    size = height * width
    lane = tl.arange(0, room)
    valid = lane < width
    for sweep in range(_SWEEPS):
        back = sweep % 2
        for step in range(height):
            y = tl.where(back == 1, height - 1 - step, step)
            at = y * width + tl.where(back == 1, width - 1 - lane, lane)
            hole = valid & (tl.load(m + at, mask=valid, other=1.0) <= 0)
            if tl.max(hole.to(tl.int32), axis=0) > 0:
                side = tl.where(back == 1, -1, 1)
                own = tl.load(cost + at, mask=valid, other=_UNREACHED)
                best, begin = own, tl.load(sources + at, mask=valid, other=0)
                for dx in tl.static_range(-1, 2):
                    inside = hole & (step > 0) & (lane + dx >= 0) & (lane + dx < width)
                    other = at + side * (dx - width)
                    price = _ABOVE if dx == 0 else _DIAGONAL
                    total = tl.load(cost + other, mask=inside, other=_UNREACHED) + price
                    total += _change(color, at, other, inside, size, channels)
                    better = inside & (total < best)
                    best = tl.where(better, total, best)
                    begin = tl.where(
                        better, tl.load(sources + other, mask=inside, other=0), begin)
                inside = hole & (lane > 0)
                along = _LEFT + _change(color, at, at - side, inside, size, channels)
                along = tl.where(hole, tl.where(lane > 0, along, 0).to(tl.int64), _BARRIER)
                sums = tl.cumsum(along, axis=0)
                tag = tl.where(best < own, width + lane, width - 1 - lane).to(tl.int64)
                number = (best.to(tl.int64) - sums) * (2 * width) + tag
                number = tl.where(valid, number, 0x7FFFFFFFFFFFFFFF)
                least = tl.associative_scan(number, 0, _smaller)
                tag = least % (2 * width)
                tag = tl.where(tag < 0, tag + 2 * width, tag)
                first = tl.where(tag < width, width - 1 - tag, tag - width)
                reached = (least - tag) // (2 * width) + sums
                tl.store(row + lane, begin)
                tl.debug_barrier()
                begin = tl.load(row + first, mask=hole, other=0)
                tl.store(cost + at, reached.to(tl.int32), mask=hole)
                tl.store(sources + at, begin, mask=hole)
                tl.debug_barrier()


@triton.jit(do_not_specialize=['height', 'width'])
def extend_kernel(m, before, sources, sigma, planes, height, width, block: tl.constexpr):
    """Give pixels of holes the plane at the source of their path, if it is another surface."""
    size = height * width
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    hole = valid & (tl.load(m + place, mask=valid, other=1.0) <= 0)
    source = tl.load(sources + place, mask=hole, other=0)
    ux = tl.load(before + size + source, mask=hole, other=0.0)
    uy = tl.load(before + 2 * size + source, mask=hole, other=0.0)
    change = ux * (place % width - source % width) + uy * (place // width - source // width)
    value = tl.load(before + source, mask=hole, other=0.0) + change * _SLOPE_SHARE
    off = tl.abs(value - tl.load(before + place, mask=hole, other=0.0))
    other = hole & (value > 0) & (off > tl.load(sigma).to(tl.float32) * _APART)
    tl.store(planes + place, value, mask=other)
    tl.store(planes + size + place, ux, mask=other)
    tl.store(planes + 2 * size + place, uy, mask=other)
