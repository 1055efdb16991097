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
What the error of a depth sensor is: a standard deviation for every depth, learned over frames.

Triangulation (structured light, stereo) errs by a constant part of a pixel of disparity, that
is by a constant inverse depth; time of flight errs by a share of the depth. Their sum,

  sigma(d) = floor + share d        of inverse depth d = 1 / z, or of depth  floor z^2 + share z,

is the form that the KinectFusion literature and the data sheets of both kinds use (Nguyen,
Izadi & Lovell 2012 for the first Kinect, Keselman et al. 2017 for the D400, Fankhauser et al.
2015 for time of flight). Neighbouring pixels do not show it: the errors of matchers and of
projected patterns are alike over ten to twenty pixels, so that the difference of neighbours is
a third or a quarter of the difference of two frames. It is therefore learned from residuals
along the motion of the camera; before there are any, from a model of the kind of sensor or
from what a plane leaves over in small windows, and never to be less than that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from graph_depth_refiner.core.kernels import Array, Number
from graph_depth_refiner.core.statistics import positive_median, upper_median
from graph_depth_refiner.frame import Intrinsics

# of inverse depth, residuals and frames: see `binned`
Bins = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[float, np.ndarray, np.ndarray]]

# Times the spread about planes in small windows: what the correlated part of the noise hides
# from them; measured .34 against .09 % on a D400 at rest, 1 to 2 on other sensors.
HIDDEN = 3.0
# Noise below this share of the inverse depth is not told apart from none.
LEAST = 1e-4
# Share of the variance that is the same in all frames: fixed ripples, rounding, calibration.
COMMON = 0.1
# Share of pixels that are the same as before, to within rounding, in a frame that is sent twice.
REPEATED, SAME = 0.9, 1e-6
BINS = 8  # of equally many samples, by depth
LEAST_SAMPLES = 50  # of a bin, for its median to count
MEMORY = 0.9  # share of what was learned that a frame leaves
# Pixels that teach the noise, about: with fewer a single one tells in its medians.
SAMPLES = 19200
NORMAL = 1.4826  # standard deviation of a normal distribution over its median absolute value
SUBPIXEL = 0.08  # pixels, error of disparity of an active-stereo camera on a matte wall
SUBPIXEL_PASSIVE = 0.5  # pixels, of block and semi-global matching
BASELINE = 0.05  # metres, of an active-stereo camera that does not say
STRUCTURED_LIGHT = 1.425e-3  # 1/m, Khoshelham & Elberink 2012
TIME_OF_FLIGHT = 2e-3  # share of the depth

