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
"""Merging and enlarging: the reference."""

from __future__ import annotations

import numpy as np


def merge_blocks(d: np.ndarray, m: np.ndarray, close: float) -> tuple[np.ndarray, np.ndarray]:
    """Average the largest group of pixels of every 2x2 block that are close together."""
    height, width = (side // 2 for side in d.shape)

    def blocks(a: np.ndarray) -> np.ndarray:
        a = a[:2 * height, :2 * width]
        return np.stack([a[0::2, 0::2], a[0::2, 1::2], a[1::2, 0::2], a[1::2, 1::2]])
    d, m = blocks(d), blocks(m)  # 4 h w
    near = np.abs(d[:, None] - d[None]) <= np.float32(close)  # 4 4 h w
    support = (near * m[None]).sum(1) * (m > 0)  # 4 h w
    best = support.argmax(0)  # h w
    group = np.take_along_axis(near, best[None, None], 0)[0] * m  # 4 h w
    total = group.sum(0)
    merged = (group * d).sum(0) / np.maximum(total, np.float32(1e-9))
    return (np.where(total > 0, merged, 0).astype(np.float32),
            (total * np.float32(0.25)).astype(np.float32))


def upsample_planes(planes: np.ndarray, shape: tuple[int, int], scale: int) -> np.ndarray:
    """Return planes 3 h w at every pixel of a `scale` times larger image, 3 H W."""
    height, width = shape
    rows = np.minimum(np.arange(height) // scale, planes.shape[1] - 1)
    columns = np.minimum(np.arange(width) // scale, planes.shape[2] - 1)
    large = np.ascontiguousarray(planes[:, rows][:, :, columns])  # 3 H W
    large[1:] /= np.float32(scale)
    centre = 0.5 * (scale - 1)
    y = (np.arange(height) - scale * rows - centre).astype(np.float32)[:, None]
    x = (np.arange(width) - scale * columns - centre).astype(np.float32)
    large[0] += large[1] * x + large[2] * y
    return large
