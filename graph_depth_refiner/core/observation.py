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
"""From a frame to what the solver works on: inverse depth, its weight and its noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.frame import Frame, Intrinsics

SAMPLES = 5000  # pixels for a median over the image
WINDOW, WINDOWS = 5, 400  # side of the windows that show the noise, and how many
# the two slopes of a plane over such a window, of length one: n*n 2
SLOPES = np.stack([a.ravel() / np.linalg.norm(a) for a in np.meshgrid(
    *2 * [np.arange(WINDOW) - WINDOW // 2])], axis=-1)
# noise below this share of the inverse depth is not told apart from none
LEAST_NOISE = 1e-4
# nor is there a disparity of less than this or more than its inverse, in pixels
LEAST_DISPARITY = 1e-5


@dataclass(frozen=True, eq=False)
class Measured:
    """The measurement of one frame in the units of the solver."""

    guide: np.ndarray  # H W or 3 H W float32 in [0, 1]
    d: np.ndarray  # H W float32 inverse depth, 0 where invalid
    m: np.ndarray  # H W float32 weight in [0, 1], 0 where invalid
    unit: float  # inverse depth that counts as one step of the sensor
    intrinsics: Intrinsics


def measure(frame: Frame, config: RefinerConfig) -> Measured:
    """Turn a frame into inverse depth with weights; nothing is smoothed or filled here."""
    depth = frame.depth.astype(np.float32, copy=False)
    # comparisons with NaN are false: NaN, inf, 0 and negative depth all end here
    valid = (depth >= config.depth.min) & (depth <= config.depth.max)
    d = np.zeros(depth.shape, np.float32)
    np.divide(np.float32(1), depth, out=d, where=valid)
    m = valid.astype(np.float32)
    if frame.confidence is not None:
        m *= frame.confidence
    unit = sensor_unit(d, frame.intrinsics)
    return Measured(guide_image(frame.image, config.graph.color), d, m, unit, frame.intrinsics)


def sensor_unit(d: np.ndarray, intrinsics: Intrinsics) -> float:
    """Return one pixel of disparity where the baseline is known, else the noise itself."""
    if intrinsics.baseline > 0:
        unit = 1.0 / (intrinsics.fx * intrinsics.baseline)
        # a baseline that is out of all proportion must not count
        typical = positive_median(d) or 1.0
        return min(max(unit, LEAST_DISPARITY * typical), typical / LEAST_DISPARITY)
    return noise(d)


def noise(d: np.ndarray) -> float:
    """
    Return the standard deviation of the noise of inverse depth, robustly.

    It is what a plane leaves over in small windows, the median of many: wide enough to see
    the steps of a sensor that rounds, and few enough windows to cost next to nothing.
    """
    least = LEAST_NOISE * (positive_median(d) or 1.0)
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


def guide_image(image: np.ndarray, color: bool) -> np.ndarray:
    """Return the image as float32 in [0, 1], grey or 3 H W."""
    top = np.iinfo(image.dtype).max if image.dtype.kind == 'u' else 1.0
    if image.ndim == 3 and not color:
        image = cv2.cvtColor(image if image.dtype != np.float64 else image.astype(np.float32),
                             cv2.COLOR_RGB2GRAY)
    guide = np.multiply(image, np.float32(1 / top), dtype=np.float32)
    if image.dtype.kind == 'f':
        guide = np.clip(np.nan_to_num(guide), 0, 1)
    if color and guide.ndim == 2:
        guide = np.stack([guide] * 3, axis=-1)
    return np.ascontiguousarray(np.moveaxis(guide, -1, 0)) if color else guide


def subsample(image: Any) -> Any:
    """Return every n-th pixel of every n-th row of H W, enough for a median."""
    step = max(1, int((image.shape[0] * image.shape[1] / SAMPLES) ** 0.5))
    return image[::step, ::step]


def upper_median(values: np.ndarray) -> float:
    """Return the median of N values, the upper one where two are in the middle."""
    half = len(values) // 2
    return float(np.partition(values, half)[half])


def positive_median(image: np.ndarray) -> float:
    """Return the median of those of some pixels, H W, that are above 0; 0 if none is."""
    for some in (subsample(image), image):
        known = some[some > 0]
        if known.size:
            return upper_median(known)
    return 0.0
