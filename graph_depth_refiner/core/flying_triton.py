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
"""Flying pixels: a Triton kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from graph_depth_refiner.core import flying as stage
from graph_depth_refiner.core.triton_launch import BLOCK, launch, programs

_REACH, _SUPPORT = tl.constexpr(stage.REACH), tl.constexpr(stage.SUPPORT)


def not_flying(planes: torch.Tensor, d: torch.Tensor, frames: torch.Tensor, width: torch.Tensor
               ) -> torch.Tensor:
    """Return 0 where a pixel flies, 1 elsewhere, H W; see the reference."""
    height, columns = d.shape
    kept = torch.empty_like(d)
    launch(not_flying_kernel, programs(height * columns), planes.contiguous(), d, frames, width,
           kept, height, columns, block=BLOCK)
    return kept


@triton.jit(do_not_specialize=['height', 'columns'])
def not_flying_kernel(planes, d, frames, width, kept, height, columns, block: tl.constexpr):
    """Count the planes around that agree, and look for some before and behind."""
    size = height * columns
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    y, x = place // columns, place % columns
    here = tl.load(d + place, mask=valid, other=0.0)
    limit = tl.load(width + place, mask=valid, other=0.0)
    own = tl.load(frames + place, mask=valid, other=0.0) > 0
    agreeing = tl.zeros([block], tl.int32)
    before = tl.zeros([block], tl.int32)
    behind = tl.zeros([block], tl.int32)
    for dy in range(-_REACH, _REACH + 1):
        for dx in range(-_REACH, _REACH + 1):
            inside = (y + dy >= 0) & (y + dy < height) & (x + dx >= 0) & (x + dx < columns) \
                & valid & ((dy != 0) | (dx != 0))
            at = place + dy * columns + dx
            known = tl.load(frames + at, mask=inside, other=0.0) > 0
            off = tl.load(planes + at, mask=inside, other=0.0) \
                - tl.load(planes + size + at, mask=inside, other=0.0) * dx \
                - tl.load(planes + 2 * size + at, mask=inside, other=0.0) * dy - here
            agreeing += (known & (tl.abs(off) <= limit)).to(tl.int32)
            before = tl.maximum(before, (known & (off > limit)).to(tl.int32))
            behind = tl.maximum(behind, (known & (off < -limit)).to(tl.int32))
    flies = own & (agreeing <= _SUPPORT) & (before > 0) & (behind > 0)
    tl.store(kept + place, tl.where(flies, 0.0, 1.0), mask=valid)
