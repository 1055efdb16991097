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
"""The noise of a sensor, learned by Triton kernels: four launches and one sort of torch."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from graph_depth_refiner.core import noise as stage
from graph_depth_refiner.core.kernels import Number
from graph_depth_refiner.core.noise import NoiseModel
from graph_depth_refiner.core.noise_torch import repeated
from graph_depth_refiner.core.statistics import stride_for
from graph_depth_refiner.core.statistics_triton import median_of_positive, WARPS
from graph_depth_refiner.core.triton_launch import BLOCK, launch, programs, scalar

ROOM = 2048  # samples of a bin that its program holds at a time
_BINS = tl.constexpr(stage.BINS)
_LEAST_SAMPLES, _NORMAL = tl.constexpr(stage.LEAST_SAMPLES), tl.constexpr(stage.NORMAL)
_COMMON = tl.constexpr(stage.COMMON)
_LEAST, _MEMORY = tl.constexpr(stage.LEAST), tl.constexpr(stage.MEMORY)


def learn_noise(model: NoiseModel, d: torch.Tensor, m: torch.Tensor, history: torch.Tensor,
                frames: torch.Tensor, gate: float) -> NoiseModel:
    """Return the model after the residuals of some pixels, H W, of those within the gate."""
    height, width = d.shape
    stride = stride_for(d.shape, stage.SAMPLES)
    rows, columns = -(-height // stride), -(-width // stride)
    count = rows * columns
    used, mean, spread = (d.new_empty(count) for _ in range(3))
    floor, share = scalar(model.floor, d), scalar(model.share, d)
    launch(residuals_kernel, programs(count), d, m, history.contiguous(), frames.contiguous(),
           floor, share, used, mean, spread, float(gate), width, columns, stride, count,
           block=BLOCK)
    typical = median_of_positive(used)
    order = mean.sort(stable=True).indices
    bins = torch.empty(stage.BINS, 2, dtype=torch.float64, device=d.device)
    launch(bins_kernel, stage.BINS, mean, spread, order, bins, count, room=ROOM, num_warps=WARPS)
    before = torch.stack([scalar(one, d) for one in (
        floor, share, *model.matrix, *model.vector, model.frames)])
    after = torch.empty_like(before)
    launch(line_kernel, 1, bins, typical, scalar(model.independent, d), before, after)
    data, weight, old, behind = (one[::stride, ::stride] for one in (d, m, history, frames))
    both = (weight > 0) & (behind > 0) & (old > 0)
    after = torch.where(repeated(data - old, data, both), before, after)
    floor, share, a, b, c, p, q, frames = after
    return NoiseModel(floor, share, model.independent, (a, b, c), (p, q), frames)


@triton.jit(do_not_specialize=['width', 'columns', 'stride', 'count'])
def residuals_kernel(data, m, history, frames, floor, share, used, mean, spread, gate, width,
                     columns, stride, count, block: tl.constexpr):
    """Write the inverse depth, mean and spread of samples; 0, infinite and 0 if not used."""
    sample = tl.program_id(0) * block + tl.arange(0, block)
    valid = sample < count
    place = (sample // columns) * stride * width + (sample % columns) * stride
    d = tl.load(data + place, mask=valid, other=0.0)
    old = tl.load(history + place, mask=valid, other=0.0)
    n = tl.load(frames + place, mask=valid, other=0.0)
    behind = tl.maximum(n, 1.0)
    widths = tl.sqrt(1.0 + 1.0 / behind)
    residual = d - old
    sigma = tl.load(floor).to(tl.float32) + tl.load(share).to(tl.float32) * d
    use = valid & (tl.load(m + place, mask=valid, other=0.0) > 0) & (n > 0) & (old > 0) & (
        tl.abs(residual) <= gate * sigma * widths)
    tl.store(used + sample, tl.where(use, d, 0.0), mask=valid)
    average = d - residual * behind / (1.0 + behind)
    tl.store(mean + sample, tl.where(use, average, float('inf')), mask=valid)
    tl.store(spread + sample, tl.where(use, tl.abs(residual) / widths, 0.0), mask=valid)


@triton.jit
def _spread_bits(spread, order, first, lane, length):
    """Return the bits of the spread of samples of a bin; the largest where there is none."""
    inside = lane < length
    number = tl.load(order + first + lane, mask=inside, other=0)
    bits = tl.load(spread + number, mask=inside, other=0.0).to(tl.int32, bitcast=True)
    return tl.where(inside, bits, 0x7FFFFFFF), number, inside


@triton.jit(do_not_specialize=['count'])
def bins_kernel(mean, spread, order, bins, count, room: tl.constexpr):
    """Write mean and median spread of one bin of equally many samples; -1 if there are too few."""
    used = 0
    for start in range(0, count, room):
        lane = start + tl.arange(0, room)
        value = tl.load(mean + lane, mask=lane < count, other=float('inf'))
        used += tl.sum((value < float('inf')).to(tl.int32), axis=0)
    number = tl.program_id(0)
    size, rest = used // _BINS, used % _BINS
    first = number * size + tl.minimum(number, rest)  # the first ones have one more
    length = size + (number < rest).to(tl.int32)
    total = tl.zeros([room], tl.float64)
    for start in range(0, length, room):
        bits, sample, inside = _spread_bits(
            spread, order, first, start + tl.arange(0, room), length)
        total += tl.load(mean + sample, mask=inside, other=0.0).to(tl.float64)
    low, high = 0, 0x7F800000
    for _turn in range(31):
        middle = low + (high - low) // 2
        found = 0
        for start in range(0, length, room):
            bits, sample, inside = _spread_bits(
                spread, order, first, start + tl.arange(0, room), length)
            found += tl.sum((bits <= middle).to(tl.int32), axis=0)
        enough = found > length // 2
        low, high = tl.where(enough, low, middle + 1), tl.where(enough, middle, high)
    median = tl.minimum(low, 0x7F800000).to(tl.int32).to(tl.float32, bitcast=True)
    few = used < _BINS * _LEAST_SAMPLES
    at = bins + 2 * number
    tl.store(at, tl.where(few, -1.0, tl.sum(total, axis=0) / tl.maximum(length, 1)))
    tl.store(at + 1, tl.where(few, -1.0, median.to(tl.float64)))


@triton.jit
def line_kernel(bins, typical, independent, before, after):
    """Fit the line through the bins, with what was learned before; both parts are at least 0."""
    number = tl.arange(0, 8)
    if tl.load(bins) < 0:  # too few samples
        tl.store(after + number, tl.load(before + number))
    else:
        unit = tl.load(typical)
        x = tl.load(bins + 2 * number, mask=number < _BINS, other=0.0) / unit
        y = tl.load(bins + 2 * number + 1, mask=number < _BINS, other=0.0) / unit * _NORMAL
        y = tl.maximum(y, x * tl.maximum(tl.load(independent) / unit, _LEAST))
        weight = tl.where(number < _BINS, 1.0 / (y * y), 0.0)
        a = tl.load(before + 2) * _MEMORY + tl.sum(weight, axis=0)
        b = tl.load(before + 3) * _MEMORY + tl.sum(weight * x, axis=0)
        c = tl.load(before + 4) * _MEMORY + tl.sum(weight * x * x, axis=0)
        p = tl.load(before + 5) * _MEMORY + tl.sum(weight * y, axis=0)
        q = tl.load(before + 6) * _MEMORY + tl.sum(weight * x * y, axis=0)
        determinant = a * c - b * b
        floor, share = (p * c - q * b) / determinant, (q * a - p * b) / determinant
        both = (determinant > 1e-9 * a * c) & (floor >= 0) & (share >= 0)
        only_share = q * q / c > p * p / a
        floor = tl.where(both, floor, tl.where(only_share, 0.0, p / a))
        share = tl.where(both, share, tl.where(only_share, q / c, 0.0))
        tl.store(after, floor * unit)
        tl.store(after + 1, share)
        tl.store(after + 2, a)
        tl.store(after + 3, b)
        tl.store(after + 4, c)
        tl.store(after + 5, p)
        tl.store(after + 6, q)
        tl.store(after + 7, tl.load(before + 7) * _MEMORY + 1.0)


def known_sigma(noise: NoiseModel, d: torch.Tensor, frames: torch.Tensor, unit: Number
                ) -> torch.Tensor:
    """Return the deviation, H W, of means d of so many frames; a unit where nothing is known."""
    sigma = torch.empty_like(d)
    launch(sigma_kernel, programs(d.numel()), d.contiguous(), frames.contiguous(), sigma,
           scalar(noise.floor, d), scalar(noise.share, d), scalar(unit, d), d.numel(),
           block=BLOCK)
    return sigma


@triton.jit(do_not_specialize=['size'])
def sigma_kernel(data, frames, sigma, floor, share, unit, size, block: tl.constexpr):
    """Write the deviation of every pixel."""
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    d = tl.load(data + place, mask=valid, other=0.0)
    n = tl.maximum(tl.load(frames + place, mask=valid, other=1.0), 1.0)
    single = tl.load(share).to(tl.float32) * d + tl.load(floor).to(tl.float32)
    fused = single * tl.sqrt(1.0 / n * (1 - _COMMON) + _COMMON)
    tl.store(sigma + place, tl.where(d > 0, fused, tl.load(unit).to(tl.float32)), mask=valid)
