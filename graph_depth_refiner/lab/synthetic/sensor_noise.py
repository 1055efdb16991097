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
"""What a depth camera makes of a perfect depth map, to measure on rendered views."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np

from graph_depth_refiner.frame import Frame

FLOOR, GROWTH = 0.003, 0.003  # deviation in metres: floor + growth * depth^2
JUMP = 0.05  # relative depth difference at which pixels fly
FLYING = 0.4  # share of the pixels at a jump that mix both sides
BLOBS = 0.03  # share of the pixels lost in drop-outs
BLOB_SIZE = 9  # px
HALF_SURE = 4.0  # metres at which the confidence is a half
FLYING_CONFIDENCE = 0.5
WITHHELD = 0.05  # share of the pixels kept back where there is no ground truth
UNKNOWN = np.float32(np.nan)
_CROSS = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))


def tof(depth: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return depth as a time-of-flight camera measures it (NaN in holes), and confidence."""
    rng = np.random.default_rng(seed)
    near, far = cv2.erode(depth, _CROSS), cv2.dilate(depth, _CROSS)
    flying = (far - near > JUMP * depth) & (rng.random(depth.shape) < FLYING)
    measured = np.where(flying, near + rng.random(depth.shape) * (far - near), depth)
    deviation = FLOOR + GROWTH * depth ** 2
    measured = measured + deviation * rng.standard_normal(depth.shape)
    measured[blobs(depth.shape, BLOBS, rng)] = np.nan
    confidence = 1 / (1 + (depth / HALF_SURE) ** 2)  # the light that comes back
    confidence = np.where(flying, FLYING_CONFIDENCE * confidence, confidence)
    confidence[~np.isfinite(measured)] = 0
    return measured.astype(np.float32), confidence.astype(np.float32)


def withheld(frame: Frame, seed: int) -> tuple[Frame, np.ndarray]:
    """
    Keep spots of a measurement back, for want of ground truth.

    Return the frame without them and what was measured there (H W, NaN elsewhere).
    """
    hidden = blobs(frame.depth.shape, WITHHELD, np.random.default_rng(seed))
    truth = np.where(hidden & (frame.depth > 0), frame.depth, UNKNOWN)
    confidence = frame.confidence
    if confidence is not None:
        confidence = np.where(hidden, np.float32(0), confidence)
    depth = np.where(hidden, UNKNOWN, frame.depth)
    return replace(frame, depth=depth, confidence=confidence), truth.astype(np.float32)


def blobs(shape: tuple[int, int], share: float, rng: np.random.Generator) -> np.ndarray:
    """Return a mask of round spots that covers about this share of the pixels."""
    smooth = cv2.GaussianBlur(rng.standard_normal(shape), (0, 0), BLOB_SIZE / 2)
    return smooth > np.quantile(smooth, 1 - share)  # H W bool
