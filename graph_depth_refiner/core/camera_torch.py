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

from collections.abc import Callable

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


def flow(positive_median: Callable[[torch.Tensor], torch.Tensor], known: float,
         motion: torch.Tensor, intrinsics: Intrinsics, d: torch.Tensor) -> torch.Tensor:
    """
    Return by how many pixels a motion, 4 4, moves the image of typical inverse depth d, H W.

    The host has it already (`camera.image_flow`); as a number of the device it need not be
    copied there, and the launches of a frame are the same whatever the motion is.
    """
    height, width = d.shape
    k, kind, device = intrinsics, motion.dtype, motion.device
    # rays times the focal lengths, from the principal point on
    x = torch.linspace(-k.cx, width - 1 - k.cx, 9, dtype=kind, device=device).expand(7, 9)
    y = torch.linspace(
        -k.cy, height - 1 - k.cy, 7, dtype=kind, device=device)[:, None].expand(7, 9)
    a, b, c = (motion[:3, 0] / k.fx, motion[:3, 1] / k.fy,
               torch.addcmul(motion[:3, 2], positive_median(d), motion[:3, 3]))
    moved = a[:, None, None] * x + b[:, None, None] * y + c[:, None, None]  # 3 7 9
    ahead = moved[2].clamp(min=1e-6)
    return torch.hypot(k.fx * moved[0] / ahead - x, k.fy * moved[1] / ahead - y).median()
