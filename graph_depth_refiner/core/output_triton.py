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
"""Planes to depth, normals, confidence and provenance: a Triton kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from graph_depth_refiner.core import output as stage
from graph_depth_refiner.core.triton_launch import BLOCK, launch, programs, scalar
from graph_depth_refiner.frame import Intrinsics

_UNKNOWN, _MEASURED = tl.constexpr(stage.UNKNOWN), tl.constexpr(stage.MEASURED)
_CORRECTED, _FILLED = tl.constexpr(stage.CORRECTED), tl.constexpr(stage.FILLED)
_UNITS = tl.constexpr(stage.CORRECTED_UNITS)


def describe(planes: torch.Tensor, d: torch.Tensor, m: torch.Tensor, frame_count: torch.Tensor,
             noise: tuple, intrinsics: Intrinsics, limits: tuple[float, float]
             ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return depth H W, normals H W 3, confidence H W and provenance H W of planes."""
    height, width = d.shape
    k = intrinsics
    depth, confidence = torch.empty_like(d), torch.empty_like(d)
    normals = d.new_empty(height, width, 3)
    provenance = torch.empty(d.shape, dtype=torch.uint8, device=d.device)
    launch(describe_kernel, programs(height * width), planes.contiguous(), d, m,
           frame_count.contiguous(), scalar(noise[0], d), scalar(noise[1], d), depth, normals,
           confidence, provenance, k.fx, k.fy, k.cx, k.cy, *limits, height, width, block=BLOCK)
    return depth, normals, confidence, provenance


@triton.jit(do_not_specialize=['height', 'width'])
def describe_kernel(planes, data, m, frames, floor, share, depth, normals, confidence, provenance,
                    fx, fy, cx, cy, least, most, height, width, block: tl.constexpr):
    """Write what is known of every pixel."""
    size = height * width
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    value = tl.load(planes + place, mask=valid, other=0.0)
    ux = tl.load(planes + size + place, mask=valid, other=0.0)
    uy = tl.load(planes + 2 * size + place, mask=valid, other=0.0)
    known = (value >= least) & (value <= most)
    nothing = float('nan')
    tl.store(depth + place, tl.where(known, 1.0 / value, nothing), mask=valid)
    across = (place % width).to(tl.float32) - cx
    down = (place // width).to(tl.float32) - cy
    qx, qy, qz = fx * ux, fy * uy, value - ux * across - uy * down
    length = tl.sqrt(qx * qx + qy * qy + qz * qz)
    tl.store(normals + 3 * place, tl.where(known, -qx / length, nothing), mask=valid)
    tl.store(normals + 3 * place + 1, tl.where(known, -qy / length, nothing), mask=valid)
    tl.store(normals + 3 * place + 2, tl.where(known, -qz / length, nothing), mask=valid)
    d = tl.load(data + place, mask=valid, other=0.0)
    n = tl.load(frames + place, mask=valid, other=0.0)
    held = n / (1.0 + n)
    sigma = tl.load(floor).to(tl.float32) + tl.load(share).to(tl.float32) * d
    corrected = tl.abs(value - d) > sigma * _UNITS
    measured = (d > 0) & (corrected == 0)
    trust = tl.maximum(tl.load(m + place, mask=valid, other=0.0), held)
    tl.store(confidence + place, tl.where(known, tl.where(measured, trust, held), 0.0),
             mask=valid)
    kind = tl.where(d > 0, tl.where(corrected, _CORRECTED, _MEASURED), _FILLED)
    tl.store(provenance + place, tl.where(known, kind, _UNKNOWN).to(tl.uint8), mask=valid)
