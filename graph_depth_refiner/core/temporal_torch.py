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
"""Fusion of a frame with the warped history: the reference, on any torch device."""

from __future__ import annotations

import torch
from torch.nn.functional import pad

from graph_depth_refiner.core import temporal as stage
from graph_depth_refiner.core.filters_torch import blur, gaussian
from graph_depth_refiner.core.neighbours_torch import neighbour
from graph_depth_refiner.core.noise import NoiseModel
from graph_depth_refiner.core.patch_graph_torch import box
from graph_depth_refiner.core.statistics import subsample
from graph_depth_refiner.core.statistics_torch import masked_median


def bias_sums(d: torch.Tensor, m: torch.Tensor, past: torch.Tensor, frames: torch.Tensor,
              noise: NoiseModel) -> torch.Tensor:
    """Return sums of relative residuals that may be bias, and their count, by blocks."""
    both = (m > 0) & (frames > 0)
    value = torch.where(both, past, 1)
    residual = d - value
    sigma = (noise.floor + noise.share * d) * (1 + 1 / frames.clamp(min=1)).sqrt()
    bias = both & (residual.abs() < stage.BIAS_GATE * sigma)
    parts = torch.stack((torch.where(bias, residual / value, 0), bias.to(d.dtype)))  # 2 H W
    down, right = (-side % stage.BLOCK for side in d.shape)
    blocks = pad(parts, (0, right, 0, down)).unflatten(2, (-1, stage.BLOCK)).unflatten(
        1, (-1, stage.BLOCK))  # 2 h BLOCK w BLOCK
    return blocks.sum(dim=(2, 4))


def bias_field(sums: torch.Tensor, flow: torch.Tensor | float) -> torch.Tensor:
    """Return the smooth part of the relative residual, by blocks, from sums and counts."""
    length = stage.BIAS_LENGTH / stage.BLOCK
    size = round(8 * length + 1) | 1  # as OpenCV takes it
    total, count = blur(sums, gaussian(length, size, sums), 'replicate')
    known = (count / (stage.LEAST_SUPPORT * stage.BLOCK ** 2)).clamp(0, 1)
    gain = flow / (flow + stage.BIAS_FLOW)
    return gain * known * total / count.clamp(min=1e-6)


def exposure_gain(grey: torch.Tensor, seen: torch.Tensor, frames: torch.Tensor) -> torch.Tensor:
    """Return how many times brighter an image, H W uint8, is than before; 1 if black."""
    grey, seen, frames = (subsample(one).flatten() for one in (grey, seen, frames))
    gain = masked_median(
        grey.to(frames.dtype) / seen.clamp(min=1), (frames > 0) & (seen >= stage.DARK))
    return torch.where((gain > 0) & (gain < torch.inf), gain, 1)


def fuse(d: torch.Tensor, m: torch.Tensor, grey: torch.Tensor, past: torch.Tensor,
         frames: torch.Tensor, seen: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor,
         noise: NoiseModel, flow: torch.Tensor | float, limit: float, means: float
         ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the running mean, its frames, the history without bias, H W each, and counts."""
    there = (frames > 0) & (past > 0)
    value = torch.where(there, past * (1 + _enlarged(bias, d.shape)), 0)
    sigma = torch.where(there, noise.floor + noise.share * value, 1)
    weight = torch.where(there, frames.clamp(max=limit), 0)
    rough = torch.minimum(_roughness(past, frames > 0), stage.STEEPEST * value)
    weight = weight / (1 + weight * (stage.MISPLACED * flow * rough / sigma).square())

    spread = sigma * (1 + 1 / weight.clamp(min=stage.LEAST_WEIGHT)).sqrt()
    both = ((m > 0) & (weight > 0)).to(d.dtype)
    residual = both * ((d - value) / spread).clamp(-stage.CLIP, stage.CLIP)
    change = (grey.to(d.dtype) - gain * seen.to(d.dtype)).abs() / 255 * (weight > 0)
    share = _mean(both, stage.REACH).clamp(min=1e-6)
    measured = m > 0
    misfit = _mean(residual.abs(), stage.REACH) / share - stage.EXPECTED
    gate = _falling(_mean(residual, stage.REACH).abs() / share / means, stage.MEAN) \
        * _falling(misfit / means, stage.MISFIT)
    n = weight * _falling(_mean(change, stage.IMAGE_REACH), stage.IMAGE) \
        * torch.where(measured, gate, 1)

    agrees = measured & (n > 0) & (residual.abs() < stage.GATE)
    outlier = measured & ~agrees & (n * stage.OUTLIER_SHARE >= stage.LEAST_FRAMES)
    unseen = n * stage.unseen_share(flow)
    held = ~measured & (unseen >= stage.LEAST_FRAMES)
    mean = (n * value + m * d) / torch.where(agrees, n + m, 1)
    fused = torch.where(agrees, mean, torch.where(outlier | held, value, d * measured))
    left = torch.where(agrees, (n + m).clamp(max=limit), torch.where(
        outlier, n * stage.OUTLIER_SHARE, torch.where(held, unseen, m)))
    counts = torch.stack(((measured & (weight > 0)).sum(), (agrees | outlier).sum()))
    return fused, left, value, counts


def _enlarged(blocks: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """Return values of blocks, h w, at every pixel, H W: bilinear, constant beyond the middles."""
    for dim, side in enumerate(shape):
        last = blocks.shape[dim] - 1
        place = ((torch.arange(side, dtype=blocks.dtype, device=blocks.device) + 0.5)
                 / stage.BLOCK - 0.5).clamp(0, last)
        first = place.long().clamp(max=max(0, last - 1))
        part = (place - first).unflatten(0, (-1, 1) if dim == 0 else (1, -1))
        one, other = (blocks.index_select(dim, at) for at in (first, (first + 1).clamp(max=last)))
        blocks = (1 - part) * one + part * other
    return blocks


def _roughness(past: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Return how much the step changes between opposite neighbours, both with a history."""
    return torch.stack([
        torch.where(neighbour(known, -dy, -dx) & neighbour(known, dy, dx),
                    (neighbour(past, -dy, -dx) + neighbour(past, dy, dx) - 2 * past).abs(), 0)
        for dy, dx in ((0, 1), (1, 0))]).amax(dim=0)


def _mean(values: torch.Tensor, radius: int) -> torch.Tensor:
    """Return the mean, H W, of the square around every pixel; the image is mirrored beyond."""
    rows, columns = (_mirrored(side, radius, values.device) for side in values.shape)
    side = 2 * radius + 1
    return box(box(values[rows][:, columns], side, 0), side, 1) / side ** 2


def _mirrored(side: int, radius: int, device: torch.device) -> torch.Tensor:
    """Return the places from -radius to side + radius - 1, those outside mirrored at the edge."""
    places = torch.arange(-radius, side + radius, device=device) % (2 * side)
    return torch.minimum(places, 2 * side - 1 - places)


def _falling(value: torch.Tensor, limits: tuple[float, float]) -> torch.Tensor:
    """Return 1 below the first limit, 0 beyond the second, linear between."""
    return ((limits[1] - value) / (limits[1] - limits[0])).clamp(0, 1)
