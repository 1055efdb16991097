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
"""The noise of a sensor, learned on any torch device without reading anything back."""

from __future__ import annotations

import torch

from graph_depth_refiner.core import noise as stage
from graph_depth_refiner.core.kernels import Number
from graph_depth_refiner.core.noise import fused_sigma, NoiseModel
from graph_depth_refiner.core.statistics import subsample
from graph_depth_refiner.core.statistics_torch import masked_median


def known_sigma(noise: NoiseModel, d: torch.Tensor, frames: torch.Tensor, unit: Number
                ) -> torch.Tensor:
    """Return the deviation, H W, of means d of so many frames; a unit where nothing is known."""
    sigma = fused_sigma(noise, d, frames)
    return torch.where(d > 0, sigma, 0 * sigma + unit)


def learn_noise(model: NoiseModel, d: torch.Tensor, m: torch.Tensor, history: torch.Tensor,
                frames: torch.Tensor, gate: float) -> NoiseModel:
    """Return the model after the residuals of some pixels, H W, of those within the gate."""
    d, m, old, frames = (
        subsample(one, stage.SAMPLES).flatten().double() for one in (d, m, history, frames))
    residual, behind = d - old, frames.clamp(min=1)
    widths = (1 + 1 / behind).sqrt()
    both = (m > 0) & (frames > 0) & (old > 0)
    used = both & (residual.abs() <= gate * (model.floor + model.share * d) * widths)
    enough = (used.sum() >= stage.BINS * stage.LEAST_SAMPLES) & ~repeated(residual, d, both)
    typical = torch.where(enough, masked_median(d, used), 1)
    mean = d - residual * behind / (1 + behind)
    at, seen = _bins(mean, residual.abs() / widths, used)
    x = torch.where(enough, at / typical, 1)
    least = (model.independent / typical).clamp(min=stage.LEAST)
    y = torch.where(enough, torch.maximum(stage.NORMAL * seen / typical, least * x), 1)
    weight = 1 / y.square()
    new = torch.stack((weight, weight * x, weight * x * x, weight * y, weight * x * y)).sum(dim=1)
    a, b, c, p, q = (stage.MEMORY * before + after for before, after in zip(
        (*model.matrix, *model.vector), new))
    floor, share = _line(a, b, c, p, q)

    def kept(after: torch.Tensor, before: torch.Tensor | float) -> torch.Tensor:
        return torch.where(enough, after, before)
    return NoiseModel(
        kept(floor * typical, model.floor), kept(share, model.share), model.independent,
        tuple(map(kept, (a, b, c), model.matrix)), tuple(map(kept, (p, q), model.vector)),
        kept(stage.MEMORY * model.frames + torch.ones_like(floor), model.frames))


def repeated(residual: torch.Tensor, d: torch.Tensor, both: torch.Tensor) -> torch.Tensor:
    """Tell whether this is the frame before, sent again, by residuals where both are known."""
    same = both & (residual.abs() <= stage.SAME * d)
    return same.sum() > stage.REPEATED * both.sum()


def _bins(mean: torch.Tensor, spread: torch.Tensor, used: torch.Tensor
          ) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and median spread of bins of equally many samples, by their mean; BINS each."""
    count, number = used.sum(), torch.arange(stage.BINS + 1, device=mean.device)
    size, rest = count.div(stage.BINS, rounding_mode='floor'), count % stage.BINS
    edges = number * size + torch.minimum(number, rest)  # the first ones have one more
    order = torch.where(used, mean, torch.inf).sort(stable=True).indices
    rank = torch.arange(len(mean), device=mean.device)
    bins = torch.bucketize(rank, edges[1:], right=True)  # the last is for unused samples
    sums = mean.new_zeros(stage.BINS + 1).index_add_(
        0, bins, torch.where(rank < count, mean[order], 0))[:-1]
    ordered = spread[order]
    by_spread = ordered.sort(stable=True).indices
    by_bin = bins[by_spread].sort(stable=True).indices
    middle = (edges[:-1] + edges.diff().div(2, rounding_mode='floor')).clamp(max=len(mean) - 1)
    medians = ordered[by_spread[by_bin]].index_select(0, middle)
    return sums / edges.diff().clamp(min=1), medians


def _line(a, b, c, p, q) -> tuple[torch.Tensor, torch.Tensor]:
    """Solve [a b; b c] (floor, share) = (p, q) with both at least 0."""
    determinant = a * c - b * b
    floor, share = (p * c - q * b) / determinant, (q * a - p * b) / determinant
    both = (determinant > 1e-9 * a * c) & (floor >= 0) & (share >= 0)
    only_share = q * q / c > p * p / a
    return (torch.where(both, floor, torch.where(only_share, 0, p / a)),
            torch.where(both, share, torch.where(only_share, q / c, 0)))
