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
"""Selection among candidate planes: the reference, on any torch device."""

from __future__ import annotations

import torch

from graph_depth_refiner.core import plane_selection as stage
from graph_depth_refiner.core.neighbours_torch import neighbour


def select_planes(d: torch.Tensor, m: torch.Tensor, color: torch.Tensor, start: torch.Tensor,
                  warped: torch.Tensor, frame_count: torch.Tensor, warped_color: torch.Tensor,
                  sigma: float, color_sigma: float, slopes: bool = True) -> torch.Tensor:
    """Return for every pixel the candidate plane, 3 H W, of the least cost."""
    steep = stage.STEEP if slopes else 0.0
    color, warped_color = color.to(d.dtype), warped_color.to(d.dtype)
    planes, is_candidate = _candidates(start, warped, frame_count, sigma, steep)  # N 3 H W, N H W
    is_candidate[1:] &= _ambiguous(start, warped, frame_count, sigma, steep)
    costs = torch.where(is_candidate, 0, torch.inf).to(d.dtype)  # N H W
    for dy, dx in stage.SUPPORT:
        predicted = planes[:, 0] + planes[:, 1] * dx + planes[:, 2] * dy  # N H W
        for values, weights, shown, share in (
                (d, m, color, 1.0), (warped[0], frame_count, warped_color, stage.WARPED_SHARE)):
            similar = _color_weight(color, neighbour(shown, dy, dx), color_sigma,
                                    stage.FAR_FADE * (dx * dx + dy * dy))
            weight = share * similar * neighbour(weights, dy, dx)  # H W
            off = (neighbour(values, dy, dx) - predicted).abs()
            costs += weight * off.clamp(max=stage.CAP * sigma)
    best = costs.argmin(dim=0)[None, None].expand(1, *start.shape)  # 1 3 H W
    return planes.gather(0, best)[0]


def _candidates(start, warped, frame_count, sigma, steep):
    """Return the planes around each pixel and which of them are new; its own comes first."""
    planes, is_candidate = [], []
    for n, (dy, dx) in enumerate(stage.NEAR + stage.FAR):
        in_image = neighbour(torch.ones_like(frame_count), dy, dx) > 0
        fields = [(start, in_image), (warped, neighbour(frame_count, dy, dx) > 0)]
        for field, known in fields[:2 if n < len(stage.NEAR) else 1]:
            plane = _plane_at(field, dy, dx)
            new = known & (plane[0] > 0)
            for other, was_candidate in zip(planes, is_candidate):
                new = new & ~(was_candidate & _same(plane, other, sigma, steep))
            planes.append(plane)
            is_candidate.append(new)
    return torch.stack(planes), torch.stack(is_candidate)


def _plane_at(field, dy, dx):
    """Return the planes, 3 H W, of the neighbours at (dy, dx), as of the pixel itself."""
    d, ux, uy = neighbour(field, dy, dx)
    return torch.stack((d - (ux * dx + uy * dy), ux, uy))


def _ambiguous(start, warped, frame_count, sigma, steep):
    """Return where planes farther off, or the warped one, differ from that of the pixel, H W."""
    differs = (frame_count > 0) & ~_same(start, warped, sigma, steep)
    for dy, dx in stage.FAR:
        in_image = neighbour(torch.ones_like(frame_count), dy, dx) > 0
        differs |= in_image & ~_same(start, _plane_at(start, dy, dx), sigma, steep)
    return differs


def _same(one, other, sigma, steep):
    slope_change = (one[1:] - other[1:]).abs().sum(dim=0) * steep
    return ((one[0] - other[0]).abs() <= stage.DIFFERENT * sigma) & (slope_change <= sigma)


def _color_weight(color, other, color_sigma, far):
    color_distance = (color - other).square().sum(dim=0)  # H W
    faded = color_distance * (0.5 / (255.0 * color_sigma) ** 2) + far
    return (1 - faded / stage.FADED).clamp(min=0) ** 8
