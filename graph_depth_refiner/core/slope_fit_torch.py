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
"""Slopes of planes over the graph in closed form: the reference, on any torch device."""

from __future__ import annotations

import torch

from graph_depth_refiner.core.neighbours_torch import inside
from graph_depth_refiner.core.patch_graph import offsets, window_of
from graph_depth_refiner.core.slope_fit import LEAST_SPREAD, RIDGE


def fit_slopes(z: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Return the slopes, 2 H W, of the least-squares plane through every pixel of the map."""
    xx, xy, yy, xz, yz = z.new_zeros((5, *z.shape))
    for o, (dy, dx) in enumerate(offsets(window_of(len(w)))):
        weight = inside(w[o], dy, dx)
        step = weight * (inside(z, -dy, -dx) - inside(z, dy, dx))
        for total, part in ((xx, dx * dx * weight), (xy, dx * dy * weight),
                            (yy, dy * dy * weight), (xz, dx * step), (yz, dy * step)):
            inside(total, dy, dx).add_(part)
    spread = xx + yy
    p, q = xx + RIDGE * spread, yy + RIDGE * spread
    slopes = torch.stack([q * xz - xy * yz, p * yz - xy * xz]) / (p * q - xy * xy)
    return torch.where(spread > LEAST_SPREAD, slopes, 0)  # 2 H W
