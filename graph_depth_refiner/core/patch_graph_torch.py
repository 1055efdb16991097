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
The patch-similarity graph on any torch device, one offset at a time.

A patch that reaches over the border sees the image with its edge pixels replicated; an
edge that leaves the image has weight 0. Of equal weights the earlier offset is kept.
"""

from __future__ import annotations

import torch
from torch.nn.functional import max_pool1d, pad

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.neighbours_torch import inside
from graph_depth_refiner.core.patch_graph import (
    BAND,
    FAINT,
    offsets,
    REBUILD_SHARE,
    TILE,
    window_of,
)

_LARGE = 1e30


def build_graph(guide: torch.Tensor, config: RefinerConfig, out=None, rows=None) -> torch.Tensor:
    """Weigh the edges of the guide, H W or C H W; `rows` rewrites only those of `out`."""
    t = exponents(guide if guide.ndim == 3 else guide[None], config)  # O H W
    if 0 < config.graph.neighbours < len(t):
        t = keep_smallest(t, config.graph.neighbours)
    if config.graph.normalise:
        t = t - t.amin(dim=0).clamp(max=_LARGE)  # so that no sum of weights vanishes
    w = torch.where(t < FAINT, torch.exp(-t), 0)  # O H W
    if config.graph.normalise:
        w = normalise(w)
    if out is None:
        return w
    top, end = rows or (0, w.shape[1])
    out[:, top:end] = w[:, top:end]
    return out


def exponents(guide: torch.Tensor, config: RefinerConfig) -> torch.Tensor:
    """Return t of the weights exp(-t), infinite where an edge leaves the image."""
    height, width = guide.shape[1:]
    r, q = config.graph.window // 2, config.graph.patch // 2
    p = r + q
    padded = pad(guide[None], (p, p, p, p), mode='replicate')[0]  # C H+2p W+2p
    per_difference = 0.5 / config.graph.sigma_intensity ** 2
    per_distance = 0.5 / config.graph.sigma_space ** 2
    steps = offsets(config.graph.window)
    t = guide.new_full((len(steps), height, width), torch.inf)  # O H W
    here = padded[:, r:r + height + 2 * q, r:r + width + 2 * q]
    for o in range(len(steps) // 2, len(steps)):  # the others are their mirrors
        dy, dx = steps[o]
        there = padded[:, r + dy:r + dy + height + 2 * q, r + dx:r + dx + width + 2 * q]
        squares = (here - there).square()  # C H+2q W+2q
        for channel in squares[1:]:
            squares[0] += channel
        distance = box(box(squares[0], config.graph.patch, 1), config.graph.patch, 0)  # H W
        edge = distance * per_difference + (dy * dy + dx * dx) * per_distance
        mine = inside(edge, dy, dx)
        inside(t[o], dy, dx).copy_(mine)
        inside(t[-1 - o], -dy, -dx).copy_(mine)
    return t


def box(values: torch.Tensor, length: int, dim: int) -> torch.Tensor:
    """Sum runs of an odd length by doubling: nothing is subtracted, so nothing is lost."""
    size = values.shape[dim] - length + 1
    total = values.narrow(dim, 0, size)
    run, done = 1, 1
    while 2 * run <= length:
        values = values.narrow(dim, 0, values.shape[dim] - run) + values.narrow(
            dim, run, values.shape[dim] - run)
        run *= 2
        if length & run:
            total = total + values.narrow(dim, done, size)
            done += run
    return total


def keep_smallest(t: torch.Tensor, count: int) -> torch.Tensor:
    """Make all but the smallest exponents of every pixel infinite."""
    order = torch.sort(t, dim=0, stable=True).indices
    kept = torch.zeros_like(t, dtype=torch.bool).scatter_(0, order[:count], True)
    return torch.where(kept, t, torch.inf)


def transpose(w: torch.Tensor) -> torch.Tensor:
    """Return the weight of every edge's way back, w_ji in the place of w_ij."""
    back = torch.zeros_like(w)
    for o, (dy, dx) in enumerate(offsets(window_of(len(w)))):
        inside(back[o], dy, dx).copy_(inside(w[-1 - o], -dy, -dx))
    return back


def symmetrise(w: torch.Tensor) -> None:
    """Give both directions of every edge the smaller of their weights, in place."""
    torch.minimum(w, transpose(w), out=w)


def normalise(w: torch.Tensor) -> torch.Tensor:
    """Scale the weights of every pixel to sum 1 in place, unless there are none."""
    total = w.sum(dim=0)  # H W
    return w.mul_(torch.where(total > 0, 1 / total, 0))


def band_changes(before: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
    """Return the largest mean difference of any tile of each band of rows of two guides."""
    height, width = now.shape[-2:]
    tiles = max(1, width // TILE)
    edges = [tile * width // tiles for tile in range(tiles + 1)]
    bands = -(-height // BAND)
    difference = (before - now).abs().reshape(-1, height, width)
    columns = torch.stack(
        [difference[..., a:b].sum(dim=-1) for a, b in zip(edges, edges[1:])])  # T C H
    sums = pad(columns, (0, bands * BAND - height)).unflatten(-1, (bands, BAND)).sum(dim=-1)
    rows = (height - BAND * torch.arange(bands, device=now.device)).clamp(max=BAND)
    ends = torch.arange(tiles + 1, device=now.device).mul(width).div(tiles, rounding_mode='floor')
    return (sums / (ends.diff()[:, None, None] * rows)).amax(dim=(0, 1))  # bands


def renew_graph(before: torch.Tensor, weights: torch.Tensor, guide: torch.Tensor,
                config: RefinerConfig, build=build_graph, changes=band_changes
                ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """
    Return the guide that a graph is now of, its weights, and the share of it that was kept.

    All of it is built, as asking what has changed would wait; rows that have not keep theirs.
    """
    height = guide.shape[-2]
    changed = changes(before, guide) > config.graph.tolerance  # bands
    changed = changed | (changed.to(guide.dtype).mean() > REBUILD_SHARE)
    rows = changed.repeat_interleave(BAND)[:height]  # H
    mixed = torch.where(rows[:, None], guide, before)
    halo = config.graph.window // 2 + config.graph.patch // 2
    stale = max_pool1d(rows.to(guide.dtype)[None], 2 * halo + 1, 1, halo)[0]  # H
    weights = torch.where(stale[:, None] > 0, build(mixed, config), weights)
    return mixed, weights, 1 - stale.mean()
