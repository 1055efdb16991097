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
"""Fusion of a frame with the warped history as Triton kernels: three launches."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from graph_depth_refiner.core import temporal as stage
from graph_depth_refiner.core.noise import NoiseModel
from graph_depth_refiner.core.statistics_triton import median_ratio
from graph_depth_refiner.core.triton_launch import BLOCK, launch, programs, scalar

_SIDE = tl.constexpr(stage.BLOCK)
_BIAS_GATE, _GATE, _CLIP = (
    tl.constexpr(one) for one in (stage.BIAS_GATE, stage.GATE, stage.CLIP))
_STEEPEST, _LEAST_WEIGHT = tl.constexpr(stage.STEEPEST), tl.constexpr(stage.LEAST_WEIGHT)
_OUTLIER, _LEAST = tl.constexpr(stage.OUTLIER_SHARE), tl.constexpr(stage.LEAST_FRAMES)
_EXPECTED, _MISPLACED = tl.constexpr(stage.EXPECTED), tl.constexpr(stage.MISPLACED)
_UNSEEN, _UNSEEN_FLOW = tl.constexpr(stage.UNSEEN_SHARE), tl.constexpr(stage.UNSEEN_FLOW)
_REACH, _IMAGE_REACH = tl.constexpr(stage.REACH), tl.constexpr(stage.IMAGE_REACH)
_MEAN_0, _MEAN_1 = map(tl.constexpr, stage.MEAN)
_MISFIT_0, _MISFIT_1 = map(tl.constexpr, stage.MISFIT)
_IMAGE_0, _IMAGE_1 = map(tl.constexpr, stage.IMAGE)


def bias_sums(d: torch.Tensor, m: torch.Tensor, past: torch.Tensor, frames: torch.Tensor,
              noise: NoiseModel) -> torch.Tensor:
    """Return sums of relative residuals that may be bias, and their count, by blocks."""
    height, width = d.shape
    rows, columns = -(-height // stage.BLOCK), -(-width // stage.BLOCK)
    sums = d.new_empty(2, rows, columns)
    launch(bias_kernel, (rows, columns), d, m, past.contiguous(), frames.contiguous(), sums,
           scalar(noise.floor, d), scalar(noise.share, d), height, width, columns)
    return sums


def exposure_gain(grey: torch.Tensor, seen: torch.Tensor, frames: torch.Tensor) -> torch.Tensor:
    """Return how many times brighter an image, H W uint8, is than before; 1 if black."""
    return median_ratio(grey, seen, stage.DARK, frames, 1.0)


def fuse(d: torch.Tensor, m: torch.Tensor, grey: torch.Tensor, past: torch.Tensor,
         frames: torch.Tensor, seen: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor,
         noise: NoiseModel, flow: torch.Tensor | float, limit: float, means
         ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the running mean, its frames, the history without bias, H W each, and counts."""
    height, width = d.shape
    maps = d.new_empty(4, height, width)
    value, weight, fused, left = (torch.empty_like(d) for _ in range(4))
    counts = torch.zeros(2, dtype=torch.int32, device=d.device)
    grid, flow = programs(height * width), scalar(flow, d)
    launch(residuals_kernel, grid, d, m, grey.contiguous(), past.contiguous(),
           frames.contiguous(), seen.contiguous(), gain, bias, scalar(noise.floor, d),
           scalar(noise.share, d), value, weight, maps, flow, float(limit),
           height, width, *bias.shape, block=BLOCK)
    launch(fuse_kernel, grid, d, m, value, weight, maps, scalar(means, d), fused, left, counts,
           flow, float(limit), height, width, block=BLOCK)
    return fused, left, value, counts


