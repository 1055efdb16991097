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
"""Solve at a fraction of the resolution and upsample the planes: a plane is exact at any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from graph_depth_refiner.core.kernels import Kernels
from graph_depth_refiner.core.observation import Measured, noise
from graph_depth_refiner.frame import Intrinsics

SUPPORT = 3.0  # in noise units: pixels of a block this close to each other are one surface
BIG = 400 * 300  # pixels; larger images are solved at half their size


@dataclass(frozen=True, eq=False)
class Level:
    """A measurement at the resolution it is solved at, in arrays of the kernels."""

    guide: Any  # H W float32 in [0, 1], or 3 H W
    grey: Any  # H W float32 in [0, 1]
    color: Any  # C H W uint8
    d: Any  # H W
    m: Any  # H W, 1 on average where measured
    sigma: float
    intrinsics: Intrinsics


def scale_of(wanted: int, shape: tuple[int, int]) -> int:
    """Return how many pixels a solved pixel has on a side."""
    if wanted == 0:
        wanted = 1 if shape[0] * shape[1] <= BIG else 2 if shape[0] * shape[1] <= 4 * BIG else 4
    while wanted > 1 and min(shape) // wanted < 16:
        wanted //= 2
    return wanted


def full_level(k: Kernels, measured: Measured, image: np.ndarray) -> Level:
    """Return the measurement as it is."""
    guide = k.array(measured.guide)
    grey = guide if guide.ndim == 2 else k.array(measured.guide.mean(axis=0))
    reliable = measured.m > 0
    typical = float(measured.m.sum()) / max(1, int(np.count_nonzero(reliable)))
    m = measured.m * np.float32(1 / typical) if typical > 0 else measured.m
    # a pixel of disparity is a unit for stereo, but its noise may be much less
    sigma = min(measured.unit, noise(measured.d)) if measured.intrinsics.baseline > 0 \
        else measured.unit
    return Level(guide, grey, k.array(colors(image)), k.array(measured.d), k.array(m), sigma,
                 measured.intrinsics)


def colors(image: np.ndarray) -> np.ndarray:
    """Return the image as C H W uint8, C being 1 or 3."""
    if image.dtype == np.uint16:
        image = (image >> 8).astype(np.uint8)
    elif image.dtype != np.uint8:
        image = (np.clip(np.nan_to_num(image), 0, 1) * 255).astype(np.uint8)
    if image.ndim == 2:
        return np.ascontiguousarray(image[None])
    return np.stack(cv2.split(image))


def half(k: Kernels, level: Level) -> Level:
    """Return the level at half its size; odd last rows and columns are left out."""
    height, width = (side // 2 for side in level.d.shape)
    d, m = k.merge_blocks(level.d, level.m, SUPPORT * level.sigma)
    grey = k.array(_smaller(k.numpy(level.grey), height, width))
    guide = grey if level.guide is level.grey else k.array(np.stack(
        [_smaller(one, height, width) for one in k.numpy(level.guide)]))
    color = np.stack([_smaller(one, height, width) for one in k.numpy(level.color)])
    full = level.intrinsics
    camera = Intrinsics(full.fx / 2, full.fy / 2, (full.cx - 0.5) / 2, (full.cy - 0.5) / 2)
    return Level(guide, grey, k.array(color), d, m, min(noise(k.numpy(d)), level.sigma), camera)


def _smaller(image: np.ndarray, height: int, width: int) -> np.ndarray:
    image = image[:2 * height, :2 * width]
    return cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
