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
"""Merging of blocks of pixels: the reference, on any torch device."""

from __future__ import annotations

import torch


def merge_blocks(d: torch.Tensor, m: torch.Tensor, close: float
                 ) -> tuple[torch.Tensor, torch.Tensor]:
    """Average the largest group of pixels of every 2x2 block that are close together."""
    height, width = (side // 2 for side in d.shape)

    def blocks(a: torch.Tensor) -> torch.Tensor:
        a = a[:2 * height, :2 * width]
        return torch.stack((a[0::2, 0::2], a[0::2, 1::2], a[1::2, 0::2], a[1::2, 1::2]))
    d, m = blocks(d), blocks(m)  # 4 h w
    near = (d[:, None] - d[None]).abs() <= close  # 4 4 h w
    support = (near * m).sum(dim=1) * (m > 0)  # 4 h w
    best = support.argmax(dim=0)[None, None].expand(1, *d.shape)  # 1 4 h w
    group = near.gather(0, best)[0] * m  # 4 h w
    total = group.sum(dim=0)
    merged = (group * d).sum(dim=0) / torch.where(total > 0, total, 1)
    return torch.where(total > 0, merged, 0), 0.25 * total
