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
The paper's method written the plain way: torch, autograd, lists of edges.

It is what the fused kernels are measured against and shares nothing with them: edges are
index lists, norms are scatter sums, the gradient is autograd's, the step torch.optim.Adam's.
"""

from __future__ import annotations

import torch
from torch.nn.functional import pad, unfold

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.problem import offsets, SMOOTHING


class Edges:
    """A graph as lists: from, to, step and weight of every edge."""

    def __init__(self, guide: torch.Tensor, config: RefinerConfig) -> None:
        """Compare the patches of all pixels with those around them."""
        height, width = guide.shape
        window, patch = config.graph_window, config.graph_patch
        q = patch // 2
        padded = pad(guide[None, None], (q, q, q, q), mode='replicate')
        patches = unfold(padded, patch)[0]  # Q*Q H*W
        index = torch.arange(height * width).view(height, width)
        y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing='ij')
        weights, targets = [], []
        for dy, dx in offsets(window):
            there = (y + dy).clamp(0, height - 1) * width + (x + dx).clamp(0, width - 1)
            inside = (y + dy >= 0) & (y + dy < height) & (x + dx >= 0) & (x + dx < width)
            distance = (patches - patches[:, there.view(-1)]).square().sum(dim=0)
            weight = torch.exp(
                -distance / (2 * config.graph_sigma_intensity ** 2)
                - (dy * dy + dx * dx) / (2 * config.graph_sigma_space ** 2))
            weights.append(weight * inside.view(-1))
            targets.append(there.view(-1))
        weight, target = torch.stack(weights, dim=1), torch.stack(targets, dim=1)  # H*W O
        if config.graph_neighbours:
            weight, kept = weight.topk(config.graph_neighbours, dim=1)  # H*W K
            target = target.gather(1, kept)
        if config.graph_normalise:
            weight = weight / weight.sum(dim=1, keepdim=True).clamp(min=1e-30)
        used = weight > 0
        self.start = index.view(-1, 1).expand_as(target)[used]  # E
        self.end = target[used]
        self.weight = weight[used]
        self.dy = (self.end // width - self.start // width).to(guide.dtype)
        self.dx = (self.end % width - self.start % width).to(guide.dtype)


class Solver:
    """Minimises the paper's energy with autograd."""

    def __init__(self, edges: Edges, x, d, m, unit: float, config: RefinerConfig) -> None:
        """Begin at the planes x, 3 H W."""
        self.edges, self.unit, self.config = edges, unit, config
        self.d, self.m = (d / unit).view(-1), m.view(-1)
        self.z = [torch.nn.Parameter(plane) for plane in (x / unit).view(3, -1)]
        rate = config.learning_rate
        slope = {'params': self.z[1:], 'lr': rate * config.slope_rate}
        self.optimiser = torch.optim.Adam([{'params': self.z[:1], 'lr': rate}, slope])

    def energy(self) -> torch.Tensor:
        """Return the energy in noise units."""
        edges, config = self.edges, self.config
        d, ux, uy = self.z
        start, end, weight = edges.start, edges.end, edges.weight
        residual = weight * (d[end] - d[start] - ux[start] * edges.dx - uy[start] * edges.dy)
        squares = torch.zeros_like(d).index_add(0, start, residual.square())
        turn = (ux[end] - ux[start]).square() + (uy[end] - uy[start]).square()
        regulariser = norm(squares).sum() + config.reg_alpha * (weight * norm(turn)).sum()
        data = (self.m * norm((d - self.d).square())).sum()
        return data + config.reg_lambda * regulariser

    def step(self) -> None:
        """Take one step of ADAM."""
        self.optimiser.zero_grad()
        self.energy().backward()
        self.optimiser.step()


def norm(square: torch.Tensor) -> torch.Tensor:
    """Return the smoothed norm of which the square is given."""
    return torch.sqrt(square + SMOOTHING ** 2) - SMOOTHING