@triton.jit(do_not_specialize=['height', 'width', 'columns'])
def bias_kernel(data, weight, past, frames, sums, floor, share, height, width, columns):
    """Write the sum of one block, and its count."""
    pixel = tl.arange(0, _SIDE * _SIDE)
    y = tl.program_id(0) * _SIDE + pixel // _SIDE
    x = tl.program_id(1) * _SIDE + pixel % _SIDE
    inside = (y < height) & (x < width)
    place = y * width + x
    d = tl.load(data + place, mask=inside, other=0.0)
    n = tl.load(frames + place, mask=inside, other=0.0)
    both = inside & (tl.load(weight + place, mask=inside, other=0.0) > 0) & (n > 0)
    value = tl.load(past + place, mask=both, other=1.0)
    residual = d - value
    sigma = tl.load(floor).to(tl.float32) + tl.load(share).to(tl.float32) * d
    sigma = sigma * tl.sqrt(1.0 + 1.0 / tl.maximum(n, 1.0))
    bias = both & (tl.abs(residual) < sigma * _BIAS_GATE)
    at = sums + tl.program_id(0) * columns + tl.program_id(1)
    tl.store(at, tl.sum(tl.where(bias, residual / value, 0.0), axis=0))
    tl.store(at + tl.num_programs(0) * columns, tl.sum(tl.where(bias, 1.0, 0.0), axis=0))


@triton.jit
def _between(place, count):
    """Return the block before a pixel, that after it, and how far it is from the first."""
    at = (place.to(tl.float32) + 0.5) / _SIDE - 0.5
    at = tl.minimum(tl.maximum(at, 0.0), (count - 1).to(tl.float32))
    first = tl.minimum(at.to(tl.int32), tl.maximum(count - 2, 0))
    return first, tl.minimum(first + 1, count - 1), at - first.to(tl.float32)


@triton.jit
def _bend(past, frames, place, away, inside, here):
    """Return how much the step changes between two neighbours, both with a history."""
    known = inside & (tl.load(frames + place - away, mask=inside, other=0.0) > 0)
    known = known & (tl.load(frames + place + away, mask=inside, other=0.0) > 0)
    both = tl.load(past + place - away, mask=known, other=0.0) \
        + tl.load(past + place + away, mask=known, other=0.0)
    return tl.where(known, tl.abs(both - 2 * here), 0.0)


@triton.jit(do_not_specialize=['height', 'width', 'rows', 'columns'])
def residuals_kernel(data, m, grey, past, frames, seen, gain, bias, floor, share, value, weight,
                     maps, flow, limit, height, width, rows, columns, block: tl.constexpr):
    """Free the history of bias, weigh it, and give residuals in standard deviations."""
    size = height * width
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    y, x = place // width, place % width
    n = tl.load(frames + place, mask=valid, other=0.0)
    base = tl.load(past + place, mask=valid, other=0.0)
    there = (n > 0) & (base > 0)
    top, low, v = _between(y, rows)
    left, right, u = _between(x, columns)
    above = (1 - u) * tl.load(bias + top * columns + left, mask=valid, other=0.0) \
        + u * tl.load(bias + top * columns + right, mask=valid, other=0.0)
    below = (1 - u) * tl.load(bias + low * columns + left, mask=valid, other=0.0) \
        + u * tl.load(bias + low * columns + right, mask=valid, other=0.0)
    old = tl.where(there, base * (1.0 + (1 - v) * above + v * below), 0.0)
    sigma = tl.load(floor).to(tl.float32) + tl.load(share).to(tl.float32) * old
    sigma = tl.where(there, sigma, 1.0)
    n = tl.where(there, tl.minimum(n, limit), 0.0)
    rough = tl.maximum(
        _bend(past, frames, place, 1, valid & (x > 0) & (x + 1 < width), base),
        _bend(past, frames, place, width, valid & (y > 0) & (y + 1 < height), base))
    misplaced = tl.load(flow).to(tl.float32) * _MISPLACED
    error = misplaced * tl.minimum(rough, old * _STEEPEST) / sigma
    n = n / (1.0 + n * error * error)
    spread = sigma * tl.sqrt(1.0 + 1.0 / tl.maximum(n, _LEAST_WEIGHT))
    both = (tl.load(m + place, mask=valid, other=0.0) > 0) & (n > 0)
    r = (tl.load(data + place, mask=valid, other=0.0) - old) / spread
    r = tl.where(both, tl.minimum(tl.maximum(r, -_CLIP), _CLIP), 0.0)
    change = tl.abs(tl.load(grey + place, mask=valid, other=0).to(tl.float32)
                    - tl.load(gain).to(tl.float32)
                    * tl.load(seen + place, mask=valid, other=0).to(tl.float32)) / 255
    tl.store(value + place, old, mask=valid)
    tl.store(weight + place, n, mask=valid)
    tl.store(maps + place, tl.where(both, 1.0, 0.0), mask=valid)
    tl.store(maps + size + place, r, mask=valid)
    tl.store(maps + 2 * size + place, tl.abs(r), mask=valid)
    tl.store(maps + 3 * size + place, tl.where(n > 0, change, 0.0), mask=valid)


