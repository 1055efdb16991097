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
Filling of holes in a map in noise units, smoothly or by telling occlusions from other holes.

The smooth fill is pull-push (Gortler et al., The Lumigraph, SIGGRAPH 1996). The other looks
around a hole in eight directions: of a gap that a foreground hides from one camera of a stereo
pair it takes the background, else the weighted median of what is seen.
"""

from __future__ import annotations

import numpy as np

# Left, right, up, down and the diagonals; the opposite of direction k is k ^ 1.
STEPS = np.array(
    [(0, -1), (0, 1), (-1, 0), (1, 0), (-1, -1), (1, 1), (-1, 1), (1, -1)], np.int64)
DIRECTIONS = len(STEPS)
# An occlusion is about as wide as the step in disparity at its foreground.
OCCLUSION_STEP = 1.0  # units
OCCLUSION_GAP = 1.5  # px per unit
OCCLUSION_SLACK = 4.0  # px
# Opposite values that differ by less belong to one surface, and are interpolated. Steps in a
# row are mostly occlusions, steps in a column mostly the ground.
SAME_SURFACE_STEP = 1.0  # units
SAME_SURFACE_SLOPES = np.array([0.1, 0.1, 0.4, 0.4, 0.3, 0.3, 0.3, 0.3], np.float32)  # per px
# Any other value stands for one side of the hole only, and has this share of the weight: at the
# lower end of an image all of the ground that is seen above is farther.
ONE_SIDED = 0.25
# What only one camera sees at the side of the image goes on with the slope of what is beside
# it: of so many pixels in some rows, within some units, with some weight on a slope of 0.
RIM_SPAN = 24  # px
RIM_ROWS = 3  # on either side
RIM_STEP = 2.0  # units
RIM_CAUTION = 0.1 * (2 * RIM_ROWS + 1) * sum(k * k for k in range(1, RIM_SPAN + 1))
# A value counts less with its difference in colour and with its distance.
COLOR_FADE = 0.1  # sum of the differences of the channels, in [0, 1] each
DISTANCE_FADE = 60.0  # px
NEGLIGIBLE = 1e-12
# Share of the weight by which a weighted median is reached: half but for rounding, so that of
# values with equal weights it is the same one wherever it is computed.
HALF = 0.5 - 1e-5
# Where mean and median of what is seen around are far apart it is undecided: nearer to the mean
# the error is smaller than with the wrong choice.
UNDECIDED = 6.0  # units
TOWARDS_MEAN = 0.7


def fill_smoothly(z: np.ndarray, reliable: np.ndarray) -> np.ndarray:
    """Fill holes by averages over ever larger blocks, interpolated; reliable pixels stay."""
    weight = reliable.astype(np.float32)
    return np.where(reliable, z, _pull_push(np.where(reliable, z, 0).astype(np.float32), weight))


def _pull_push(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return weighted values with the gaps filled from half the resolution."""
    mean = np.divide(values, weight, out=np.zeros_like(values), where=weight > 0)
    if weight.all() or max(weight.shape) == 1:
        return mean
    # a block full of measurements must not outweigh one with a few
    below = _pull_push(*(_halved(part) for part in (mean * (weight > 0), (weight > 0) * 1.0)))
    return np.where(weight > 0, mean, _doubled(below, mean.shape)).astype(np.float32)


def _halved(values: np.ndarray) -> np.ndarray:
    rows, columns = (side % 2 for side in values.shape)
    even = np.pad(values, ((0, rows), (0, columns)))
    return (even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]).astype(
        np.float32)


def _doubled(values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Interpolate linearly: repeating and smoothing by 1 2 1 is the same at this ratio."""
    for axis in (0, 1):
        values = np.repeat(values, 2, axis)
        wide = np.pad(values, [(1, 1) if axis == k else (0, 0) for k in (0, 1)], 'edge')
        before, after = (wide[:-2], wide[2:]) if axis == 0 else (wide[:, :-2], wide[:, 2:])
        values = (before + 2 * values + after) / 4
    return values[:shape[0], :shape[1]]
