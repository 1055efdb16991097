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
"""What the confidence images of different cameras mean, and confidence from depth alone."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.core.noise import spread_about_planes
from graph_depth_refiner.messages.kernels import kernels

# a pixel further than this many times the noise from its neighbours is not one of them
CONSISTENT = 4.0
# and further than this share of its inverse depth it lies at, or in, a depth jump
JUMP = 0.03
# confidence of a pixel that is inconsistent, and at a jump, where flying pixels are
GRADES = np.float32(0.1), np.float32(0.3)


@dataclass(frozen=True)
class Meaning:
    """How the values of a confidence image turn into [0, 1]."""

    scale: float  # the value that means 1, or 0 where lower is better
    lower_is_better: bool = False
    threshold: float = 0.0  # confidence below this counts as none


PRESETS = {
    'zed': Meaning(100.0, lower_is_better=True),  # 32FC1, 1 to 100
    'l515': Meaning(15.0, threshold=0.1),  # four bits in mono8
    'tof_amplitude': Meaning(500.0, threshold=0.02),  # counts of the returned light
    'unit': Meaning(1.0),
    'percent': Meaning(100.0),
}


def meaning(config: NodeConfig) -> Meaning | None:
    """Return the preset with the changes of the configuration; None for preset `none`."""
    if config.confidence.preset == 'none':
        return None
    known = PRESETS[config.confidence.preset]
    polarity = config.confidence.polarity
    return Meaning(
        config.confidence.scale or known.scale,
        known.lower_is_better if polarity == 'preset' else polarity == 'lower',
        known.threshold if config.confidence.threshold < 0 else config.confidence.threshold)


def normalised(values: np.ndarray, means: Meaning) -> np.ndarray:
    """Turn the values of a confidence image (H W float32) into [0, 1]; NaN is none."""
    scale = np.float32(means.scale)
    if means.lower_is_better:
        # fmin and fmax prefer a number to NaN, which the first of the two thus replaces
        confidence = np.fmax(np.fmin(values, scale), np.float32(0))
        np.subtract(scale, confidence, out=confidence)
    else:
        confidence = np.fmin(np.fmax(values, np.float32(0)), scale)
    if scale != 1:
        confidence /= scale
    if means.threshold > 0:
        confidence[confidence < means.threshold] = 0
    return confidence


def derived(depth: np.ndarray) -> np.ndarray:
    """
    Derive confidence (H W float32) from the depth: valid, away from jumps, consistent.

    A plane is linear in inverse depth, so that on it the median of 3x3 pixels is the
    middle one and opposite neighbours average to it, however slanted it is.
    """
    d, confidence = np.empty_like(depth), np.empty_like(depth)
    kernels().inverse_depth(depth, d)
    noise = np.float32(CONSISTENT * spread_about_planes(d))
    kernels().judge(d, cv2.medianBlur(d, 3), noise, np.float32(JUMP), GRADES, confidence)
    return confidence


def warm_up() -> None:
    """Load or compile the kernels."""
    derived(np.ones((2, 2), np.float32))
