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
Fuse a frame with the warped history: a running mean along the motion, pixel by pixel.

Per pixel the history is a mean of so many frames (Kalman filter of a constant state, whose
gain is 1 / (1 + frames)). Four things go beyond the running average of KinectFusion (Newcombe
et al. 2011):

- Depth cameras have an error that is smooth over tens of pixels and moves with the camera
  (calibration, temperature, fixed ripples of a matcher), as have poses. It must neither count
  as a change of the scene nor be averaged away against the present frame: the smooth part of
  the residual is taken out of the history first, the more the further the image has moved.
- A history that is misplaced by part of a pixel errs where its slope changes; misplacement
  grows with the motion (rolling shutter, exposure, stamps), and adds to its variance.
- Exposure changes the whole image: what is compared with it is first made as bright as it is.
- A single measurement far from the history, amid neighbours that agree with it, is an outlier
  and costs the history half of its weight; a whole window that disagrees, or another colour,
  is a change, and the history is dropped at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from graph_depth_refiner.core.kernels import Array, Kernels, Number
from graph_depth_refiner.core.noise import NoiseModel
from graph_depth_refiner.core.observation import Observation

BLOCK = 8  # pixels, side of the blocks that residuals are averaged in before smoothing
BIAS_LENGTH = 24.0  # pixels, standard deviation of the smoothing: noise is alike over 10 to 20
BIAS_GATE = 4.5  # standard deviations up to which a residual may be bias
BIAS_FLOW = 2.0  # pixels of motion by which half of the bias has changed
LEAST_SUPPORT = 0.05  # share of measured pixels around, below which no bias is known
MISPLACED = 0.05  # pixels that a history is misplaced by, for every pixel of motion
STEEPEST = 0.05  # share of the inverse depth per pixel: steeper is an edge, not a slope
LEAST_WEIGHT = 0.2  # frames that a history counts for at least in the spread of residuals
GATE = 5.0  # standard deviations up to which a measurement agrees with the history
OUTLIER_SHARE = 0.5  # of the weight that is left to a history after an outlier,
UNSEEN_SHARE = 0.9  # and after a frame without a measurement by a camera at rest:
UNSEEN_FLOW = 40.0  # pixels of motion at which half of that is left, as the view changes
LEAST_FRAMES = 1.0  # a history of less is forgotten
# means over a window: kept fully below the first, not at all beyond the second
REACH, IMAGE_REACH = 2, 1  # pixels on either side: of residuals, and of differences of the image
CLIP = 6.0  # standard deviations that a single residual counts at most
MEAN = (3.0, 4.5)  # standard deviations of the mean of residuals, of itself
MISFIT = (2.2, 3.7)  # the same, of the mean of their absolute values beyond what is expected
EXPECTED = 0.8  # standard deviations: mean absolute value of a normal distribution
IMAGE = (0.06, 0.12)  # of the mean difference of the image in [0, 1]
DARK = 16  # of 255: pixels that were darker tell nothing of the exposure


@dataclass(frozen=True, eq=False)
class Fused:
    """Measurement and history in one, at full resolution."""

    d: Array  # H W inverse depth, 0 where unknown
    frames: Array  # H W, frames that stand behind it, 0 where unknown
    history: Array  # H W, the history freed of bias, 0 where there is none
    kept: Number  # share of the history in sight that is kept


def fuse(k: Kernels, obs: Observation, warped: tuple[Array, Array, Array], noise: NoiseModel,
         flow: Number, limit: float) -> Fused:
    """
    Return the running mean of the measurement and the warped history.

    The history is inverse depth H W, frames H W and grey image 1 H W (uint8), as seen from the
    present camera. `flow` is the motion of the image in pixels.
    """
    past, frames, grey = warped
    bias = k.bias_field(k.bias_sums(obs.d, obs.m, past, frames, noise), flow)
    means = deviation_of_means(k, noise, k.positive_median(obs.d))
    gain = k.exposure_gain(obs.grey, grey[0], frames)
    fused, behind, history, counts = k.fuse(
        obs.d, obs.m, obs.grey, past, frames, grey[0], gain, bias, noise, flow, limit, means)
    seen, kept = counts
    return Fused(fused, behind, history, kept / seen.clip(1))


def bias_field(sums: np.ndarray, flow: float) -> np.ndarray:
    """Return the smooth part of the relative residual, by blocks, from sums and counts."""
    gain = flow / (flow + BIAS_FLOW)
    total, count = (cv2.GaussianBlur(
        one, (0, 0), BIAS_LENGTH / BLOCK, borderType=cv2.BORDER_REPLICATE) for one in sums)
    known = np.clip(count / (LEAST_SUPPORT * BLOCK * BLOCK), 0, 1)
    return (gain * known * total / np.maximum(count, 1e-6)).astype(np.float32)


def unseen_share(flow: Number) -> Number:
    """Return the share of its weight that a history keeps where nothing was measured."""
    return UNSEEN_SHARE / (1 + flow / UNSEEN_FLOW)


def deviation_of_means(k: Kernels, noise: NoiseModel, typical: Number) -> Number:
    """
    Return the standard deviation of a mean over the window, in those of a single residual.

    What is independent averages out over the window, what is alike over many pixels does not.
    """
    independent = k.smaller((noise.independent / noise.sigma(typical)) ** 2, 1.0)
    return (1 - independent + independent / (2 * REACH + 1) ** 2) ** 0.5
