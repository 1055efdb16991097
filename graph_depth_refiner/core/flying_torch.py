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
"""Flying pixels: the reference on any torch device."""

from __future__ import annotations

import torch

from graph_depth_refiner.core import flying as stage
from graph_depth_refiner.core.neighbours_torch import neighbour


def not_flying(planes: torch.Tensor, d: torch.Tensor, frames: torch.Tensor, width: torch.Tensor
               ) -> torch.Tensor:
    """
    Return 0 where a pixel flies, 1 elsewhere, H W.

    planes, 3 H W, and d are inverse depth, frames what stands behind it, 0 where unknown; width,
    all H W, is how far a plane that agrees may be off.
    """
    agreeing = torch.zeros_like(d)
    before = behind = torch.zeros_like(d, dtype=torch.bool)
    steps = range(-stage.REACH, stage.REACH + 1)
    for dy, dx in ((dy, dx) for dy in steps for dx in steps if dy or dx):
        there = neighbour(planes, dy, dx)  # 3 H W
        known = neighbour(frames, dy, dx) > 0
        off = there[0] - there[1] * dx - there[2] * dy - d
        agreeing = agreeing + (known & (off.abs() <= width))
        before, behind = before | (known & (off > width)), behind | (known & (off < -width))
    flies = (frames > 0) & (agreeing <= stage.SUPPORT) & before & behind
    return (~flies).to(d.dtype)
