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
"""The paper's error measures; truth is NaN where unknown, a missing estimate counts as 0."""

from __future__ import annotations

import cv2
import numpy as np

from graph_depth_refiner.core.camera import normals
from graph_depth_refiner.frame import Intrinsics

DISPARITY_LIMITS = (0.5, 1, 2, 3)  # px
DEPTH_LIMITS = (2, 5)  # cm
NORMAL_LIMIT = 11.25  # degrees
TRUTH_SIGMA = 0.2  # px, of the paper's Gaussian derivative on noise-free truth
KERNEL_RADIUS = 2


def disparity_errors(estimate: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return the share of bad pixels in percent, and the mean and rms error in pixels."""
    error = _errors(estimate, truth)
    bad = {f'bad{limit}': _percent(error > limit) for limit in DISPARITY_LIMITS}
    return {**bad, **_averages(error)}


def depth_errors(estimate: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return the share of bad pixels and the relative error in percent, and errors in metres."""
    error = _errors(estimate, truth)
    bad = {f'{limit}cm': _percent(error > limit / 100) for limit in DEPTH_LIMITS}
    relative = float(100 * (error / truth[np.isfinite(truth)]).mean())
    return {**bad, **_averages(error), 'relative': relative}


def normal_errors(estimate: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return the angle between normals: mean and median in degrees, and the share below 11.25."""
    known = np.isfinite(truth).all(axis=-1)
    # a missing normal counts as 90 degrees off
    found = np.nan_to_num(estimate[known].astype(np.float64))  # N 3
    cosine = (found * truth[known]).sum(axis=-1)
    angle = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
    return {
        'normal_mean': float(angle.mean()), 'normal_median': float(np.median(angle)),
        f'normal_below{NORMAL_LIMIT}': _percent(angle < NORMAL_LIMIT)}


def missing(estimate: np.ndarray) -> float:
    """Return the share of pixels without an estimate in percent."""
    return _percent(~np.isfinite(estimate))


def derivative_normals(
        depth: np.ndarray, intrinsics: Intrinsics, sigma: float = TRUTH_SIGMA) -> np.ndarray:
    """Return normals from a 5x5 Gaussian derivative of inverse depth, NaN where it meets a gap."""
    known = np.isfinite(depth) & (depth > 0)
    d = np.full(depth.shape, np.nan)
    np.divide(1.0, depth, out=d, where=known)
    x = np.arange(-KERNEL_RADIUS, KERNEL_RADIUS + 1.0)
    smooth = np.exp(-x * x / (2 * sigma * sigma))
    smooth /= smooth.sum()
    slope = x * smooth / (x * x * smooth).sum()  # 1 on a unit ramp
    # filter2D correlates, so no kernel has to be turned round
    ux = cv2.sepFilter2D(d, cv2.CV_64F, slope, smooth, borderType=cv2.BORDER_REPLICATE)
    uy = cv2.sepFilter2D(d, cv2.CV_64F, smooth, slope, borderType=cv2.BORDER_REPLICATE)
    for u in (ux, uy):  # a replicated border halves the slope
        u[:KERNEL_RADIUS], u[-KERNEL_RADIUS:] = np.nan, np.nan
        u[:, :KERNEL_RADIUS], u[:, -KERNEL_RADIUS:] = np.nan, np.nan
    return normals(np.stack([d, ux, uy]), intrinsics)  # H W 3


def _errors(estimate: np.ndarray, truth: np.ndarray) -> np.ndarray:
    if estimate.shape != truth.shape:
        raise ValueError(f'estimate: expected shape {truth.shape}, got {estimate.shape}')
    known = np.isfinite(truth)
    if not known.any():
        raise ValueError('truth: expected at least one known pixel, got none')
    found = estimate[known].astype(np.float64)
    return np.abs(np.where(np.isfinite(found), found, 0.0) - truth[known])  # N


def _averages(error: np.ndarray) -> dict[str, float]:
    return {'avgerr': float(error.mean()), 'rms': float(np.sqrt((error * error).mean()))}


def _percent(mask: np.ndarray) -> float:
    return float(100 * mask.mean())
