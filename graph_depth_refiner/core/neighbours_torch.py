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
"""Neighbouring pixels of tensors."""

from __future__ import annotations

import torch


def inside(plane: torch.Tensor, dy: int, dx: int) -> torch.Tensor:
    """Return the pixels (... H W) whose neighbour at the offset is in the image too."""
    height, width = plane.shape[-2:]
    return plane[
        ..., max(0, -dy):max(0, height - max(0, dy)), max(0, -dx):max(0, width - max(0, dx))]


def neighbour(values: torch.Tensor, dy: int, dx: int) -> torch.Tensor:
    """Return for every pixel the value (... H W) of its neighbour at (dy, dx), 0 if outside."""
    result = torch.zeros_like(values)
    inside(result, dy, dx).copy_(inside(values, -dy, -dx))
    return result
