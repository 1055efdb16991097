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
Medians of samples of an image as a Triton kernel: one launch, one program, no sorting.

Numbers of at least 0 are ordered as their bits are, so that the bits of the median are found by
bisection: 31 times it is counted how many samples are not larger.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from graph_depth_refiner.core.statistics import stride_for
from graph_depth_refiner.core.triton_launch import launch

ROOM = 2048  # samples that the program holds at a time
WARPS = 8
_INFINITE = tl.constexpr(0x7F800000)  # the bits of it


def positive_median(image: torch.Tensor, otherwise: float = 0.0) -> torch.Tensor:
    """Return the median of those of some pixels, H W, that are above 0; as the reference."""
    return _median(image, None, otherwise, stride_for(image.shape))


def median_of_positive(values: torch.Tensor) -> torch.Tensor:
    """Return the median of those of N values that are above 0; 0 if none is."""
    return _median(values[None], None, 0.0, 1)


def quartile_of_positive(values: torch.Tensor) -> torch.Tensor:
    """Return the lower quartile of those of N values that are above 0; 0 if none is."""
    return _median(values[None], None, 0.0, 1, parts=4)


def known_median(image: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
    """Return the median of some of the known pixels, H W; 0 if none is."""
    return _median(image, known, 0.0, stride_for(image.shape))


def median_ratio(image: torch.Tensor, under: torch.Tensor, least: float, known: torch.Tensor,
                 otherwise: float) -> torch.Tensor:
    """Return the median of image / under, H W, of some pixels that are known, under >= least."""
    return _median(image, known, otherwise, stride_for(image.shape), under=under, least=least)


def _median(image: torch.Tensor, known: torch.Tensor | None, otherwise: float, stride: int,
            parts: int = 2, under: torch.Tensor | None = None, least: float = 1.0
            ) -> torch.Tensor:
    height, width = image.shape
    rows, columns = -(-height // stride), -(-width // stride)
    image = image.contiguous()
    found = torch.empty((), dtype=torch.float64, device=image.device)
    launch(median_kernel, 1, image, image if known is None else known.contiguous(),
           image if under is None else under.contiguous(), found, float(least), float(otherwise),
           height, width, rows, columns, stride, parts, masked=known is not None,
           ratio=under is not None, room=ROOM, num_warps=WARPS)
    return found


@triton.jit
def _bits(image, known, under, least, sample, count, width, columns, stride,
          masked: tl.constexpr, ratio: tl.constexpr):
    """Return the bits of samples as whole numbers; infinite where there is none."""
    inside = sample < count
    place = (sample // columns) * stride * width + (sample % columns) * stride
    value = tl.load(image + place, mask=inside, other=0).to(tl.float32)
    if masked:
        there = inside & (tl.load(known + place, mask=inside, other=0) != 0)
    else:
        there = inside & (value > 0)
    if ratio:
        below = tl.load(under + place, mask=inside, other=0).to(tl.float32)
        there = there & (below >= least)
        value = value / tl.where(there, below, 1.0)
    return tl.where(there, value, float('inf')).to(tl.int32, bitcast=True)


@triton.jit
def _not_larger(image, known, under, least, limit, count, width, columns, stride,
                masked: tl.constexpr, ratio: tl.constexpr, room: tl.constexpr):
    """Return how many samples have at most these bits."""
    number = 0
    for first in range(0, count, room):
        bits = _bits(image, known, under, least, first + tl.arange(0, room), count, width,
                     columns, stride, masked, ratio)
        number += tl.sum((bits <= limit).to(tl.int32), axis=0)
    return number


@triton.jit(do_not_specialize=['height', 'width', 'rows', 'columns', 'stride', 'parts'])
def median_kernel(image, known, under, found, least, otherwise, height, width, rows, columns,
                  stride, parts, masked: tl.constexpr, ratio: tl.constexpr, room: tl.constexpr):
    """Write the value that 1 / parts are below; of the median, the upper one of two."""
    count = rows * columns
    below = _not_larger(image, known, under, least, _INFINITE - 1, count, width, columns, stride,
                        masked, ratio, room) // parts
    low, high = 0, 0x7F800000
    for _turn in range(31):
        middle = low + (high - low) // 2
        enough = _not_larger(image, known, under, least, middle, count, width, columns, stride,
                             masked, ratio, room) > below
        low, high = tl.where(enough, low, middle + 1), tl.where(enough, middle, high)
    median = tl.minimum(low, 0x7F800000).to(tl.int32).to(tl.float32, bitcast=True)
    if median == float('inf'):  # no sample is known: the largest of all stands for it
        largest = tl.zeros([room], tl.float32)
        if not masked:
            for first in range(0, height * width, room):
                place = first + tl.arange(0, room)
                largest = tl.maximum(
                    largest, tl.load(image + place, mask=place < height * width, other=0.0))
        median = tl.max(largest, axis=0)
    tl.store(found, tl.where(median > 0, median.to(tl.float64), otherwise))
