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
from graph_depth_refiner.core.triton_launch import BLOCK, launch, programs

_NOTHING = tl.constexpr(1e-12)
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
