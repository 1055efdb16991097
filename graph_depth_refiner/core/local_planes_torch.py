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
"""Planes by weighted least squares around every pixel: the reference, on any torch device."""

from __future__ import annotations

import math

import torch

from graph_depth_refiner.core import local_planes as stage
from graph_depth_refiner.core.neighbours_torch import neighbour

_NOTHING = 1e-12


def first_slopes(d: torch.Tensor, weight: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
    """Return slopes, 2 H W: of both sides where they agree, else of the flatter side."""
    known = weight > 0  # H W
    slopes = []
    for dy, dx in ((0, 1), (1, 0)):
        before, has_before = _side(d, known, -dy, -dx)
        after, has_after = _side(d, known, dy, dx)
        flatter = torch.where(before.abs() < after.abs(), before, after)
        both = torch.where(
            (before - after).abs() < stage.TURN * sigma, 0.5 * (before + after), flatter)
        # a side without neighbours is 0
        slopes.append(torch.where(has_before & has_after, both, before + after))
    return torch.where(known, torch.stack(slopes), 0)


def _side(d: torch.Tensor, known: torch.Tensor, dy: int, dx: int
          ) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the slope to one side, up to the first unknown pixel, and where there is one."""
    total, squares, open_ = torch.zeros_like(d), torch.zeros_like(d), known
    for step in range(1, stage.REACH + 1):
        open_ = open_ & neighbour(known, step * dy, step * dx)
        total = total + torch.where(open_, step * (neighbour(d, step * dy, step * dx) - d), 0)
        squares = squares + step * step * open_
    found = squares > 0
    return (dy + dx) * total / torch.where(found, squares, 1), found


def fit_local_planes(d: torch.Tensor, weight: torch.Tensor, sigma: torch.Tensor,
                     slopes: torch.Tensor, every: int) -> torch.Tensor:
    """
    Return the plane, 3 H W, fitted around every pixel whose weight is not 0.

    It is fitted to every pixel of the window, or, 2, to those of a colour of a chessboard.
    """
    ux, uy = slopes
    inverse = 1 / (stage.WIDTH * sigma.clamp(min=_NOTHING))
    n, sx, sy, sd, sxx, sxy, syy, sxd, syd = torch.zeros((9, *d.shape), device=d.device)
    steps = range(-stage.RADIUS, stage.RADIUS + 1)
    for dy in steps:
        for dx in steps:
            if dy * dy + dx * dx > stage.DISC or (dy + dx) % every:
                continue
            near = math.exp(-0.5 * (dy * dy + dx * dx) / (stage.FADE * stage.RADIUS) ** 2)
            off = neighbour(d, dy, dx) - d
            error = (off - uy * dy - ux * dx) * inverse
            a = (1 - error.square()).clamp(min=0).square() * neighbour(weight, dy, dx) * near
            n, sx, sy, sd = n + a, sx + a * dx, sy + a * dy, sd + a * off
            sxx, sxy, syy = sxx + a * (dx * dx), sxy + a * (dx * dy), syy + a * (dy * dy)
            sxd, syd = sxd + a * off * dx, syd + a * off * dy
    planes = solve_plane(d, (n, sx, sy, sd, sxx, sxy, syy, sxd, syd), stage.RIDGE)
    return torch.where(weight > 0, torch.stack(planes), 0)


def solve_plane(d: torch.Tensor | float, sums: tuple[torch.Tensor, ...], ridge: float,
                slopes: tuple[torch.Tensor | float, torch.Tensor | float] = (0.0, 0.0)
                ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """
    Return value and slopes, H W each, of the planes that fit weighted samples best.

    sums, H W each: of the weights, of x, y, e, xx, xy, yy, xe and ye times these, where x and y
    are from the pixel and the value of a sample is d + e. ridge, in square pixels, pulls the
    slopes towards the given ones (ridge regression, Hoerl and Kennard 1970).
    """
    n, sx, sy, sd, sxx, sxy, syy, sxd, syd = sums
    share = 1 / (n + _NOTHING)
    mx, my, md = sx * share, sy * share, sd * share
    xx, yy = sxx * share - mx * mx + ridge, syy * share - my * my + ridge
    xy = sxy * share - mx * my
    xd = sxd * share - mx * md + ridge * slopes[0]
    yd = syd * share - my * md + ridge * slopes[1]
    scale = 1 / (xx * yy - xy * xy)
    px, py = (xd * yy - yd * xy) * scale, (yd * xx - xd * xy) * scale
    return d + md - px * mx - py * my, px, py
