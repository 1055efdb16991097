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

_REACH = range(-(SIDE // 2), SIDE // 2 + 1)
_AROUND = [(a, b) for a in _REACH for b in _REACH]


def predict_by_color(planes: torch.Tensor, color: torch.Tensor, image: torch.Tensor,
                     d: torch.Tensor, scale: int, close: float, sigma: float) -> torch.Tensor:
    """
    Return the inverse depth, H W, that planes 3 h w predict in a `scale` times larger image.

    color, C h w, and image, C H W, are uint8; d, H W, is the measurement, 0 where there is
    none. Where the cells around one predict the same at its centre within `close`, they are
    one surface, and the cell counts alone.
    """
    (height, width), (rows, columns) = d.shape, planes.shape[1:]
    y = torch.arange(height, device=d.device)[:, None]
    x = torch.arange(width, device=d.device)
    v, u = (y + 0.5) / scale - 0.5, (x + 0.5) / scale - 0.5
    r, c = (y // scale).clamp(max=rows - 1), (x // scale).clamp(max=columns - 1)
    cells = [_cell(planes, r + a, c + b, v, u) for a, b in _AROUND]
    known, values = (torch.stack(one) for one in zip(*cells))  # N H W each
    alike = []
    for a, b in _AROUND:
        row, column = (r + a).clamp(0, rows - 1), (c + b).clamp(0, columns - 1)
        step = image.float() - color[:, row, column].float()  # C H W
        alike.append(torch.exp(-step.square().sum(dim=0) / (2 * len(color) * (255 * sigma) ** 2)))
    weights = torch.where(known, torch.stack(alike), 0)
    mean = weights.sum(dim=0) / known.sum(dim=0)
    chosen = weighted_median(
        torch.cat([values, d[None]]), torch.cat([weights, (OWN * mean * (d > 0))[None]]))
    one_surface = _spread(planes)[r, c] <= close
    return torch.where(one_surface, values[len(values) // 2], chosen)


def _spread(planes: torch.Tensor) -> torch.Tensor:
    """Return how far predictions of the cells around one are apart at its centre, h w."""
    v = torch.arange(planes.shape[1], device=planes.device)[:, None]
    u = torch.arange(planes.shape[2], device=planes.device)
    cells = [_cell(planes, v + a, u + b, v, u) for a, b in _AROUND]
    known, values = (torch.stack(one) for one in zip(*cells))
    return (torch.where(known, values, -torch.inf).amax(dim=0)
            - torch.where(known, values, torch.inf).amin(dim=0))


def _cell(planes: torch.Tensor, row: torch.Tensor, column: torch.Tensor, v: torch.Tensor,
          u: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return whether there is such a cell, and what it predicts at row v and column u of cells."""
    rows, columns = planes.shape[1:]
    there = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    row, column = row.clamp(0, rows - 1), column.clamp(0, columns - 1)
    base, ux, uy = planes[:, row, column]
    return there, base + ux * (u - column) + uy * (v - row)
