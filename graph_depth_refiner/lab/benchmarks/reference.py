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
The paper's method written the plain way: torch, autograd, lists of neighbours.

It is what the fused kernels are measured against and shares nothing with them. As in the
authors' release every pixel has K neighbours, kept as K lists of indices; the planes are
gathered along the lists, the gradient is autograd's and the step torch.optim.Adam's.
"""

from __future__ import annotations

import torch
from torch.nn.functional import pad, unfold

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.patch_graph import offsets


class Lists:
    """A graph as K lists over all N pixels: neighbour, step to it and weight."""

    def __init__(self, guide: torch.Tensor, config: RefinerConfig) -> None:
        """Compare the patches of all pixels with those around them."""
        height, width = guide.shape
        q = config.graph.patch // 2
        padded = pad(guide[None, None], (q, q, q, q), mode='replicate')
        patches = unfold(padded, config.graph.patch)[0]  # Q*Q N
        y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing='ij')
        weights, neighbours = [], []
        for dy, dx in offsets(config.graph.window):
            there = (y + dy).clamp(0, height - 1) * width + (x + dx).clamp(0, width - 1)
            inside = (y + dy >= 0) & (y + dy < height) & (x + dx >= 0) & (x + dx < width)
            distance = (patches - patches[:, there.view(-1)]).square().sum(dim=0)
            weight = torch.exp(
                -distance / (2 * config.graph.sigma_intensity ** 2)
                - (dy * dy + dx * dx) / (2 * config.graph.sigma_space ** 2))
            weights.append(weight * inside.view(-1))
            neighbours.append(there.view(-1))
        self.weight, self.neighbour = torch.stack(weights), torch.stack(neighbours)  # O N
        if config.graph.neighbours:
            self.weight, kept = self.weight.topk(config.graph.neighbours, dim=0)  # K N
            self.neighbour = self.neighbour.gather(0, kept)
        if config.graph.normalise:
            self.weight = self.weight / self.weight.sum(dim=0).clamp(min=1e-30)
        pixel = torch.arange(height * width)
        self.step = torch.stack((
            self.neighbour % width - pixel % width,
            self.neighbour // width - pixel // width), dim=1).to(guide.dtype)  # K 2 N


class Solver:
    """Minimises the paper's energy with autograd."""

    def __init__(self, lists: Lists, x, d, m, unit: float, config: RefinerConfig) -> None:
        """Begin at the planes x, 3 H W."""
        self.lists, self.config = lists, config
        self.data, self.m = (d / unit).view(-1), m.view(-1)
        planes = (x / unit).view(3, -1)
        self.d, self.u = torch.nn.Parameter(planes[0]), torch.nn.Parameter(planes[1:])
        rate = config.solver.learning_rate
        self.optimiser = torch.optim.Adam([
            {'params': [self.d], 'lr': rate},
            {'params': [self.u], 'lr': rate * config.solver.slope_rate}])

    def energy(self) -> torch.Tensor:
        """Return the energy in noise units, its norms not smoothed."""
        lists, config = self.lists, self.config
        count = len(lists.weight)
        d, u = self.d.expand(count, -1), self.u.expand(count, -1, -1)  # K N, K 2 N
        there = lists.neighbour[:, None].expand(-1, 2, -1)
        rise = d.gather(1, lists.neighbour) - d - (u * lists.step).sum(dim=1)
        turn = u.gather(2, there) - u  # K 2 N
        residual = (lists.weight * rise).norm(dim=0).sum()
        slope = (lists.weight * turn.norm(dim=1)).sum()
        data = (self.m * (self.d - self.data)).abs().sum()
        return data + config.energy.reg_lambda * (residual + config.energy.reg_alpha * slope)

    def step(self) -> None:
        """Take one step of ADAM."""
        self.optimiser.zero_grad()
        self.energy().backward()
        self.optimiser.step()
