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
"""Graph weights that know of depth: the reference, on any torch device."""

from __future__ import annotations

import torch

from graph_depth_refiner.core.edge_gating import LEAST_WEIGHT
from graph_depth_refiner.core.neighbours_torch import inside
from graph_depth_refiner.core.patch_graph import offsets, window_of


def gate_depth_edges(w: torch.Tensor, x: torch.Tensor, sigma: float) -> torch.Tensor:
    """Return the weights times how well the planes x of two pixels predict each other."""
    gated = torch.zeros_like(w)
    for o, (dy, dx) in enumerate(offsets(window_of(len(w)))):
        centre, other = inside(x, dy, dx), inside(x, -dy, -dx)  # 3 h w each
        step = other[0] - centre[0]
        forth = step - centre[1] * dx - centre[2] * dy
        back = step - other[1] * dx - other[2] * dy
        error = torch.maximum(forth.square(), back.square())
        weight = inside(w[o], dy, dx) * torch.exp(-error / (2 * sigma ** 2))
        inside(gated[o], dy, dx).copy_(torch.where(weight >= LEAST_WEIGHT, weight, 0))
    return gated


def relax_at_curvature(w: torch.Tensor, x: torch.Tensor, half: float) -> torch.Tensor:
    """Return the weights of every pixel scaled down by how its slopes differ around it."""
    slope_change, total = w.new_zeros(w.shape[1:]), w.sum(dim=0)  # H W
    for o, (dy, dx) in enumerate(offsets(window_of(len(w)))):
        difference = (inside(x, -dy, -dx)[1:] - inside(x, dy, dx)[1:]).square().sum(dim=0).sqrt()
        inside(slope_change, dy, dx).add_(inside(w[o], dy, dx) * difference)
    mean = slope_change / total.clamp(min=LEAST_WEIGHT)
    return w / (1 + (mean / half).square())
