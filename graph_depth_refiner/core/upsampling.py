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
from graph_depth_refiner.core.observation import color_planes, Observation

SIDES = 2  # cells on either side that show what a flying pixel lies between
ONE_SURFACE = 6.0  # standard deviations of a measurement: a narrow hole may span so much
STEP = 0.01  # of the nearest inverse depth around: less is no depth edge, however low the noise
AROUND = 9  # pixels, side of the square that must show one surface, at least
# Pixels beyond what is measured up to which history is kept in wide holes: as far as its rim
# wavers, and on to the others as long as that fills no more than a share of the image. What a
# camera has turned away from is mostly not seen again.
RIMS, FILLED_SHARE = (1, 2, 8, 40), 0.009
GAP_REACH, GAP_KNOWN = 2, 20  # pixels on either side of a gap, how many of the square are known
KEPT = 2.0  # standard deviations of a residual that are taken for noise
NEAR = 1e-3  # weight of a cell at no weight by distance: all others may be of another side
LEAST = 1e-6  # weight of all cells together, below which none of them is of the pixel's side


def upsample(k: Kernels, planes: Array, level: Level, present: Present, obs: Observation,
             guide: Guide, config: RefinerConfig) -> Array:
    """Return the plane, 3 H W, of every pixel of the full image; 0 where nothing is known."""
    if guide.scale > 1:
        planes = k.upsample_planes(*cells_of(k, planes, level, present, obs, guide, config))
    else:
        planes = planes + 0  # a copy in numpy and torch alike
    if config.planes.final_median:
        planes[0] = k.median3(planes[0])
    kept = kept_of(k, level, present, obs, config)
    if kept is not None:
        k.keep_planes(planes, kept)
    return planes


def cells_of(k: Kernels, planes: Array, level: Level, present: Present, obs: Observation,
             guide: Guide, config: RefinerConfig) -> tuple:
    """Return what `upsample_planes` takes."""
    d, frames = present.d, level.frames
    if config.planes.guided:
        image = k.array(color_planes(obs.image))
        d = k.predict_by_color(planes, guide.color, image, d, guide.scale,
                               CLOSE * level.unit, COLOR_SIGMA)
        frames = fit_weight(k, level)
    # nothing known has no deviation of its own, and none at all where all of it is a share
    return planes, frames, d, present.frames, present.noise, level.unit, guide.scale


def kept_of(k: Kernels, level: Level, present: Present, obs: Observation,
            config: RefinerConfig) -> Array | None:
    """Return which pixels, H W bool, may have a value; None: all."""
    if config.holes.fill == 'all':
        return None
    return k.fillable(present.d, obs.d > 0, level.unit, config)


def median3(image: np.ndarray) -> np.ndarray:
    """Return the median, H W, of the 3x3 pixels around every one."""
    return cv2.medianBlur(image, 3)
