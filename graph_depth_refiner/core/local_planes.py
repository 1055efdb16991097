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
Planes by weighted least squares around every pixel: soft at edges, continuous where it bends.

A pixel's plane is fitted to the pixels of a window that lie within a few standard deviations
of its own plane (Tukey's biweight), and again from the plane found: local linear regression
with robust weights (Cleveland 1979), as bilateral filters and moving least squares are. Unlike
a choice between few planes it has no facets on curved things, and a step of several standard
deviations stays a step.
"""

from __future__ import annotations

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.atrous import smooth_planes
from graph_depth_refiner.core.downsampling import Guide, Level
from graph_depth_refiner.core.kernels import Array, Kernels

RADIUS = 3  # pixels, of the windows,
DISC = 13  # square pixels: what is farther, in the corners, hardly counts and is left out
REACH = 3  # pixels to either side that the first slopes are taken over
TURN = 2.0  # standard deviations per pixel by which the slopes of both sides may differ
WIDTH = 6.0  # standard deviations beyond which a pixel is of another surface
SLOPE_WIDTH = 12.0  # the same for the last fit of slopes
RIDGE = 0.05  # pixels^2, keeps slopes finite where few pixels are close
FADE = 0.52  # of the radius: standard deviation of the weight by distance
FILLED_WEIGHT = 0.1  # frames that a filled value counts for


def fit_planes(k: Kernels, d: Array, frames: Array, sigma: Array, slopes: Array | None = None,
               rounds: int = 2) -> Array:
    """
    Return the plane, 3 H W, around every known pixel.

    d and frames, H W: inverse depth and how many frames stand behind it, 0 where unknown;
    sigma, H W: its standard deviation; slopes, 2 H W, to begin with, else they are fitted.
    """
    if slopes is None:
        slopes = k.first_slopes(d, frames, sigma)
    for left in range(rounds, 0, -1):  # half of the pixels will do before the last round
        planes = k.fit_local_planes(d, frames, sigma, slopes, min(left, 2))
        d, slopes = planes[0], planes[1:]
    return planes


def fit_weight(k: Kernels, level: Level) -> Array:
    """Return what the values of a level count for in fits, H W: filled ones a little."""
    if not level.filled:
        return level.frames
    return k.where((level.frames <= 0) & (level.d > 0), 0 * level.d + FILLED_WEIGHT, level.frames)


def finish_planes(k: Kernels, planes: Array, level: Level, guide: Guide, config: RefinerConfig
                  ) -> Array:
    """
    Return planes, 3 H W, with slopes refitted to their own inverse depth, and those of holes.

    A few steps of the solver move values further than slopes; fitted to the values, normals
    are as smooth as those. A hole takes planes along the smoothest path through the image.
    Where wide windows are planar, they have the last word.
    """
    if not config.planes.start:
        return planes
    weight = fit_weight(k, level)
    finished = k.fit_local_planes(
        planes[0], weight, SLOPE_WIDTH / WIDTH * level.sigma, planes[1:], 1)
    finished[0] = k.where(weight > 0, planes[0], finished[0])
    if config.holes.fill != 'none':
        k.geodesic_fill(level.d, weight, guide.color, level.unit, finished)
    return smooth_planes(
        k, finished, weight, level.sigma, level.independent, level.hidden,
        config.planes.passes, guide.scale == 1)
