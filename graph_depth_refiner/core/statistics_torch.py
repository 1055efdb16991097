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
"""Robust statistics on any torch device, without asking how many values there are."""

from __future__ import annotations

import torch

from graph_depth_refiner.core.statistics import subsample


def masked_median(values: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Return the median of the known ones of N values, the upper of two; infinite if none is."""
    return masked_quantile(values, known, 2)


def masked_quantile(values: torch.Tensor, known: torch.Tensor, parts: int) -> torch.Tensor:
    """Return the value that 1 / parts of the known ones of N are below; infinite if none is."""
    ordered = torch.where(known, values, torch.inf).sort().values
    place = known.sum().div(parts, rounding_mode='floor')
    return ordered.index_select(0, place.clamp(max=len(values) - 1)[None])[0]


def known_median(image: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Return the median of some of the known pixels, H W; 0 if none is."""
    median = masked_median(subsample(image).flatten(), subsample(known).flatten())
    return torch.where(median < torch.inf, median, 0)


def positive_median(image: torch.Tensor, otherwise: float = 0.0) -> torch.Tensor:
    """
    Return the median of those of some pixels, H W, that are above 0; float64.

    If none of them is, the largest of all pixels stands for it, or if that is 0 `otherwise`.
    """
    some = subsample(image).flatten()
    median = masked_median(some, some > 0)
    largest = image.max()
    found = torch.where(median < torch.inf, median, largest).double()
    return torch.where(found > 0, found, otherwise)
