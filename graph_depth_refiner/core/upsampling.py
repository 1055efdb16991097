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
"""
From planes of the solved resolution to planes of every pixel: a plane is exact at any.

A pixel takes a blend of the planes of the four cells around it, bilinear in distance and
weighted by how well each predicts the pixel's own measurement (joint bilateral upsampling,
Kopf et al. 2007, of planes instead of values): continuous on smooth surfaces, and at an edge
only the planes of the pixel's own side count. What the measurement says beyond its noise is
kept: the residual is shrunk as by a positive-part James-Stein estimator, not dropped.
"""

from __future__ import annotations

import cv2
import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.downsampling import Guide, Level
from graph_depth_refiner.core.guided_upsampling import CLOSE, COLOR_SIGMA
from graph_depth_refiner.core.history import Present
from graph_depth_refiner.core.kernels import Array, Kernels
from graph_depth_refiner.core.local_planes import fit_weight
from graph_depth_refiner.core.noise import fused_sigma
from graph_depth_refiner.core.observation import color_planes, Observation

WIDTH = 5.0  # standard deviations of the pixel's value beyond which a plane is of another side
KEPT = 2.0  # standard deviations of a residual that are taken for noise


def upsample(k: Kernels, planes: Array, level: Level, present: Present, obs: Observation,
             guide: Guide, config: RefinerConfig) -> Array:
    """Return the plane, 3 H W, of every pixel of the full image; 0 where nothing is known."""
    if guide.scale > 1:
        d, frames = present.d, level.frames
        if config.planes.guided:
            image = k.array(color_planes(obs.image))
            d = k.predict_by_color(planes, guide.color, image, d, guide.scale,
                                   CLOSE * level.unit, COLOR_SIGMA)
            frames = fit_weight(k, level)
        sigma = fused_sigma(present.noise, d, present.frames)
        planes = k.upsample_planes(planes, frames, d, sigma, guide.scale)
    if config.planes.final_median:
        planes = planes + 0  # a copy in numpy and torch alike
        planes[0] = k.array(cv2.medianBlur(k.numpy(planes[0]), 3))
    if config.holes.fill == 'all':
        return planes
    return planes * k.array(fillable(k.numpy(present.d) > 0, config))


def fillable(known: np.ndarray, config: RefinerConfig) -> np.ndarray:
    """
    Return which pixels, H W, may have a value: those known, and those of narrow holes.

    A hole is narrow where a square of `holes.max_width` does not fit into it (morphological
    closing): the rim of a wide one is not filled either.
    """
    mask = known.astype(np.float32)
    if config.holes.fill == 'none' or config.holes.max_width < 1:
        return mask
    side = config.holes.max_width + 1
    closed = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, np.ones((side, side), np.uint8),
                              borderType=cv2.BORDER_CONSTANT, borderValue=0)
    return np.maximum(mask, closed)  # at the border nothing is closed, nor lost
