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
"""Edge-avoiding a-trous smoothing of planes: the reference on any torch device."""

from __future__ import annotations

import math

import torch

from graph_depth_refiner.core import atrous as stage
from graph_depth_refiner.core.local_planes_torch import solve_plane
from graph_depth_refiner.core.neighbours_torch import neighbour
from graph_depth_refiner.core.statistics_torch import masked_quantile

_NOTHING = 1e-12


def atrous_pass(planes: torch.Tensor, weight: torch.Tensor, width: torch.Tensor, spacing: int
                ) -> torch.Tensor:
    """
    Return planes, 3 H W, after one pass with samples so many pixels apart.

    weight, H W, is 0 where a plane stays as it is; width, H W, the inverse depth beyond which
    a pixel is of another surface.
    """
    d, ux, uy = planes
    inverse, ridge = 1 / width.clamp(min=_NOTHING), stage.RIDGE * spacing * spacing
    n, full, sx, sy, sd, sxx, sxy, syy, sxd, syd = torch.zeros((10, *d.shape), device=d.device)
    steps = range(-stage.RADIUS, stage.RADIUS + 1)
    for v in steps:
        for u in steps:
            dy, dx = v * spacing, u * spacing
            there = neighbour(planes, dy, dx)  # 3 H W
            w = neighbour(weight, dy, dx) * math.exp(-0.5 * (v * v + u * u) / stage.FADE ** 2)
            off = there[0] - d
            e = torch.maximum((off - ux * dx - uy * dy).abs(),
                              (off - there[1] * dx - there[2] * dy).abs()) * inverse
            a = (1 - e.square()).clamp(min=0).square() * w
            n, full, sx, sy, sd = n + a, full + w, sx + a * dx, sy + a * dy, sd + a * off
            sxx, sxy, syy = sxx + a * (dx * dx), sxy + a * (dx * dy), syy + a * (dy * dy)
            sxd, syd = sxd + a * off * dx, syd + a * off * dy
    change, px, py = solve_plane(0.0, (n, sx, sy, sd, sxx, sxy, syy, sxd, syd), ridge, (ux, uy))
    counts = torch.where(weight > 0, n / (full + _NOTHING), 0)
    value, slope = _rising(counts, stage.VALUE_SHARE), _rising(counts, stage.SLOPE_SHARE)
    return torch.stack((d + value * change, ux + slope * (px - ux), uy + slope * (py - uy)))


def plane_mismatch(planes: torch.Tensor, weight: torch.Tensor, sigma: torch.Tensor, spacing: int
                   ) -> torch.Tensor:
    """
    Return how the mismatch of planes, 3 H W, changes over the image, in deviations sigma, H W.

    A mismatch is how wrongly two planes one or two spacings apart predict each other. It is
    compared with that aside, where all four have a weight, H W; of samples the lower quartile.
    """
    some = (slice(None, None, stage.APART),) * 2
    here, known = planes[:, some[0], some[1]], weight[some] > 0
    changes, both = [], []
    for dy, dx in ((0, spacing), (spacing, 0), (0, 2 * spacing), (2 * spacing, 0)):
        there = neighbour(planes, dy, dx)[:, some[0], some[1]]
        off = there[0] - here[0]
        wrong = torch.stack([off - one[1] * dx - one[2] * dy for one in (here, there)])
        pair = known & (neighbour(weight, dy, dx)[some] > 0)
        changes.append((wrong - neighbour(wrong, stage.ASIDE, stage.ASIDE)).abs().amax(dim=0))
        both.append(pair & neighbour(pair, stage.ASIDE, stage.ASIDE))
    deviations = 0.5 ** 0.5 * torch.stack(changes) / sigma[some].clamp(min=_NOTHING)
    found = masked_quantile(deviations.flatten(), torch.stack(both).flatten(), 4)
    return torch.where(found < torch.inf, found, 0)


def _rising(share: torch.Tensor, limits: tuple[float, float]) -> torch.Tensor:
    """Return 0 below the first limit, 1 beyond the second, linear between."""
    return ((share - limits[0]) / (limits[1] - limits[0])).clamp(0, 1)
