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
"""Averages over blocks of 2x2 pixels, as a Triton kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from graph_depth_refiner.core.triton_launch import BLOCK, launch, programs, scalar


def merge_blocks(d: torch.Tensor, m: torch.Tensor, close) -> tuple[torch.Tensor, torch.Tensor]:
    """Average the largest group of pixels of every 2x2 block that are close together."""
    rows, columns = d.shape[0] // 2, d.shape[1] // 2
    merged, weight = d.new_empty(rows, columns), d.new_empty(rows, columns)
    launch(merge_kernel, programs(rows * columns), d.contiguous(), m.contiguous(), merged, weight,
           scalar(close, d), d.shape[1], rows, columns, block=BLOCK)
    return merged, weight


@triton.jit(do_not_specialize=['width', 'rows', 'columns'])
def merge_kernel(data, weight, merged, total, close, width, rows, columns, block: tl.constexpr):
    """Write the mean of the group of every block with the most weight, and a quarter of that."""
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < rows * columns
    first = 2 * (place // columns) * width + 2 * (place % columns)
    limit = tl.load(close).to(tl.float32)
    best, sums, weights = tl.zeros([block], tl.float32), tl.zeros([block], tl.float32), tl.zeros(
        [block], tl.float32)
    for one in range(4):
        own = first + (one // 2) * width + one % 2
        d = tl.load(data + own, mask=valid, other=0.0)
        support, summed = tl.zeros([block], tl.float32), tl.zeros([block], tl.float32)
        for other in range(4):
            at = first + (other // 2) * width + other % 2
            value = tl.load(data + at, mask=valid, other=0.0)
            m = tl.load(weight + at, mask=valid, other=0.0)
            m = tl.where(tl.abs(value - d) <= limit, m, 0.0)
            support += m
            summed += m * value
        counts = tl.load(weight + own, mask=valid, other=0.0) > 0
        support = tl.where(counts, support, 0.0)
        better = support > best
        best = tl.where(better, support, best)
        sums, weights = tl.where(better, summed, sums), tl.where(better, support, weights)
    known = weights > 0
    tl.store(merged + place, tl.where(known, sums / tl.where(known, weights, 1.0), 0.0),
             mask=valid)
    tl.store(total + place, 0.25 * weights, mask=valid)
