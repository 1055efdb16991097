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
"""Planes by weighted least squares around every pixel, as Triton kernels: one launch a fit."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from graph_depth_refiner.core import local_planes as stage
from graph_depth_refiner.core.triton_launch import BLOCK, launch, programs

_NOTHING = tl.constexpr(1e-12)
_RADIUS, _REACH = tl.constexpr(stage.RADIUS), tl.constexpr(stage.REACH)
_TURN, _WIDTH, _RIDGE = (
    tl.constexpr(one) for one in (stage.TURN, stage.WIDTH, stage.RIDGE))
_DISC = tl.constexpr(stage.DISC)
_FADE = tl.constexpr(-0.5 / (stage.FADE * stage.RADIUS) ** 2)


def first_slopes(d: torch.Tensor, weight: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
    """Return slopes, 2 H W: of both sides where they agree, else of the flatter side."""
    height, width = d.shape
    slopes = d.new_empty(2, height, width)
    launch(slopes_kernel, (programs(height * width), 2), d.contiguous(), weight.contiguous(),
           sigma.contiguous(), slopes, height, width, block=BLOCK)
    return slopes


def fit_local_planes(d: torch.Tensor, weight: torch.Tensor, sigma: torch.Tensor,
                     slopes: torch.Tensor, every: int) -> torch.Tensor:
    """
    Return the plane, 3 H W, fitted around every pixel whose weight is not 0.

    It is fitted to every pixel of the window, or, 2, to those of a colour of a chessboard.
    """
    height, width = d.shape
    planes = d.new_empty(3, height, width)
    launch(fit_kernel, programs(height * width), d.contiguous(), weight.contiguous(),
           sigma.contiguous(), slopes.contiguous(), planes, height, width, every=every,
           block=BLOCK)
    return planes


@triton.jit(do_not_specialize=['height', 'width'])
def slopes_kernel(data, weight, sigma, slopes, height, width, block: tl.constexpr):
    """Write the slopes along one axis, which is that of the second number of the program."""
    size = height * width
    place = tl.program_id(0) * block + tl.arange(0, block)
    axis = tl.program_id(1)  # 0: along a row
    valid = place < size
    at = tl.where(axis == 0, place % width, place // width)
    last = tl.where(axis == 0, width, height) - 1
    stride = tl.where(axis == 0, 1, width)
    d = tl.load(data + place, mask=valid, other=0.0)
    known = tl.load(weight + place, mask=valid, other=0.0) > 0
    before, has_before = _side(data, weight, place, d, known, at, -stride)
    after, has_after = _side(data, weight, place, d, known, last - at, stride)
    before = -before
    flatter = tl.where(tl.abs(before) < tl.abs(after), before, after)
    turn = tl.load(sigma + place, mask=valid, other=0.0) * _TURN
    both = tl.where(tl.abs(before - after) < turn, 0.5 * (before + after), flatter)
    slope = tl.where(has_before & has_after, both, before + after)  # one without any is 0
    tl.store(slopes + axis * size + place, tl.where(known, slope, 0.0), mask=valid)


@triton.jit
def _side(data, weight, place, d, known, room, stride):
    """Return the slope away from a pixel, up to the first unknown one, and where there is one."""
    total, squares = tl.zeros_like(d), tl.zeros_like(d)
    going = known
    for step in range(1, _REACH + 1):
        inside = going & (step <= room)
        other = place + step * stride
        going = inside & (tl.load(weight + other, mask=inside, other=0.0) > 0)
        off = tl.load(data + other, mask=going, other=0.0) - d
        total += tl.where(going, step * off, 0.0)
        squares += tl.where(going, 1.0 * step * step, 0.0)
    found = squares > 0
    return total / tl.where(found, squares, 1.0), found


@triton.jit(do_not_specialize=['height', 'width'])
def fit_kernel(data, weight, sigma, slopes, planes, height, width, every: tl.constexpr,
               block: tl.constexpr):
    """Write the plane around every pixel, 3 H W."""
    size = height * width
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    y, x = place // width, place % width
    d = tl.load(data + place, mask=valid, other=0.0)
    ux = tl.load(slopes + place, mask=valid, other=0.0)
    uy = tl.load(slopes + size + place, mask=valid, other=0.0)
    spread = tl.maximum(tl.load(sigma + place, mask=valid, other=1.0), _NOTHING)
    inverse = 1.0 / (spread * _WIDTH)
    n, sx, sy, sd = tl.zeros_like(d), tl.zeros_like(d), tl.zeros_like(d), tl.zeros_like(d)
    sxx, sxy, syy = tl.zeros_like(d), tl.zeros_like(d), tl.zeros_like(d)
    sxd, syd = tl.zeros_like(d), tl.zeros_like(d)
    for dy in range(-_RADIUS, _RADIUS + 1):
        for dx in range(-_RADIUS, _RADIUS + 1):
            inside = valid & (y + dy >= 0) & (y + dy < height) & (x + dx >= 0) & (x + dx < width)
            other = place + dy * width + dx
            off = tl.load(data + other, mask=inside, other=0.0) - d
            error = (off - uy * dy - ux * dx) * inverse
            a = tl.maximum(1.0 - error * error, 0.0)
            squared = dy * dy + dx * dx
            counts = (squared <= _DISC) & ((dy + dx + 2 * _RADIUS) % every == 0)
            near = tl.where(counts, tl.exp(1.0 * squared * _FADE), 0.0)
            a = a * a * tl.load(weight + other, mask=inside, other=0.0) * near
            n += a
            sx += a * dx
            sy += a * dy
            sd += a * off
            sxx += a * (dx * dx)
            sxy += a * (dx * dy)
            syy += a * (dy * dy)
            sxd += a * off * dx
            syd += a * off * dy
    value, px, py = solve_plane(d, n, sx, sy, sd, sxx, sxy, syy, sxd, syd, _RIDGE, 0.0, 0.0)
    known = tl.load(weight + place, mask=valid, other=0.0) > 0
    tl.store(planes + place, tl.where(known, value, 0.0), mask=valid)
    tl.store(planes + size + place, tl.where(known, px, 0.0), mask=valid)
    tl.store(planes + 2 * size + place, tl.where(known, py, 0.0), mask=valid)


@triton.jit
def solve_plane(d, n, sx, sy, sd, sxx, sxy, syy, sxd, syd, ridge, ux, uy):
    """Return value and slopes of the plane that fits weighted samples; as in torch."""
    share = 1.0 / (n + _NOTHING)
    mx, my, md = sx * share, sy * share, sd * share
    xx, yy = sxx * share - mx * mx + ridge, syy * share - my * my + ridge
    xy = sxy * share - mx * my
    xd, yd = sxd * share - mx * md + ridge * ux, syd * share - my * md + ridge * uy
    scale = 1.0 / (xx * yy - xy * xy)
    px, py = (xd * yy - yd * xy) * scale, (yd * xx - xd * xy) * scale
    return d + md - px * mx - py * my, px, py
