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
"""Filters a robot would use today, on maps of inverse depth in units of the sensor."""

from __future__ import annotations

import cv2
import numpy as np

from graph_depth_refiner.core.noise import spread_about_planes
from graph_depth_refiner.files.pictures import image_colors
from graph_depth_refiner.frame import Frame

CONFIDENT = 0.25  # least confidence that counts as measured
NOISE_UNITS = 4  # a unit, in deviations of the noise, where there is no pixel of disparity
SPECKLE_AREA = 100  # px
SPECKLE_STEP = 1  # units
FRACTION = 16  # OpenCV keeps disparities in sixteenths
LOWEST = 1e-3  # units; keeps a filtered value on this side of infinity


def values_of(frame: Frame) -> tuple[np.ndarray, float]:
    """Return inverse depth in units (disparity for stereo), NaN where unknown, and the unit."""
    known = np.isfinite(frame.depth) & (frame.depth > 0)
    d = np.zeros(frame.depth.shape, np.float32)
    np.divide(np.float32(1), frame.depth, out=d, where=known)
    camera = frame.intrinsics
    unit = 1 / (camera.fx * camera.baseline) if camera.baseline \
        else NOISE_UNITS * spread_about_planes(d)
    return np.where(known, d / np.float32(unit), np.float32(np.nan)), unit  # H W


def depth_of(values: np.ndarray, unit: float) -> np.ndarray:
    """Return the depth in metres of inverse depth in units."""
    return np.float32(1) / (np.maximum(values, np.float32(LOWEST)) * np.float32(unit))  # H W


def confident_values(frame: Frame) -> tuple[np.ndarray, float]:
    """Return the values that are confident and no speckle, NaN elsewhere, and the unit."""
    values, unit = values_of(frame)
    if frame.confidence is not None:
        values = np.where(frame.confidence >= CONFIDENT, values, np.float32(np.nan))
    fixed = _fixed(values)
    cv2.filterSpeckles(fixed, 0, SPECKLE_AREA, SPECKLE_STEP * FRACTION)
    return np.where(fixed > 0, values, np.float32(np.nan)), unit


def fill_nearest(values: np.ndarray) -> np.ndarray:
    """Give each unknown pixel the value of the nearest known one."""
    unknown = np.isnan(values)
    if unknown.all():
        return values.copy()
    _, labels = cv2.distanceTransformWithLabels(
        unknown.astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    nearest = np.zeros(labels.max() + 1, np.float32)
    nearest[labels[~unknown]] = values[~unknown]
    return nearest[labels]  # H W


def fill_background(values: np.ndarray) -> np.ndarray:
    """Give each unknown pixel the farther of the nearest known values of its row."""
    left = _carried(values)
    right = _carried(values[:, ::-1])[:, ::-1]
    return fill_nearest(np.fmin(left, right))  # rows without any value are left to the last


def median(frame: Frame) -> tuple[np.ndarray, float]:
    """Take the median of 5x5 pixels of the filled map."""
    filled, unit = _filled(frame)
    return cv2.medianBlur(filled, 5), unit


def weighted_median(frame: Frame) -> tuple[np.ndarray, float]:
    """Take the median weighted by colour of the filled map."""
    filled, unit = _filled(frame)
    return cv2.ximgproc.weightedMedianFilter(image_colors(frame.image), filled, 7, 10.0), unit


def bilateral(frame: Frame) -> tuple[np.ndarray, float]:
    """Smooth the filled map except across its own jumps."""
    filled, unit = _filled(frame)
    return cv2.bilateralFilter(filled, 9, 1.0, 4.0), unit


def guided(frame: Frame) -> tuple[np.ndarray, float]:
    """Smooth the filled map with the guided filter."""
    filled, unit = _filled(frame)
    return cv2.ximgproc.guidedFilter(image_colors(frame.image), filled, 2, 1.0), unit


def fast_global_smoother(frame: Frame) -> tuple[np.ndarray, float]:
    """Smooth the filled map with the fast global smoother."""
    filled, unit = _filled(frame)
    return cv2.ximgproc.fastGlobalSmootherFilter(image_colors(frame.image), filled, 5.0, 2.0), unit


def bilateral_solver(frame: Frame) -> tuple[np.ndarray, float]:
    """Solve on the bilateral grid, with the confidence as weight."""
    values, unit = confident_values(frame)
    weight = np.isfinite(values).astype(np.float32)
    filled = fill_nearest(values)
    top = max(float(filled.max()), LOWEST)
    solved = cv2.ximgproc.fastBilateralSolverFilter(
        image_colors(frame.image), filled / top, weight)
    return solved * np.float32(top), unit


def weighted_least_squares(frame: Frame) -> tuple[np.ndarray, float]:
    """Run OpenCV's disparity filter on the filled map."""
    filled, unit = _filled(frame)
    return _smoother(False).filter(filled, image_colors(frame.image)), unit


def weighted_least_squares_pair(
        frame: Frame, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Run OpenCV's disparity filter on a pair, px, with its own left-right confidence."""
    smoother = _smoother(True)
    smoother.setLRCthresh(FRACTION)
    smoother.setDepthDiscontinuityRadius(3)
    smoothed = smoother.filter(
        _fixed(left), image_colors(frame.image), None, -_fixed(right)) / FRACTION
    # far from any confident pixel it divides by zero
    found = (smoothed > 0) & (smoothed <= np.nanmax(left))
    return fill_nearest(np.where(found, smoothed, np.nan).astype(np.float32))  # H W


def _smoother(confident: bool) -> cv2.ximgproc.DisparityWLSFilter:
    smoother = cv2.ximgproc.createDisparityWLSFilterGeneric(confident)
    smoother.setLambda(2000.0)
    smoother.setSigmaColor(1.5)
    return smoother


def _filled(frame: Frame) -> tuple[np.ndarray, float]:
    values, unit = confident_values(frame)
    # holes of stereo are mostly occlusions; those of other cameras may be anything
    fill = fill_background if frame.intrinsics.baseline else fill_nearest
    return fill(values), unit


def _carried(values: np.ndarray) -> np.ndarray:
    """Carry the last known value of each row to the right."""
    known = np.isfinite(values)
    last = np.where(known, np.arange(values.shape[1]), 0)
    return np.take_along_axis(values, np.maximum.accumulate(last, axis=1), axis=1)


def _fixed(values: np.ndarray) -> np.ndarray:
    scaled = np.nan_to_num(values) * FRACTION
    return np.clip(scaled, 0, np.iinfo(np.int16).max).astype(np.int16)
