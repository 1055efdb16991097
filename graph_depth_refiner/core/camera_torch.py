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
"""The pinhole camera, for tensors."""

from __future__ import annotations

import torch

from graph_depth_refiner.frame import Intrinsics


def pixel_offsets(like: torch.Tensor, intrinsics: Intrinsics
                  ) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the columns, W, and rows, H 1, of an image counted from the principal point."""
    rows, columns = like.shape[-2:]
    x = torch.arange(columns, dtype=like.dtype, device=like.device) - intrinsics.cx
    y = torch.arange(rows, dtype=like.dtype, device=like.device) - intrinsics.cy
    return x, y[:, None]


def plane_vectors(planes: torch.Tensor, intrinsics: Intrinsics) -> torch.Tensor:
    """Return for each pixel the vector q, 3 H W, for which <q, P> = 1 on its plane in space."""
    d, ux, uy = planes  # H W each
    x, y = pixel_offsets(d, intrinsics)
    return torch.stack((intrinsics.fx * ux, intrinsics.fy * uy, d - ux * x - uy * y))
