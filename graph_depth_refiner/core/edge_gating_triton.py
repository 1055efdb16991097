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
"""Weights of graph edges after the planes at both ends, as a Triton kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from graph_depth_refiner.core.edge_gating import LEAST_WEIGHT
from graph_depth_refiner.core.patch_graph import window_of
from graph_depth_refiner.core.triton_launch import BLOCK, launch, programs, scalar

_LEAST_WEIGHT = tl.constexpr(LEAST_WEIGHT)


def gate_depth_edges(w: torch.Tensor, x: torch.Tensor, sigma) -> torch.Tensor:
    """Return the weights times how well the planes x of two pixels predict each other."""
    height, width = w.shape[1:]
    gated = torch.empty_like(w)
    launch(gate_kernel, programs(height * width), w, x.contiguous(), gated, scalar(sigma, w),
           height, width, reach=window_of(len(w)) // 2, block=BLOCK)
    return gated


@triton.jit(do_not_specialize=['height', 'width'])
def gate_kernel(w, planes, gated, sigma, height, width, reach: tl.constexpr,
                block: tl.constexpr):
    """Write the gated weights of all edges of every pixel, O H W."""
    size = height * width
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    y, x = place // width, place % width
    spread = tl.load(sigma).to(tl.float32)
    fade = -0.5 / (spread * spread)
    d = tl.load(planes + place, mask=valid, other=0.0)
    ux = tl.load(planes + size + place, mask=valid, other=0.0)
    uy = tl.load(planes + 2 * size + place, mask=valid, other=0.0)
    edge = 0
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            if (dy != 0) | (dx != 0):
                inside = valid & (y + dy >= 0) & (y + dy < height) & (x + dx >= 0) & (
                    x + dx < width)
                other = place + dy * width + dx
                step = tl.load(planes + other, mask=inside, other=0.0) - d
                forth = step - ux * dx - uy * dy
                back = step - tl.load(planes + size + other, mask=inside, other=0.0) * dx \
                    - tl.load(planes + 2 * size + other, mask=inside, other=0.0) * dy
                error = tl.maximum(forth * forth, back * back)
                weight = tl.load(w + edge * size + place, mask=inside, other=0.0)
                weight = weight * tl.exp(error * fade)
                tl.store(gated + edge * size + place,
                         tl.where(inside & (weight >= _LEAST_WEIGHT), weight, 0.0), mask=valid)
                edge += 1
