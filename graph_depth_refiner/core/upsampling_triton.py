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
"""From planes of the solved resolution to planes of every pixel: a Triton kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import upsampling as stage
from graph_depth_refiner.core import upsampling_torch
from graph_depth_refiner.core.flying import WIDTH
from graph_depth_refiner.core.kernels import Number
from graph_depth_refiner.core.noise import NoiseModel
from graph_depth_refiner.core.noise_triton import known_sigma
from graph_depth_refiner.core.triton_launch import BLOCK, launch, programs, scalar

_WIDTH, _KEPT = tl.constexpr(WIDTH), tl.constexpr(stage.KEPT)
_NEAR, _LEAST = tl.constexpr(stage.NEAR), tl.constexpr(stage.LEAST)
_SIDES = tl.constexpr(stage.SIDES)
_ONE_SURFACE, _STEP = tl.constexpr(stage.ONE_SURFACE), tl.constexpr(stage.STEP)
_GAP_KNOWN = tl.constexpr(stage.GAP_KNOWN)


def upsample_planes(planes: torch.Tensor, frames: torch.Tensor, d: torch.Tensor,
                    behind: torch.Tensor, noise: NoiseModel, unit: Number, scale: int
                    ) -> torch.Tensor:
    """Return planes 3 h w at every pixel of a `scale` times larger image, 3 H W."""
    sigma = known_sigma(noise, d, behind, unit)
    height, width = d.shape
    large = d.new_empty(3, height, width)
    launch(upsample_kernel, programs(height * width), planes.contiguous(), frames.contiguous(),
           d.contiguous(), sigma.contiguous(), large, height, width, *frames.shape, scale=scale,
           block=BLOCK)
    return large


def fillable(d: torch.Tensor, measured: torch.Tensor, sigma: Number, config: RefinerConfig
             ) -> torch.Tensor:
    """Return which pixels, H W, may have a value: 1 or 0; see the reference."""
    return upsampling_torch.fillable(d, measured, sigma, config, same_surface)


def same_surface(d: torch.Tensor, known: torch.Tensor, side: int, sigma: Number) -> torch.Tensor:
    """Return where, H W, all that is there in a square, or both sides of a gap, is one surface."""
    height, width = d.shape
    same = torch.empty_like(d)
    launch(surface_kernel, programs(height * width), d.contiguous(), known.contiguous(),
           scalar(sigma, d), same, height, width, side // 2, side - 1 - side // 2,
           stage.GAP_REACH, block=BLOCK)
    return same


@triton.jit(do_not_specialize=['height', 'width', 'before', 'after', 'reach'])
def surface_kernel(data, known, sigma, same, height, width, before, after, reach,
                   block: tl.constexpr):
    """Write 1 where nearest and farthest of the square differ little, or a gap may be closed."""
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < height * width
    y, x = place // width, place % width
    limit = _ONE_SURFACE * tl.load(sigma).to(tl.float32)
    nearest = tl.zeros([block], tl.float32)
    farthest = tl.full([block], float('inf'), tl.float32)
    for dy in range(-before, after + 1):
        for dx in range(-before, after + 1):
            inside = valid & (y + dy >= 0) & (y + dy < height) & (x + dx >= 0) & (x + dx < width)
            d = tl.load(data + place + dy * width + dx, mask=inside, other=0.0)
            nearest = tl.maximum(nearest, d)
            farthest = tl.minimum(farthest, tl.where(d > 0, d, float('inf')))
    count = tl.zeros([block], tl.float32)
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            inside = valid & (y + dy >= 0) & (y + dy < height) & (x + dx >= 0) & (x + dx < width)
            count += tl.load(known + place + dy * width + dx, mask=inside, other=0.0)
    beside = valid & (x > 0) & (x + 1 < width)
    above = valid & (y > 0) & (y + 1 < height)
    agree = _agree(data, known, place, 1, beside, limit) \
        | _agree(data, known, place, width, above, limit)
    one = nearest - farthest <= tl.maximum(limit, nearest * _STEP)
    tl.store(same + place, (one | (agree & (count > _GAP_KNOWN - 0.5))).to(tl.float32), mask=valid)


@triton.jit
def _agree(data, known, place, away, inside, limit):
    """Tell whether two opposite neighbours are known and on one surface."""
    one = tl.load(data + place - away, mask=inside, other=0.0) \
        * tl.load(known + place - away, mask=inside, other=0.0)
    other = tl.load(data + place + away, mask=inside, other=0.0) \
        * tl.load(known + place + away, mask=inside, other=0.0)
    step = tl.maximum(limit, tl.maximum(one, other) * _STEP)
    return (one > 0) & (other > 0) & (tl.abs(one - other) <= step)


@triton.jit
def _clamped(place, side):
    return tl.minimum(tl.maximum(place, 0), side - 1)


@triton.jit(do_not_specialize=['height', 'width', 'rows', 'columns'])
def upsample_kernel(planes, frames, data, sigma, large, height, width, rows, columns,
                    scale: tl.constexpr, block: tl.constexpr):
    """Write the plane of every pixel, 3 H W."""
    size, small = height * width, rows * columns
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    y, x = place // width, place % width
    v = (y.to(tl.float32) + 0.5) / scale - 0.5
    u = (x.to(tl.float32) + 0.5) / scale - 0.5
    row, column = tl.floor(v).to(tl.int32), tl.floor(u).to(tl.int32)
    own_row, own_column = tl.minimum(y // scale, rows - 1), tl.minimum(x // scale, columns - 1)
    d = tl.load(data + place, mask=valid, other=0.0)
    spread = tl.load(sigma + place, mask=valid, other=1.0)
    known = d > 0
    own = own_row * columns + own_column
    base = tl.load(planes + own, mask=valid, other=0.0)
    own_x = tl.load(planes + small + own, mask=valid, other=0.0)
    own_y = tl.load(planes + 2 * small + own, mask=valid, other=0.0)
    own_known, predicted = base > 0, base + own_x * (u - own_column) + own_y * (v - own_row)
    value = tl.where(known, d, tl.where(own_known, predicted, base))
    total, sum_d = tl.zeros([block], tl.float32), tl.zeros([block], tl.float32)
    sum_x, sum_y = tl.zeros([block], tl.float32), tl.zeros([block], tl.float32)
    for corner in range(4):
        r, c = row + corner // 2, column + corner % 2
        near = (1.0 - tl.abs(r - v)) * (1.0 - tl.abs(c - u)) + _NEAR
        r, c = _clamped(r, rows), _clamped(c, columns)
        at = r * columns + c
        base = tl.load(planes + at, mask=valid, other=0.0)
        ux = tl.load(planes + small + at, mask=valid, other=0.0)
        uy = tl.load(planes + 2 * small + at, mask=valid, other=0.0)
        there = base + ux * (u - c) + uy * (v - r)
        error = (there - value) / (spread * _WIDTH)
        a = tl.maximum(1.0 - error * error, 0.0)
        counts = (base > 0) & ((tl.load(frames + at, mask=valid, other=0.0) > 0) | (known == 0))
        a = tl.where(counts, near * a * a, 0.0)
        total += a
        sum_d += a * there
        sum_x += a * ux
        sum_y += a * uy
    seen = tl.zeros([block], tl.int32)  # bits: planes above, below, and close to the value
    close = spread * _WIDTH
    for down in range(-_SIDES, _SIDES + 1):
        for right in range(-_SIDES, _SIDES + 1):
            r, c = own_row + down, own_column + right
            inside = valid & (r >= 0) & (r < rows) & (c >= 0) & (c < columns)
            at = r * columns + c
            inside = inside & (tl.load(frames + at, mask=inside, other=0.0) > 0)
            there = tl.load(planes + at, mask=inside, other=0.0) \
                + tl.load(planes + small + at, mask=inside, other=0.0) * (u - c) \
                + tl.load(planes + 2 * small + at, mask=inside, other=0.0) * (v - r)
            off = there - value
            where = tl.where(off > close, 1, tl.where(off < -close, 2, 4))
            seen = seen | tl.where(inside, where, 0)
    flying = known & own_known & (seen == 3)
    side = tl.where(flying, predicted, value)
    blended = total > _LEAST
    share = 1.0 / tl.where(blended, total, 1.0)
    fit = sum_d * share
    residual = value - fit
    noise = spread * _KEPT
    beyond = known & (tl.abs(residual) > noise)
    kept = residual * (1.0 - noise * noise / tl.where(beyond, residual * residual, 1.0))
    fit = tl.where(beyond, fit + kept, fit)
    tl.store(large + place, tl.where(blended, fit, side), mask=valid)
    tl.store(large + size + place, tl.where(blended, sum_x * share, own_x) / scale, mask=valid)
    tl.store(large + 2 * size + place, tl.where(blended, sum_y * share, own_y) / scale,
             mask=valid)