@triton.jit
def _mirrored(place, side):
    """Return a place inside the image; it is mirrored at its edges."""
    place = place + 2 * side * _REACH  # so that it is positive, for the remainder
    place = place % (2 * side)
    return tl.minimum(place, 2 * side - 1 - place)


@triton.jit
def _falling(value, first, last):
    """Return 1 below the first limit, 0 beyond the second, linear between."""
    return tl.minimum(tl.maximum((value - last) / (first - last), 0.0), 1.0)


@triton.jit(do_not_specialize=['height', 'width'])
def fuse_kernel(data, m, value, weight, maps, means, fused, left, counts, flow, limit,
                height, width, block: tl.constexpr):
    """Decide from the means around every pixel."""
    size = height * width
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    y, x = place // width, place % width
    share, mean = tl.zeros([block], tl.float32), tl.zeros([block], tl.float32)
    misfit, image = tl.zeros([block], tl.float32), tl.zeros([block], tl.float32)
    for dy in range(-_REACH, _REACH + 1):
        for dx in range(-_REACH, _REACH + 1):
            other = _mirrored(y + dy, height) * width + _mirrored(x + dx, width)
            share += tl.load(maps + other, mask=valid, other=0.0)
            mean += tl.load(maps + size + other, mask=valid, other=0.0)
            misfit += tl.load(maps + 2 * size + other, mask=valid, other=0.0)
            if (dy >= -_IMAGE_REACH) & (dy <= _IMAGE_REACH) & (dx >= -_IMAGE_REACH) & (
                    dx <= _IMAGE_REACH):
                image += tl.load(maps + 3 * size + other, mask=valid, other=0.0)
    around: tl.constexpr = (2 * _REACH + 1) * (2 * _REACH + 1)
    share = tl.maximum(share / around, 1e-6) * around
    inverse = 1.0 / tl.load(means).to(tl.float32)
    gate = _falling(tl.abs(mean) / share * inverse, _MEAN_0, _MEAN_1) \
        * _falling((misfit / share - _EXPECTED) * inverse, _MISFIT_0, _MISFIT_1)
    image = image / ((2 * _IMAGE_REACH + 1) * (2 * _IMAGE_REACH + 1))
    w = tl.load(m + place, mask=valid, other=0.0)
    d = tl.load(data + place, mask=valid, other=0.0)
    measured = w > 0
    before = tl.load(weight + place, mask=valid, other=0.0)
    n = before * _falling(image, _IMAGE_0, _IMAGE_1) * tl.where(measured, gate, 1.0)
    residual = tl.load(maps + 2 * size + place, mask=valid, other=0.0)
    agrees = measured & (n > 0) & (residual < _GATE)
    outlier = measured & (agrees == 0) & (n * _OUTLIER >= _LEAST)
    unseen = n * _UNSEEN / (1.0 + tl.load(flow).to(tl.float32) / _UNSEEN_FLOW)
    held = (measured == 0) & (unseen >= _LEAST)
    old = tl.load(value + place, mask=valid, other=0.0)
    both = tl.where(agrees, n + w, 1.0)
    result = tl.where(agrees, (n * old + w * d) / both, tl.where(
        outlier | held, old, tl.where(measured, d, 0.0)))
    behind = tl.where(agrees, tl.minimum(n + w, limit), tl.where(
        outlier, n * _OUTLIER, tl.where(held, unseen, w)))
    tl.store(fused + place, result, mask=valid)
    tl.store(left + place, behind, mask=valid)
    in_sight = valid & measured & (before > 0)
    tl.atomic_add(counts, tl.sum(in_sight.to(tl.int32), axis=0))
    tl.atomic_add(counts + 1, tl.sum((valid & (agrees | outlier)).to(tl.int32), axis=0))
