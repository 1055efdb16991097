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
"""Predictions at full resolution by colour: the reference, on any torch device."""

from __future__ import annotations

import torch

from graph_depth_refiner.core.guided_upsampling import OWN, SIDE
from graph_depth_refiner.core.inpainting_torch import weighted_median


def predict_by_color(planes: torch.Tensor, color: torch.Tensor, image: torch.Tensor,
                     d: torch.Tensor, scale: int, close: float, sigma: float) -> torch.Tensor:
    """
    Return the inverse depth, H W, that planes 3 h w predict in a `scale` times larger image.

    color, C h w, and image, C H W, are uint8; d, H W, is the measurement, 0 where there is
    none. Cells that predict the same within `close` are one surface: the own cell counts.
    """
    (height, width), (rows, columns) = d.shape, planes.shape[1:]
    y = torch.arange(height, device=d.device)[:, None]
    x = torch.arange(width, device=d.device)
    v, u = (y + 0.5) / scale - 0.5, (x + 0.5) / scale - 0.5
    r, c = (y // scale).clamp(max=rows - 1), (x // scale).clamp(max=columns - 1)
    fade = 0.5 / (len(color) * (255 * sigma) ** 2)
    reach = range(-(SIDE // 2), SIDE // 2 + 1)
    values, weights = [], []
    for row, column in ((r + a, c + b) for a in reach for b in reach):
        there = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)  # H W
        row, column = row.clamp(0, rows - 1), column.clamp(0, columns - 1)
        base, ux, uy = planes[:, row, column]
        values.append(torch.where(there, base + ux * (u - column) + uy * (v - row), torch.nan))
        step = image.float() - color[:, row, column].float()  # C H W
        weights.append(torch.where(there, torch.exp(-step.square().sum(dim=0) * fade), 0))
    cells, alike = torch.stack(values), torch.stack(weights)  # N H W each
    own = cells[len(cells) // 2]
    known = ~cells.isnan()
    low = torch.where(known, cells, torch.inf).amin(dim=0)
    high = torch.where(known, cells, -torch.inf).amax(dim=0)
    mean = alike.sum(dim=0) / known.sum(dim=0)
    chosen = weighted_median(
        torch.cat([cells, d[None]]), torch.cat([alike, (OWN * mean * (d > 0))[None]]))
    return torch.where(high - low <= close, own, chosen)
