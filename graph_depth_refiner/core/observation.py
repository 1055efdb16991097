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
"""From a frame to what the stages work on: inverse depth, its weight, and the guiding image."""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.kernels import Array, Kernels
from graph_depth_refiner.core.types import HOST
from graph_depth_refiner.frame import Frame, Intrinsics


@dataclass(frozen=True, eq=False)
class Observation:
    """The measurement of one frame at full resolution; arrays of the kernels but the image."""

    d: Array  # H W inverse depth, 0 where invalid
    m: Array  # H W weight, 0 where invalid, 1 on average elsewhere
    confidence: Array  # H W in [0, 1], as it came, 0 where invalid
    grey: Array  # H W uint8
    image: np.ndarray = field(metadata=HOST)  # as it came
    intrinsics: Intrinsics
    stamp: float = field(metadata=HOST)  # seconds
    pose: np.ndarray | None = field(metadata=HOST)  # 4 4, camera to world
    empty: bool = field(metadata=HOST)  # nothing is valid
    host: np.ndarray = field(metadata=HOST)  # H W, d as the host has it
    doubted: bool = True  # a valid pixel has no weight, or may have none

    @property
    def measured(self) -> Array:
        """Return d, H W, 0 where it has no weight."""
        return self.d * (self.m > 0) if self.doubted else self.d


def observe(k: Kernels, frame: Frame, config: RefinerConfig) -> Observation:
    """Turn a frame into inverse depth with weights; nothing is smoothed or filled here."""
    d, m = k.inverse_depth(frame.depth.astype(np.float32, copy=False), config.depth.min,
                           config.depth.max)
    confidence, doubted = m, False
    if frame.confidence is not None:
        confidence, (total, sure, valid) = k.weigh(
            m, frame.confidence.astype(np.float32, copy=False))
        doubted = sure < valid
        m = confidence * np.float32(sure / total) if total > 0 else confidence
    grey = grey_image(frame.image)
    there = k.arrays(d, m, grey, *[] if confidence is m else [confidence])
    return Observation(there[0], there[1], there[1] if confidence is m else there[3], there[2],
                       frame.image, frame.intrinsics, frame.stamp, frame.pose, not m.any(), d,
                       doubted)


def inverse_depth(depth: np.ndarray, least: float, most: float
                  ) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse of depth, H W, 0 where it is not from least to most, and 1 elsewhere."""
    # comparisons with NaN are false: NaN, inf, 0 and negative depth all end here
    valid = (depth >= least) & (depth <= most)
    d = np.zeros(depth.shape, np.float32)
    np.divide(np.float32(1), depth, out=d, where=valid)
    return d, valid.astype(np.float32)


def weigh(m: np.ndarray, confidence: np.ndarray) -> tuple[np.ndarray, tuple[float, int, int]]:
    """
    Return the confidence of valid pixels, H W, where m is 1 and not 0.

    And what it sums up to, of how many pixels it is above 0, and how many are valid.
    """
    weighed = m * confidence
    return weighed, (float(weighed.sum()), int(np.count_nonzero(weighed > 0)),
                     int(np.count_nonzero(m)))


def grey_image(image: np.ndarray) -> np.ndarray:
    """Return the image as H W uint8."""
    image = eight_bit(image)
    return cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) if image.ndim == 3 else image


def eight_bit(image: np.ndarray) -> np.ndarray:
    """Return the image, H W or H W 3, as uint8."""
    if image.dtype == np.uint16:
        return (image >> 8).astype(np.uint8)
    if image.dtype != np.uint8:
        return (np.clip(np.nan_to_num(image), 0, 1) * 255).astype(np.uint8)
    return image


def color_planes(image: np.ndarray) -> np.ndarray:
    """Return the image, H W or H W 3, as C H W uint8."""
    image = eight_bit(image)
    return np.stack(cv2.split(image)) if image.ndim == 3 else image[None]


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
