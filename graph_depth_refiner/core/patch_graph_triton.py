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
"""The patch-similarity graph as a Triton kernel: one launch."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import patch_graph_torch
from graph_depth_refiner.core.patch_graph import BAND, FAINT, TILE
from graph_depth_refiner.core.triton_launch import BLOCK, launch, programs

_FAINT = tl.constexpr(FAINT)


def build_graph(guide: torch.Tensor, config: RefinerConfig, out=None, rows=None) -> torch.Tensor:
    """Weigh the edges of the guide, H W or C H W; `rows` rewrites only those of `out`."""
    graph = config.graph
    edges = graph.window ** 2 - 1
    if rows is not None or 0 < graph.neighbours < edges:  # no part of a frame in real time
        return patch_graph_torch.build_graph(guide, config, out, rows)
    height, width = guide.shape[-2:]
    out = guide.new_empty(edges, height, width) if out is None else out
    launch(graph_kernel, programs(height * width), guide.contiguous(), out,
           0.5 / graph.sigma_intensity ** 2, 0.5 / graph.sigma_space ** 2, height, width,
           channels=len(guide) if guide.ndim == 3 else 1, reach=graph.window // 2,
           patch=graph.patch // 2, normalise=graph.normalise, block=BLOCK)
    return out


def renew_graph(before: torch.Tensor, weights: torch.Tensor, guide: torch.Tensor,
                config: RefinerConfig) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the guide that a graph is now of, its weights, and the share of it that was kept."""
    return patch_graph_torch.renew_graph(before, weights, guide, config, build_graph, band_changes)


@triton.jit(do_not_specialize=['height', 'width'])
def graph_kernel(guide, out, per_difference, per_distance, height, width, channels: tl.constexpr,
                 reach: tl.constexpr, patch: tl.constexpr, normalise: tl.constexpr,
                 block: tl.constexpr):
    """Write the weights of all edges of every pixel, O H W."""
    size = height * width
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    y, x = place // width, place % width
    side: tl.constexpr = 2 * reach + 1
    least = tl.full([block], 1e30, tl.float32)
    edge = 0
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            if (dy != 0) | (dx != 0):
                distance = _distance(
                    guide, y, x, dy, dx, valid, size, height, width, channels, patch)
                t = distance * per_difference + (dy * dy + dx * dx) * per_distance
                inside = (y + dy >= 0) & (y + dy < height) & (x + dx >= 0) & (x + dx < width)
                t = tl.where(inside, t, float('inf'))
                tl.store(out + edge * size + place, t, mask=valid)
                least = tl.minimum(least, t)
                edge += 1
    tl.debug_barrier()
    total = tl.zeros([block], tl.float32)
    for edge in range(side * side - 1):
        t = tl.load(out + edge * size + place, mask=valid, other=0.0)
        if normalise:
            t -= least  # so that no sum of weights vanishes
        weight = tl.where(t < _FAINT, tl.exp(-t), 0.0)
        total += weight
        tl.store(out + edge * size + place, weight, mask=valid)
    if normalise:
        tl.debug_barrier()
        share = tl.where(total > 0, 1.0 / total, 0.0)
        for edge in range(side * side - 1):
            weight = tl.load(out + edge * size + place, mask=valid, other=0.0)
            tl.store(out + edge * size + place, weight * share, mask=valid)


@triton.jit
def _distance(guide, y, x, dy, dx, valid, size, height, width, channels: tl.constexpr,
              patch: tl.constexpr):
    """Return the sum of squared differences of two patches; the image goes on with its edge."""
    distance = tl.zeros_like(y).to(tl.float32)
    for py in range(-patch, patch + 1):
        for px in range(-patch, patch + 1):
            here = _row(y + py, height) * width + _row(x + px, width)
            there = _row(y + dy + py, height) * width + _row(x + dx + px, width)
            for channel in tl.static_range(channels):
                step = (tl.load(guide + channel * size + here, mask=valid, other=0.0)
                        - tl.load(guide + channel * size + there, mask=valid, other=0.0))
                distance += step * step
    return distance


@triton.jit
def _row(place, side):
    """Return the nearest place inside the image."""
    return tl.minimum(tl.maximum(place, 0), side - 1)


def band_changes(before: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
    """Return the largest mean difference of any tile of each band of rows of two guides."""
    height, width = now.shape[-2:]
    bands, tiles = -(-height // BAND), max(1, width // TILE)
    channels = now.numel() // (height * width)
    changes = now.new_empty(bands, channels * tiles)
    launch(changes_kernel, (bands, channels * tiles), before.contiguous(), now.contiguous(),
           changes, height, width, tiles, rows=BAND, room=triton.next_power_of_2(2 * TILE))
    return changes.amax(dim=1)


@triton.jit(do_not_specialize=['height', 'width', 'tiles'])
def changes_kernel(before, now, changes, height, width, tiles, rows: tl.constexpr,
                   room: tl.constexpr):
    """Write the mean difference of one tile of a band."""
    channel, tile = tl.program_id(1) // tiles, tl.program_id(1) % tiles
    first, last = tile * width // tiles, (tile + 1) * width // tiles
    top = tl.program_id(0) * rows
    row = top + tl.arange(0, rows)[:, None]
    column = first + tl.arange(0, room)[None, :]
    inside = (row < height) & (column < last)
    place = channel * height * width + row * width + column
    step = tl.load(before + place, mask=inside, other=0.0) - tl.load(
        now + place, mask=inside, other=0.0)
    total = tl.sum(tl.sum(tl.abs(step), axis=1), axis=0)
    pixels = (last - first) * (tl.minimum(height, top + rows) - top)
    tl.store(changes + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), total / pixels)
