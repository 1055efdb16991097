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
"""Medians over an image, from as many pixels as they need."""

from __future__ import annotations

from typing import Any

import numpy as np

SAMPLES = 5000  # pixels for a median over the image


def subsample(image: Any, samples: int = SAMPLES) -> Any:
    """Return every n-th pixel of every n-th row of H W, enough for a median."""
    step = stride_for(image.shape, samples)
    return image[::step, ::step]


def stride_for(shape: tuple[int, ...], samples: int = SAMPLES) -> int:
    """Return how far apart pixels of H W are of which there are so many, about, or more."""
    return max(1, int((shape[0] * shape[1] / samples) ** 0.5))


def upper_median(values: np.ndarray) -> float:
    """Return the median of N values, the upper one where two are in the middle."""
    half = len(values) // 2
    return float(np.partition(values, half)[half])


def known_median(image: np.ndarray, known: np.ndarray) -> float:
    """Return the median of some of the known pixels, H W; 0 if none is."""
    values = subsample(image)[subsample(known)]
    return upper_median(values) if values.size else 0.0


def positive_median(image: np.ndarray, otherwise: float = 0.0) -> float:
    """Return the median of those of some pixels, H W, that are above 0, if any is."""
    for some in (subsample(image), image):
        known = some[some > 0]
        if known.size:
            return upper_median(known)
    return otherwise
