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
"""Edge-avoiding a-trous smoothing of planes, as a Triton kernel: one launch a pass."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from graph_depth_refiner.core import atrous as stage
from graph_depth_refiner.core.local_planes_triton import solve_plane
from graph_depth_refiner.core.statistics_triton import quartile_of_positive
from graph_depth_refiner.core.triton_launch import BLOCK, launch, programs

_NOTHING, _HALF_ROOT = tl.constexpr(1e-12), tl.constexpr(0.5 ** 0.5)
_APART, _ASIDE = tl.constexpr(stage.APART), tl.constexpr(stage.APART * stage.ASIDE)
_RADIUS, _RIDGE = tl.constexpr(stage.RADIUS), tl.constexpr(stage.RIDGE)
_FADE = tl.constexpr(-0.5 / stage.FADE ** 2)
_SLOPE_0, _SLOPE_1 = map(tl.constexpr, stage.SLOPE_SHARE)
_VALUE_0, _VALUE_1 = map(tl.constexpr, stage.VALUE_SHARE)


def atrous_pass(planes: torch.Tensor, weight: torch.Tensor, width: torch.Tensor, spacing: int
                ) -> torch.Tensor:
    """Return planes, 3 H W, after one pass with samples so many pixels apart."""
    height, columns = weight.shape
    planes = planes.contiguous()
    smoothed = torch.empty_like(planes)
    launch(atrous_kernel, programs(height * columns), planes, weight.contiguous(),
           width.contiguous(), smoothed, spacing, height, columns, block=BLOCK)
    return smoothed


def plane_mismatch(planes: torch.Tensor, weight: torch.Tensor, sigma: torch.Tensor, spacing: int
                   ) -> torch.Tensor:
    """Return how the mismatch of planes, 3 H W, changes over the image; as the reference."""
    height, width = weight.shape
    rows, columns = -(-height // stage.APART), -(-width // stage.APART)
    found = planes.new_empty(4 * rows * columns)
    launch(mismatch_kernel, programs(len(found)), planes.contiguous(), weight.contiguous(),
           sigma.contiguous(), found, spacing, height, width, columns, len(found), block=BLOCK)
    return quartile_of_positive(found)


@triton.jit
def _mismatch(planes, weight, y, x, dy, dx, inside, height, width):
    """Return how wrongly two planes predict each other, and whether there are both."""
    size, place = height * width, y * width + x
    other = place + dy * width + dx
    both = inside & (y + dy < height) & (x + dx < width)
    both = both & (tl.load(weight + place, mask=both, other=0.0) > 0) \
        & (tl.load(weight + other, mask=both, other=0.0) > 0)
    off = tl.load(planes + other, mask=both, other=0.0) \
        - tl.load(planes + place, mask=both, other=0.0)
    ux = tl.load(planes + size + place, mask=both, other=0.0)
    uy = tl.load(planes + 2 * size + place, mask=both, other=0.0)
    vx = tl.load(planes + size + other, mask=both, other=0.0)
    vy = tl.load(planes + 2 * size + other, mask=both, other=0.0)
    return off - ux * dx - uy * dy, off - vx * dx - vy * dy, both


@triton.jit(do_not_specialize=['spacing', 'height', 'width', 'columns', 'count'])
def mismatch_kernel(planes, weight, sigma, found, spacing, height, width, columns, count,
                    block: tl.constexpr):
    """Write how samples of mismatches differ from those aside; 0 only where there are none."""
    sample = tl.program_id(0) * block + tl.arange(0, block)
    valid = sample < count
    way, some = sample % 4, sample // 4
    y, x = (some // columns) * _APART, (some % columns) * _APART
    far, down = spacing * (1 + way // 2), way % 2 == 1
    dy, dx = tl.where(down, far, 0), tl.where(down, 0, far)
    e, f, both = _mismatch(planes, weight, y, x, dy, dx, valid, height, width)
    g, h, aside = _mismatch(planes, weight, y + _ASIDE, x + _ASIDE, dy, dx, valid, height, width)
    deviation = tl.load(sigma + y * width + x, mask=valid, other=1.0)
    change = _HALF_ROOT * tl.maximum(tl.abs(e - g), tl.abs(f - h)) / tl.maximum(
        deviation, _NOTHING)
    tl.store(found + sample, tl.where(both & aside, tl.maximum(change, _NOTHING), 0.0), mask=valid)


@triton.jit
def _rising(share, first, last):
    """Return 0 below the first limit, 1 beyond the second, linear between."""
    return tl.minimum(tl.maximum((share - first) / (last - first), 0.0), 1.0)


@triton.jit(do_not_specialize=['spacing', 'height', 'width'])
def atrous_kernel(planes, weight, widths, smoothed, spacing, height, width, block: tl.constexpr):
    """Write the plane of every pixel after the pass, 3 H W."""
    size = height * width
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    y, x = place // width, place % width
    d = tl.load(planes + place, mask=valid, other=0.0)
    ux = tl.load(planes + size + place, mask=valid, other=0.0)
    uy = tl.load(planes + 2 * size + place, mask=valid, other=0.0)
    inverse = 1.0 / tl.maximum(tl.load(widths + place, mask=valid, other=1.0), _NOTHING)
    n, full, sx, sy = tl.zeros_like(d), tl.zeros_like(d), tl.zeros_like(d), tl.zeros_like(d)
    sd, sxx, sxy, syy = tl.zeros_like(d), tl.zeros_like(d), tl.zeros_like(d), tl.zeros_like(d)
    sxd, syd = tl.zeros_like(d), tl.zeros_like(d)
    for v in range(-_RADIUS, _RADIUS + 1):
        for u in range(-_RADIUS, _RADIUS + 1):
            dy, dx = v * spacing, u * spacing
            inside = valid & (y + dy >= 0) & (y + dy < height) & (x + dx >= 0) & (x + dx < width)
            other = place + dy * width + dx
            w = tl.load(weight + other, mask=inside, other=0.0)
            w = w * tl.exp((1.0 * (v * v + u * u)) * _FADE)
            off = tl.load(planes + other, mask=inside, other=0.0) - d
            vx = tl.load(planes + size + other, mask=inside, other=0.0)
            vy = tl.load(planes + 2 * size + other, mask=inside, other=0.0)
            e = tl.maximum(tl.abs(off - ux * dx - uy * dy), tl.abs(off - vx * dx - vy * dy))
            e = e * inverse
            a = tl.maximum(1.0 - e * e, 0.0)
            a = a * a * w
            n += a
            full += w
            sx += a * dx
            sy += a * dy
            sd += a * off
            sxx += a * (dx * dx)
            sxy += a * (dx * dy)
            syy += a * (dy * dy)
            sxd += a * off * dx
            syd += a * off * dy
    ridge = (1.0 * spacing * spacing) * _RIDGE
    change, px, py = solve_plane(0.0, n, sx, sy, sd, sxx, sxy, syy, sxd, syd, ridge, ux, uy)
    counts = tl.load(weight + place, mask=valid, other=0.0) > 0
    counts = tl.where(counts, n / (full + _NOTHING), 0.0)
    value, slope = _rising(counts, _VALUE_0, _VALUE_1), _rising(counts, _SLOPE_0, _SLOPE_1)
    tl.store(smoothed + place, d + value * change, mask=valid)
    tl.store(smoothed + size + place, ux + slope * (px - ux), mask=valid)
    tl.store(smoothed + 2 * size + place, uy + slope * (py - uy), mask=valid)
