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
The start of a single frame: fill, correct and weigh it before the solver sees it.

All of it is switched by the configuration; with everything off only holes are filled, as the
solver has to begin somewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.inpainting import fill_smoothly
from graph_depth_refiner.core.kernels import Kernels
from graph_depth_refiner.core.observation import guide_image, Measured
from graph_depth_refiner.core.speckles import in_range, patch_areas

# Pixels between voters, units a pixel may differ from them, share that must agree with it.
# From afar only a large majority counts: thin things have few voters of their own.
VOTES = ((48, 10.0, 0.15), (24, 8.0, 0.2), (12, 5.0, 0.2), (6, 3.0, 0.5), (3, 1.0, 0.5))


@dataclass(frozen=True, eq=False)
class Start:
    """What the solver begins with, in arrays of the k."""

    planes: Any  # 3 H W
    d: Any  # H W
    m: Any  # H W
    weights: Any  # O H W


def begin(k: Kernels, measured: Measured, weights: Any, config: RefinerConfig,
          image: np.ndarray) -> Start:
    """Return planes to start from, the data and the graph that suit them."""
    color = guide_image(image, color=True)  # 3 H W
    raw = measured.d * np.float32(1 / measured.unit)  # H W units
    reliable = reliable_pixels(raw, measured.m, config)
    filled = fill(k, raw, reliable, color, config)
    z = k.array(filled)
    if config.cleaning.joint_median:
        color = k.array(color)
        for stride, limit, share in VOTES:
            z = k.joint_weighted_median(z, color, stride, limit, share,
                                        config.cleaning.joint_median_sigma)
    x, weights = init_planes_and_graph(k, z, weights, config)
    x = x * measured.unit
    m = measured.m * reliable * (k.numpy(z) == filled)
    return Start(x, x[0], k.array(m), weights)


def reliable_pixels(z: np.ndarray, m: np.ndarray, config: RefinerConfig) -> np.ndarray:
    """Return which pixels are sure enough to fill others from."""
    reliable = m > config.cleaning.least_confidence
    if config.cleaning.speckle_area > 0:
        areas = patch_areas(z, reliable, config.cleaning.speckle_step)
        reliable = (areas > config.cleaning.speckle_area) & in_range(z, areas)
    return reliable if reliable.any() else m > 0


def fill(k: Kernels, z: np.ndarray, reliable: np.ndarray, color: np.ndarray,
         config: RefinerConfig) -> np.ndarray:
    """Return the map with a value everywhere; sure pixels keep theirs."""
    if config.holes.fill == 'occlusion':
        z = k.numpy(k.fill_occluded(k.array(z), k.array(reliable), k.array(color)))
        reliable = z > 0
    if config.holes.fill == 'background':
        z = k.numpy(k.fill_background(k.array(z), k.array(reliable)))
        reliable = z > 0
    return z if reliable.all() else fill_smoothly(z, reliable)


def init_planes_and_graph(k: Kernels, z: Any, weights: Any, config: RefinerConfig
                          ) -> tuple[Any, Any]:
    """Return the planes of a map in units, and the graph that suits them."""
    x = k.array(np.zeros((3, *z.shape), np.float32))
    x[0] = z
    if config.planes.slopes or config.edges.passes or config.energy.reg_curved:
        x[1:] = k.fit_slopes(z, weights)
    aware = weights
    for _ in range(config.edges.passes):
        aware = k.gate_depth_edges(weights, x, config.edges.sigma)
        x[1:] = k.fit_slopes(z, aware)
    if config.edges.passes and config.graph.normalise:
        k.normalise(aware)
    if config.graph.symmetric:
        aware = weights + 0 if aware is weights else aware  # the caller's graph stays as it is
        k.symmetrise(aware)
    if config.energy.reg_curved:
        aware = k.relax_at_curvature(aware, x, config.energy.reg_curved)
    return x, aware


def median(planes: np.ndarray) -> np.ndarray:
    """Return the planes with the 3x3 median of their inverse depth."""
    planes = planes.copy()
    planes[0] = cv2.medianBlur(planes[0], 3)
    return planes
