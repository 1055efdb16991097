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
"""Every method as a stream: frames in, depth and, where it has its own, normals out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
import time
from typing import Protocol

import cv2
import numpy as np

from graph_depth_refiner.config import preset, RefinerConfig
from graph_depth_refiner.frame import Frame
from graph_depth_refiner.lab.evaluation.baselines import Estimate, OURS
from graph_depth_refiner.lab.evaluation.realsense import RealsenseFilter
from graph_depth_refiner.lab.evaluation.recording import alignment
from graph_depth_refiner.lab.evaluation.recording.scores import filled_depth
from graph_depth_refiner.lab.evaluation.recording.sensors import Sensor
from graph_depth_refiner.lab.evaluation.recording.sources import Recording
from graph_depth_refiner.refiner import DepthRefiner

DEFAULT = ('input', 'median', 'bilateral', 'realsense', 'running-average',
           'running-average-bilateral', OURS)
MEDIAN = 5  # px
BILATERAL_RADIUS, BILATERAL_SPACE, BILATERAL_SIGMAS = 4, 3.0, 2.5  # px, px, noise deviations
REALSENSE_BASELINE = 0.05  # metres
FRAME_LIMIT = 20  # frames that an average remembers at most
CLOSE_SIGMAS = 3  # from the average, in noise deviations, at which a pixel joins it
FADING = 0.8  # of the weight that an average keeps in a frame without a measurement
GAP_WEIGHT = 0.5  # of the weight of its neighbour that a pixel missed by the warping gets


class Method(Protocol):
    """One stream; NaN where it knows nothing."""

    needs_past: bool  # else it is run on judged frames only
    history: bool | None  # whether the last frame used the ones before; None: it does not say

    def run(self, frame: Frame) -> Estimate:
        """Return the estimate of the next frame."""


@dataclass(frozen=True, eq=False)
class Setting:
    """What methods may know about the recording."""

    recording: Recording
    sensor: Sensor
    at_rest: bool
    config: RefinerConfig  # of ours
    device: str = 'auto'


@dataclass(frozen=True, eq=False)
class Output:
    """What a method made of one frame."""

    number: int
    estimate: Estimate
    milliseconds: float
    history: bool | None  # as the method says


class Filter:
    """A filter of single frames."""

    needs_past, history = False, None

    def __init__(self, function: Callable[[np.ndarray], np.ndarray]) -> None:
        """Filter depth (H W, 0 where unknown) with a function."""
        self._function = function

    def run(self, frame: Frame) -> Estimate:
        """Filter one frame."""
        return Estimate(self._function(frame.depth))


class Realsense:
    """Spatial and temporal filter as RealSense documents them."""

    needs_past, history = True, None

    def __init__(self, focal: float) -> None:
        """Take disparities for a camera of that focal length in pixels."""
        self._filter = RealsenseFilter(focal * REALSENSE_BASELINE)

    def run(self, frame: Frame) -> Estimate:
        """Filter the next frame."""
        return Estimate(self._filter.filter(frame.depth))


class RunningAverage:
    """
    Weighted running average along the camera's motion, as KinectFusion's, in the image.

    The motion comes from aligning the average to the raw frame. A pixel joins the average where
    it is within the noise of it, else it starts anew.
    """

    needs_past, history = True, None

    def __init__(self, setting: Setting, smooth: bool = False) -> None:
        """Start without history; `smooth` averages bilaterally filtered frames."""
        self._setting, self._smooth = setting, smooth
        self._past: tuple[Frame, np.ndarray] | None = None  # average as a frame, and weights H W
        self._velocity = np.eye(4)

    def run(self, frame: Frame) -> Estimate:
        """Take in the next frame."""
        sensor = self._setting.sensor
        new = np.nan_to_num(bilateral(frame.depth, sensor)) if self._smooth else frame.depth
        if self._past is None:
            mean, weight = new, (new > 0).astype(np.float32)
        else:
            mean, weight = self._fused(frame, new, *self._warped(frame))
        self._past = Frame(frame.image, mean, frame.intrinsics), weight
        return Estimate(np.where(mean > 0, mean, np.float32(np.nan)))

    def _warped(self, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
        """Return average and weights as the camera sees them now."""
        past, weight = self._past
        motion = np.eye(4)
        if not self._setting.at_rest:
            found, share = alignment.Aligner(frame).align(past, self._velocity)
            motion = self._velocity = found if share >= alignment.NEIGHBOUR_SHARE else np.eye(4)
        moved, origin = alignment.warp(past.depth, motion, frame.intrinsics)
        weights = np.where(origin >= 0, weight.ravel()[np.maximum(origin, 0)], 0)
        gap, side = moved == 0, np.ones((3, 3))
        near = cv2.dilate(moved, side)
        weights = np.where(gap & (near > 0), GAP_WEIGHT * cv2.dilate(weights, side), weights)
        return np.where(gap, near, moved), weights

    def _fused(self, frame: Frame, new: np.ndarray, old: np.ndarray,
               weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the average after a frame and its weights."""
        sigma = self._setting.sensor.noise(np.where(frame.depth > 0, frame.depth, 1))
        close = (old > 0) & (new > 0) & (np.abs(old - new) < CLOSE_SIGMAS * sigma)
        keep = (old > 0) & (new <= 0)
        weight = np.minimum(weight, FRAME_LIMIT)
        mean = np.where(close, (weight * old + new) / (weight + 1), np.where(keep, old, new))
        weight = np.where(close, weight + 1, np.where(keep, FADING * weight, new > 0))
        mean[keep & (weight < 1)] = 0
        return mean.astype(np.float32), np.where(mean > 0, weight, 0).astype(np.float32)