WINDOW, WINDOWS = 5, 400  # side of the windows that show the independent noise, how many
# the two slopes of a plane over such a window, of length one: n*n 2
SLOPES = np.stack([a.ravel() / np.linalg.norm(a) for a in np.meshgrid(
    *2 * [np.arange(WINDOW) - WINDOW // 2])], axis=-1)


@dataclass(frozen=True)
class NoiseModel:
    """
    The standard deviation of inverse depth, floor + share d, and how it came about.

    On a device its numbers are tensors, so that nobody waits for them.
    """

    floor: Number  # 1/m
    share: Number
    independent: Number  # 1/m, the part that differs from pixel to pixel
    # what was learned: normal equations of both parameters, in units of the typical depth
    matrix: tuple[Number, ...] = (0.0, 0.0, 0.0)
    vector: tuple[Number, ...] = (0.0, 0.0)
    frames: Number = 0.0  # residuals of so many frames stand behind it
    fixed: bool = False  # matchers err in patches, not by a variance: nothing is learned

    @property
    def is_guess(self) -> bool:
        """Tell whether no frame stands behind it; a count that a device keeps is above 0."""
        return isinstance(self.frames, float) and self.frames == 0

    @property
    def hidden(self) -> float:
        """Return how many times larger the noise may be than frames told of it."""
        return 1.0 if self.fixed else HIDDEN

    def sigma(self, d: float) -> float:
        """Return the standard deviation at an inverse depth."""
        return self.floor + self.share * d


def fused_sigma(noise: NoiseModel, d: Array, frames: Array) -> Array:
    """Return the deviation of means d of so many frames; a part is never averaged away."""
    return (noise.share * d + noise.floor) * (COMMON + (1 - COMMON) / frames.clip(1)) ** 0.5


def fused_unit(noise: NoiseModel, d: float, frames: float) -> float:
    """Return the same of single numbers."""
    return float(fused_sigma(noise, np.float32(d), np.float32(frames)))


def first_model(sensor: str, d: np.ndarray, intrinsics: Intrinsics) -> NoiseModel:
    """Return the model of a kind of sensor; `auto` looks at the inverse depth d, H W, itself."""
    independent, typical = spread_about_planes(d), positive_median(d) or 1.0
    floor, share, fixed = 0.0, 0.0, False
    if sensor == 'stereo' or intrinsics.baseline > 0:
        floor = SUBPIXEL_PASSIVE / (intrinsics.fx * (intrinsics.baseline or BASELINE))
        # a baseline that is out of all proportion must not count
        floor, fixed = min(max(floor, LEAST * typical), typical), True
    elif sensor == 'active-stereo':
        floor = SUBPIXEL / (intrinsics.fx * BASELINE)
    elif sensor == 'structured-light':
        floor = STRUCTURED_LIGHT
    elif sensor == 'tof':
        share = TIME_OF_FLIGHT
    else:
        share = max(HIDDEN * independent / typical, LEAST)
    return NoiseModel(floor, share, independent, fixed=fixed)


def learn(model: NoiseModel, d: np.ndarray, residual: np.ndarray, frames: np.ndarray,
          bins: Bins | None = None) -> NoiseModel:
    """
    Return the model after one more frame.

    The residuals, N, are of measured inverse depth d, N, against a mean of so many earlier
    `frames`, N, each with an error of its own. Depth is cut into bins of equally many
    samples; a line through their median absolute residuals is the model.
    """
    if len(d) < BINS * LEAST_SAMPLES:
        return model
    typical, means, spreads = (bins or binned)(d, residual, frames)
    x = means / typical
    # no less than a single frame shows: the median residual of a camera at rest is 0 where most
    # pixels stay on a step of a sensor that rounds
    y = np.maximum(NORMAL * spreads / typical, max(LEAST, model.independent / typical) * x)
    weight = 1 / y ** 2  # errors are shares of what is measured
    new = np.array([weight.sum(), (weight * x).sum(), (weight * x * x).sum(),
                    (weight * y).sum(), (weight * x * y).sum()])
    # what was learned is in units of its own typical depth, which changes little
    old = MEMORY * np.array([*model.matrix, *model.vector])
    a, b, c, p, q = (old + new).tolist()
    floor, share = _line(a, b, c, p, q)
    return NoiseModel(floor * typical, share, model.independent, (a, b, c), (p, q),
                      MEMORY * model.frames + 1)


def binned(d: np.ndarray, residual: np.ndarray, frames: np.ndarray
           ) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the typical inverse depth of N samples, and mean and median residual of each bin."""
    frames = np.maximum(frames, 1)
    # the mean of all frames, unlike d and the history, tells nothing of the residual
    mean = d - residual * frames / (1 + frames)
    spread = np.abs(residual) / np.sqrt(1 + 1 / frames)
    parts = np.array_split(np.argsort(mean, kind='stable'), BINS)
    return (upper_median(d), np.array([float(mean[part].mean()) for part in parts]),
            np.array([upper_median(spread[part]) for part in parts]))


def _line(a: float, b: float, c: float, p: float, q: float) -> tuple[float, float]:
    """Solve [a b; b c] (floor, share) = (p, q) with both at least 0."""
    determinant = a * c - b * b
    if determinant > 1e-9 * a * c:
        floor, share = (p * c - q * b) / determinant, (q * a - p * b) / determinant
        if floor >= 0 and share >= 0:
            return floor, share
    # one of the two alone: the better one explains more
    return (0.0, q / c) if q * q / c > p * p / a else (p / a, 0.0)


def spread_about_planes(d: np.ndarray) -> float:
    """
    Return the standard deviation of the independent noise of inverse depth, H W, robustly.

    It is what a plane leaves over in small windows, the median of many: wide enough to see
    the steps of a sensor that rounds, and few enough windows to cost next to nothing.
    """
    least = LEAST * (positive_median(d) or 1.0)
    if min(d.shape) < WINDOW:
        return least
    stride = max(1, round((d.size / WINDOWS) ** 0.5))
    windows = np.lib.stride_tricks.sliding_window_view(d, (WINDOW, WINDOW))
    windows = windows[::stride, ::stride].reshape(-1, WINDOW * WINDOW)  # N n*n
    windows = windows[(windows > 0).all(axis=1)].astype(np.float64)
    if not len(windows):
        return least
    return max(upper_median(_plane_residual(windows)) ** 0.5, least)


def _plane_residual(windows: np.ndarray) -> np.ndarray:
    """Return the variance about the least-squares plane of each window, N n*n."""
    values = windows - windows.mean(axis=1, keepdims=True)
    left = np.square(values).sum(axis=1) - np.square(values @ SLOPES).sum(axis=1)
    return np.maximum(left, 0) / (windows.shape[1] - 3)
