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
"""Solve at a fraction of the resolution: a plane is exact at any."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.kernels import Array, Kernels, Number
from graph_depth_refiner.core.noise import NoiseModel
from graph_depth_refiner.core.observation import color_planes, guide_image, Observation
from graph_depth_refiner.frame import Intrinsics

SUPPORT = 3.0  # standard deviations: pixels of a block this close to each other are one surface
BIG = 400 * 300  # pixels; larger images are solved at half their size
SMALLEST = 16  # pixels that the shorter side of the solved image has at least


@dataclass(frozen=True, eq=False)
class Guide:
    """The image at the resolution that is solved at."""

    guide: Array  # H W float32 in [0, 1], or 3 H W: what the graph compares
    grey: Array  # H W float32 in [0, 1]
    color: Array  # C H W uint8
    intrinsics: Intrinsics
    scale: int  # pixels per side of a solved pixel


@dataclass(frozen=True, eq=False)
class Level:
    """What is known of the depth at the resolution that is solved at."""

    d: Array  # H W inverse depth, 0 where unknown
    frames: Array  # H W, frames that stand behind it, 0 where unknown
    sigma: Array  # H W, standard deviation of d
    unit: Number  # standard deviation of a single measurement at the typical depth
    fused_unit: Number  # the same after fusion
    independent: Number = 1.0  # share of the variance that differs from pixel to pixel
    hidden: Number = 1.0  # times that noise may be larger which frames do not tell
    filled: bool = False  # there may be values with no frame behind them


def scale_of(wanted: int, shape: tuple[int, int]) -> int:
    """Return how many pixels a solved pixel has on a side; 0 chooses by size."""
    if wanted == 0:
        wanted = 1 if shape[0] * shape[1] <= BIG else 2 if shape[0] * shape[1] <= 4 * BIG else 4
    while wanted > 1 and min(shape) // wanted < SMALLEST:
        wanted //= 2
    return wanted


def downsample_image(k: Kernels, obs: Observation, config: RefinerConfig) -> Guide:
    """Return the image at the resolution that is solved at, by averages over blocks."""
    scale = scale_of(config.solver.scale, obs.d.shape)
    height, width = (side // scale for side in obs.d.shape)

    def smaller(image: np.ndarray) -> np.ndarray:
        if scale == 1:
            return image
        return cv2.resize(image[:scale * height, :scale * width], (width, height),
                          interpolation=cv2.INTER_AREA)
    image = smaller(obs.image if obs.image.dtype != np.float64 else obs.image.astype(np.float32))
    arrays = [guide_image(image, config.graph.color), color_planes(image)]
    if arrays[0].ndim == 3:
        arrays.append(guide_image(image, False))
    there = k.arrays(*arrays)
    full, inverse = obs.intrinsics, 1 / scale
    middle = (scale - 1) / 2
    camera = Intrinsics(full.fx * inverse, full.fy * inverse, (full.cx - middle) * inverse,
                        (full.cy - middle) * inverse)
    grey = there[-1] if len(there) == 3 else there[0]
    return Guide(there[0], grey, there[1], camera, scale)


def downsample(k: Kernels, d: Array, frames: Array, noise: NoiseModel, scale: int,
               hidden: float = 1.0) -> Level:
    """Return inverse depth and frames, H W each, at 1 / scale of the resolution."""
    typical = k.positive_median(d, 1.0)
    unit = noise.sigma(typical)
    # blocks average it
    independent = k.smaller((noise.independent / (scale * unit)) ** 2, 1.0)
    while scale > 1:
        d, frames = k.merge_blocks(d, frames, SUPPORT * unit)
        scale //= 2
    behind = k.positive_median(frames, 1.0)
    # what will be filled has no deviation of its own, and none at all where all is a share
    return Level(d, frames, k.known_sigma(noise, d, frames, unit), unit,
                 k.fused_unit(noise, typical, behind), independent, hidden)