class Refiner:
    """This package."""

    def __init__(self, config: RefinerConfig, device: str, alone: bool = False) -> None:
        """Refine with these settings; `alone` forgets the past before every frame."""
        self._refiner, self._alone = DepthRefiner(config, device), alone
        self.needs_past = not alone
        self.history: bool | None = None

    def run(self, frame: Frame) -> Estimate:
        """Refine the next frame; its motion is estimated, as from a camera without odometry."""
        if self._alone:
            self._refiner.reset()
        refined = self._refiner.refine(Frame(
            frame.image, frame.depth, frame.intrinsics, frame.confidence, frame.stamp))
        self.history = refined.history > 0
        return Estimate(refined.depth, refined.normals)


def measured_only(depth: np.ndarray) -> np.ndarray:
    """Return depth as it came, NaN where nothing was measured."""
    return np.where(depth > 0, depth, np.float32(np.nan))


def median(depth: np.ndarray) -> np.ndarray:
    """Return the median of windows of measured pixels, NaN where nothing was measured."""
    return np.where(depth > 0, cv2.medianBlur(filled_depth(depth), MEDIAN), np.float32(np.nan))


def bilateral(depth: np.ndarray, sensor: Sensor) -> np.ndarray:
    """Return KinectFusion's bilateral filter of measured pixels, as wide as the noise."""
    known = depth > 0
    sigma = sensor.noise(np.where(known, depth, 1)).astype(np.float32)
    total, weight = np.zeros_like(depth), np.zeros_like(depth)
    r = BILATERAL_RADIUS
    padded = np.pad(depth, r)
    height, width = depth.shape
    for dy in range(-r, r + 1):
        for dx in range(-r, r + 1):
            other = padded[r + dy:r + dy + height, r + dx:r + dx + width]
            near = np.where((other > 0) & known, np.exp(
                -0.5 * ((other - depth) / (BILATERAL_SIGMAS * sigma)) ** 2
                - 0.5 * (dx * dx + dy * dy) / BILATERAL_SPACE ** 2), 0)
            total += near * other
            weight += near
    smooth = np.full(depth.shape, np.nan, np.float32)
    return np.divide(total, weight, out=smooth, where=weight > 0)


METHODS: dict[str, Callable[[Setting], Method]] = {
    'input': lambda s: Filter(measured_only),
    'median': lambda s: Filter(median),
    'bilateral': lambda s: Filter(lambda depth: bilateral(depth, s.sensor)),
    'realsense': lambda s: Realsense(s.recording.camera.fx),
    'running-average': RunningAverage,
    'running-average-bilateral': lambda s: RunningAverage(s, smooth=True),
    OURS: lambda s: Refiner(s.config, s.device),
    'ours-alone': lambda s: Refiner(s.config, s.device, alone=True),
    'ours-converged': lambda s: Refiner(
        s.config.with_values(**{'solver.mode': 'converged'}), s.device, alone=True),
    'paper': lambda s: Refiner(preset('paper', **{'solver.mode': 'converged'}), s.device,
                               alone=True),
}


def check_methods(names: list[str], config: RefinerConfig) -> None:
    """Refuse names of no method, and settings that ours does not have."""
    for name in names:
        kind, colon, settings = name.partition(':')
        if name not in METHODS and not (kind == OURS and colon):
            raise ValueError(
                f'methods: expected some of {", ".join(METHODS)} or {OURS}:NAME=VALUE+NAME=VALUE, '
                f'got {name!r}')
        config.with_settings(_settings(settings))


def make_method(name: str, setting: Setting) -> Method:
    """Return a new stream; 'ours:iterations=5' is ours with another setting."""
    if name in METHODS:
        return METHODS[name](setting)
    config = setting.config.with_settings(_settings(name.partition(':')[2]))
    return Refiner(config, setting.device)


def _settings(text: str) -> list[str]:
    return [item for item in text.split('+') if item]


def stream(name: str, setting: Setting, wanted: list[int]) -> Iterator[Output]:
    """Yield what a method makes of a recording from its beginning to the last wanted frame."""
    method = make_method(name, setting)
    for number in range(wanted[-1] + 1) if method.needs_past else wanted:
        frame = setting.recording.frame(number)
        begun = time.perf_counter()
        estimate = method.run(frame)
        milliseconds = 1e3 * (time.perf_counter() - begun)
        yield Output(number, estimate, milliseconds, method.history)
