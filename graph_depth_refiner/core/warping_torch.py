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
"""Forward warping of planes with a z-buffer: the reference, on any torch device."""

from __future__ import annotations

import torch

from graph_depth_refiner.core.camera_torch import pixel_offsets, plane_vectors
from graph_depth_refiner.core.neighbours_torch import neighbour
from graph_depth_refiner.core.warping import CRACK_SHARE, CRACK_STEP, EDGE_ON
from graph_depth_refiner.frame import Intrinsics


def warp(d: torch.Tensor, n: torch.Tensor, color: torch.Tensor, slopes: torch.Tensor,
         motion: torch.Tensor, intrinsics: Intrinsics
         ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """
    Return inverse depth H W, frame count H W and colour C H W as seen after P' = R P + t.

    The slopes, 2 h w, are those of the planes at the same or a lower resolution.
    """
    x = torch.cat((d[None], _spread(slopes, *d.shape)))  # 3 H W
    target, moved = _project(x, n, motion, intrinsics)
    hit = _nearest(target, moved)
    source, value = _without_cracks(hit, moved)
    found = source >= 0
    at = source.clamp(min=0)
    frames = n.flatten()[at] * torch.where(hit >= 0, 1.0, CRACK_SHARE)
    return (torch.where(found, value, 0), torch.where(found, frames, 0),
            torch.where(found, color.flatten(1)[:, at], 0))


def _spread(slopes, height, width):
    """Give every pixel the slopes of its cell, per pixel: 2 H W."""
    rows, columns = slopes.shape[1:]
    scale = height // rows
    row, column = (
        (torch.arange(length, device=slopes.device) // scale).clamp(max=cells - 1)
        for length, cells in ((height, rows), (width, columns)))
    return slopes[:, row[:, None], column] / scale


def _project(x, n, motion, intrinsics):
    """Return the pixel each plane lands on (-1 none) and its inverse depth there, H W each."""
    height, width = n.shape
    k, motion = intrinsics, motion.to(x.dtype)
    rotation, translation = motion[:3, :3], motion[:3, 3, None, None]
    across, down = pixel_offsets(n, intrinsics)
    rays = torch.stack((
        (across / k.fx).expand_as(n), (down / k.fy).expand_as(n), torch.ones_like(n)))  # 3 H W
    # the point in the new camera, times d
    point = torch.einsum('ij,jhw->ihw', rotation, rays) + x[0] * translation
    column = torch.round(k.fx * point[0] / point[2] + k.cx)
    row = torch.round(k.fy * point[1] / point[2] + k.cy)
    q = torch.einsum('ij,jhw->ihw', rotation, plane_vectors(x, intrinsics))
    scale = 1 + (q * translation).sum(dim=0)
    value = (q[0] * (column - k.cx) / k.fx + q[1] * (row - k.cy) / k.fy + q[2]) / scale
    straight = x[0] / point[2]  # inverse depth of the point itself
    # comparisons with NaN are false; seen edge-on, half a pixel aside a plane is elsewhere
    lands = (x[0] > 0) & (n > 0) & (point[2] > 0) & (scale > 0) \
        & (column >= 0) & (column < width) & (row >= 0) & (row < height) \
        & (value >= EDGE_ON * straight) & (EDGE_ON * value <= straight)
    target = torch.where(lands, row * width + column, -1).long()
    return target, torch.where(lands, value, 0)


def _nearest(target, near):
    """Return for every pixel the first of the nearest planes that land on it, -1 if none."""
    size = target.numel()
    place = torch.where(target >= 0, target, size).flatten()  # the last is for all others
    depth = near.new_zeros(size + 1).scatter_reduce_(0, place, near.flatten(), 'amax')
    number = torch.arange(size, device=near.device)
    number = torch.where((near.flatten() == depth[place]) & (near.flatten() > 0), number, size)
    source = torch.full_like(depth, size, dtype=torch.int64).scatter_reduce_(
        0, place, number, 'amin')[:size]
    return torch.where(source < size, source, -1).view_as(target)


def _without_cracks(source, near):
    """Return the plane that every pixel takes (-1 none) and its inverse depth, H W each."""
    value = torch.where(source >= 0, near.flatten()[source.clamp(min=0)], 0)
    down, up, right, left = (
        neighbour(value, dy, dx) for dy, dx in ((1, 0), (-1, 0), (0, 1), (0, -1)))
    crack = (source < 0) & (((left > 0) & (right > 0)) | ((up > 0) & (down > 0)))
    filled, best, opposite = source, torch.zeros_like(near), torch.zeros_like(near)
    for dy, dx, beside, other in ((1, 0, down, up), (-1, 0, up, down), (0, 1, right, left),
                                  (0, -1, left, right)):
        better = crack & (beside > best)
        best, opposite = torch.where(better, beside, best), torch.where(better, other, opposite)
        filled = torch.where(better, neighbour(source + 1, dy, dx) - 1, filled)
    alike = best - opposite <= CRACK_STEP * best
    return filled, torch.where(
        crack, torch.where(alike, 0.5 * (best + opposite), best), value)
