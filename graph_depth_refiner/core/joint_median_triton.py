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
"""The joint weighted median of planes of similar pixels, as a Triton kernel: one launch."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from graph_depth_refiner.core.inpainting import HALF
from graph_depth_refiner.core.joint_median import PLANE_SIDE
from graph_depth_refiner.core.triton_launch import launch, programs

_HALF = tl.constexpr(HALF)
_BLOCK = 256  # pixels of one program, interpreted too: with more, registers spill


def joint_plane_median(planes: torch.Tensor, weight: torch.Tensor, color: torch.Tensor,
                       stride: int, sigma: float) -> torch.Tensor:
    """Return planes, 3 H W, with those of a weight, H W, below 1 replaced by the joint median."""
    height, width = weight.shape
    found = torch.empty_like(planes)
    launch(plane_kernel, programs(height * width, _BLOCK), planes.contiguous(),
           weight.contiguous(), color.contiguous(), found, -0.5 / (len(color) * sigma ** 2),
           stride, height, width, side=PLANE_SIDE, block=_BLOCK)
    return found


@triton.jit
def _neighbour(place, valid, number, stride, height, width, side: tl.constexpr):
    """Return the place of a pixel of the support, its steps along x and y, and whether it is."""
    dy, dx = (number // side - side // 2) * stride, (number % side - side // 2) * stride
    y, x = place // width + dy, place % width + dx
    return place + dy * width + dx, dx, dy, valid & (y >= 0) & (y < height) & (x >= 0) & (
        x < width)


@triton.jit
def _alike(color, r, g, b, other, inside, size, fade):
    """Return how similar the colour of another pixel is, 0 outside of the image."""
    p = tl.load(color + other, mask=inside, other=0.0) - r
    q = tl.load(color + size + other, mask=inside, other=0.0) - g
    s = tl.load(color + 2 * size + other, mask=inside, other=0.0) - b
    return tl.where(inside, tl.exp((p * p + q * q + s * s) * fade), 0.0)


@triton.jit
def _predicted(planes, other, inside, size, dx, dy):
    """Return what the plane of another pixel predicts here, and its slopes."""
    ux = tl.load(planes + size + other, mask=inside, other=0.0)
    uy = tl.load(planes + 2 * size + other, mask=inside, other=0.0)
    return tl.load(planes + other, mask=inside, other=0.0) - (ux * dx + uy * dy), ux, uy


@triton.jit(do_not_specialize=['stride', 'height', 'width'])
def plane_kernel(planes, weights, color, found, fade, stride, height, width,
                 side: tl.constexpr, block: tl.constexpr):
    """Write the planes, 3 H W, with the median plane where the weight is below 1."""
    size = height * width
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    wanted = valid & (tl.load(weights + place, mask=valid, other=1.0) < 1.0)
    best, best_x, best_y = _predicted(planes, place, valid, size, 0, 0)
    if tl.max(wanted.to(tl.int32), axis=0) > 0:
        r = tl.load(color + place, mask=valid, other=0.0)
        g = tl.load(color + size + place, mask=valid, other=0.0)
        b = tl.load(color + 2 * size + place, mask=valid, other=0.0)
        total = tl.zeros_like(best)
        for number in range(side * side):
            other, _, _, inside = _neighbour(
                place, wanted, number, stride, height, width, side)
            total += _alike(color, r, g, b, other, inside, size, fade) * tl.load(
                weights + other, mask=inside, other=0.0)
        best = tl.where(wanted, float('inf'), best)
        for number in range(side * side):
            other, dx, dy, inside = _neighbour(
                place, wanted, number, stride, height, width, side)
            value, ux, uy = _predicted(planes, other, inside, size, dx, dy)
            reached = tl.zeros_like(total)
            for one in range(side * side):
                near, ex, ey, there = _neighbour(
                    place, wanted, one, stride, height, width, side)
                its, _, _ = _predicted(planes, near, there, size, ex, ey)
                # of equal values the first ones come first
                before = there & ((its < value) | ((its == value) & (one <= number)))
                weight = _alike(color, r, g, b, near, there, size, fade) * tl.load(
                    weights + near, mask=there, other=0.0)
                reached += tl.where(before, weight, 0.0)
            better = inside & (reached >= total * _HALF) & (value < best)
            best = tl.where(better, value, best)
            best_x, best_y = tl.where(better, ux, best_x), tl.where(better, uy, best_y)
    tl.store(found + place, best, mask=valid)
    tl.store(found + size + place, best_x, mask=valid)
    tl.store(found + 2 * size + place, best_y, mask=valid)
