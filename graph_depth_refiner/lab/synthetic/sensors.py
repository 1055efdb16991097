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
Depth cameras that measure a rendered view, each with the faults of its principle.

Lengths in pixels are those of an image 640 px wide and scale with the width: a smaller image is
the same camera with its image reduced, so that errors in metres do not depend on the size. Where a
sensor has nothing to measure (the view's depth is infinite) or does not measure, depth is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import cv2
import numpy as np

from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.synthetic import faults
from graph_depth_refiner.lab.synthetic.scene import Rendering

FULL_WIDTH = 640  # px, to which all lengths in pixels refer
FAR = np.float32(50.0)  # metres, in place of infinite depth
GRAZING = 0.1  # cosine of incidence below which no light comes back that could be used
SLOW = 90  # frames over which temperature and calibration drift
QUICK = 12  # frames over which exposure, focus and drop-outs change
GREY = np.array([0.299, 0.587, 0.114], np.float32)
# streams of random numbers, each seeded by (seed of the room, stream, ...)
_CORRELATED, _DROP_OUTS, _RIPPLE, _DRIFT, _SHIFT, _EXPOSURE, _STEP = 3, 4, 5, 6, 7, 8, 9

Measured = tuple[np.ndarray, np.ndarray | None]  # depth H W metres, confidence H W or None


@dataclass(frozen=True)
class Setup:
    """What every sensor needs to know."""

    seed: int
    intrinsics: Intrinsics
    size: tuple[int, int]  # width, height

    @property
    def scale(self) -> float:
        """Return the pixels of this image that a pixel of the full width is."""
        return self.size[0] / FULL_WIDTH


class Sensor(Protocol):
    """Makes of an exact view what a camera gives."""

    def measure(self, exact: Rendering, index: int, rng: np.random.Generator) -> Measured:
        """Return depth, 0 in holes, and confidence where the camera tells one."""

    def photograph(self, image: np.ndarray, index: int, motion: np.ndarray) -> np.ndarray:
        """Return the colour image H W 3 with its faults; motion is that of the image in px."""


@dataclass(frozen=True)
class PlainSensor:
    """
    The setting of the first version: a deviation of 3 mm + 3 mm z^2, one draw a pixel.

    With `correlated`, neighbours within four pixels share most of it for some frames. The image
    is perfect.
    """

    setup: Setup
    correlated: bool = False

    def measure(self, exact: Rendering, index: int, rng: np.random.Generator) -> Measured:
        """Return depth, 0 in holes, and the returned light as confidence."""
        true = _finite(exact.depth)
        signal = (exact.albedo @ GREY) * np.maximum(-exact.facing, 0) / (true * true)
        noise = rng.standard_normal(true.shape, dtype=np.float32)
        if self.correlated:  # unit variance: 0.6^2 independent + 0.8^2 smooth
            smooth = self._drifting(4, _CORRELATED, index)
            noise = np.float32(0.6) * noise + np.float32(0.8) * smooth
        deviation = np.float32(0.003) + np.float32(0.003) * true ** 2
        weaker = np.clip(np.sqrt(np.float32(0.06) / np.maximum(signal, 1e-6)), 0.7, 1.6)
        flying, mixed = faults.flying_pixels(true, 0.45, rng)
        depth = mixed + noise * deviation * weaker
        # so that the blobs do not depend on the resolution
        gone = self._drifting(self.setup.size[0] / 12, _DROP_OUTS, index) > 2.1
        gone |= (signal < 0.004) | (true > 5.5)
        gone |= flying & (rng.random(gone.shape, dtype=np.float32) < 0.3)
        confidence = signal / (signal + np.float32(0.02))
        confidence = np.where(flying, np.float32(0.7) * confidence, confidence)
        depth[gone], confidence[gone] = 0, 0
        return depth, confidence

    def photograph(self, image: np.ndarray, index: int, motion: np.ndarray) -> np.ndarray:
        """Return the image as it is."""
        return image

    def _drifting(self, cell: float, stream: int, index: int) -> np.ndarray:
        return faults.drifting_field(
            self.setup.size, cell, (self.setup.seed, stream), index, QUICK)


@dataclass(frozen=True)
class ColorFaults:
    """
    What is wrong with the colour image beside the depth.

    The registration of colour and depth errs by up to `misregistered` px, as factory calibration
    and two cameras that expose at different times leave it. It is the image that is moved; depth
    and truth stay together. Auto-exposure changes the gain slowly by `exposure` and every second
    or so by a step of 20 %; the image is smeared over `shutter` of a frame's time and goes out of
    focus by up to a pixel. The amounts are assumptions.
    """

    misregistered: float = 3.0  # px, at most
    exposure: float = 0.08  # deviation of the gain
    shutter: float = 0.4  # of the time between two frames

    def spoil(self, setup: Setup, image: np.ndarray, index: int,
              motion: np.ndarray) -> np.ndarray:
        """Return the image with its faults, H W 3."""
        seed = setup.seed
        fixed = np.random.default_rng((seed, _SHIFT)).uniform(-1, 1, 2)
        moved = 0.5 * fixed + 0.5 * np.tanh(faults.drifting((2,), (seed, _SHIFT), index, SLOW))
        shift = self.misregistered * setup.scale * moved / np.sqrt(2)
        slow, focus = faults.drifting((2,), (seed, _EXPOSURE), index, QUICK)
        step = np.random.default_rng((seed, _STEP, index // 25)).choice((0.8, 1.0, 1.0, 1.2))
        gain = np.float32(step * np.exp(self.exposure * slow))
        defocus = setup.scale * min(1.0, 0.4 + 0.3 * abs(focus))
        return gain * faults.shift_and_blur(image, shift, self.shutter * motion, defocus)


@dataclass(frozen=True)
class Triangulation:
    """
    What describes a sensor that measures disparity: depth is focal length baseline / disparity.

    All deviations are of the disparity, which makes them grow with the square of the depth.
    """

    baseline: float  # metres
    rms: float  # px, deviation of the disparity from frame to frame
    window: tuple[float, float]  # px, width and height over which neighbours share it
    independent: float  # share of its variance that neighbours do not share
    step: float  # px, to which disparity is rounded
    lateral: float  # px, deviation of where an edge is seen
    ripple: float  # px, deviation of a bias fixed in the image
    ripple_cell: float  # px, its length
    drift: float  # px, deviation of a smooth bias that changes over seconds
    near: float  # metres
    far: float  # metres
    weak: float  # returned light (reflectance cosine / depth^2) below which nothing is measured
    texture: float = 0.0  # deviation of the image around that matching needs
    fatten: float = 0.0  # px by which near things grow
    mix: bool = True  # values between both sides at edges
    wrong: float = 0.0  # share of the pixels that are matched wrongly, in patches


# Kinect v1. Baseline 7.5 cm, disparity in steps of 1/8 px found with 9x9 windows (Konolige and
# Mihelich, "Technical description of Kinect calibration", ROS wiki). Deviation, rounding included,
# half a step or 1.4e-3 z^2 metres: some millimetres near, 4 cm at 5 m (Khoshelham and Elberink,
# Sensors 2012). Edges off by 0.8 px (Nguyen, Izadi and Lovell, 3DIMPVT 2012). A pattern of some
# millimetres fixed in the image (Smisek, Jancosek and Pajdla, "3D with Kinect", 2011). Range 0.8
# to 4 m (data sheet). Real, "kitchen" of 7-Scenes: 24 % of the pixels are holes.
STRUCTURED_LIGHT = Triangulation(
    baseline=0.075, rms=0.03, window=(9, 9), independent=0.1, step=0.125, lateral=0.8,
    ripple=0.05, ripple_cell=40, drift=0.04, near=0.8, far=4.0, weak=0.012, mix=False)

# RealSense D400. Baseline 5 cm (data sheet of the D435), subpixel RMS 0.05 to 0.1 px on a textured
# wall (Intel, "Tuning depth cameras for best performance"; Keselman et al., CVPR workshops 2017),
# steps of 1/32 px. Measured on a real camera at rest: 0.07 to 0.09 px from frame to frame, without
# memory from one frame to the next, autocorrelation a half at 8 px beside and 5 px below, nothing
# at 17 and 11; about as much again fixed in the image; 11 to 15 % of the pixels are holes.
ACTIVE_STEREO = Triangulation(
    baseline=0.05, rms=0.07, window=(17, 11), independent=0.01, step=1 / 32, lateral=1.0,
    ripple=0.05, ripple_cell=30, drift=0.05, near=0.3, far=6.0, weak=0.006, fatten=2)

# A passive stereo camera with a baseline of 12 cm and a semi-global matcher (Hirschmueller, PAMI
# 2008): steps of 1/16 px (OpenCV), nothing where there is no texture, near things fattened by a
# part of the window (Scharstein and Szeliski, IJCV 2002), wrong matches in patches. The subpixel
# deviation lies between the 0.1 and 0.25 px that are common; this and the rest are assumptions.
STEREO = Triangulation(
    baseline=0.12, rms=0.15, window=(11, 11), independent=0.05, step=1 / 16, lateral=1.2,
    ripple=0.05, ripple_cell=60, drift=0.08, near=0.5, far=8.0, weak=0.0, texture=0.012,
    fatten=4, wrong=0.01)


@dataclass(frozen=True)
class TriangulationSensor:
    """A sensor that measures disparity, and the colour camera beside it."""

    setup: Setup
    model: Triangulation
    color: ColorFaults = ColorFaults()

    def measure(self, exact: Rendering, index: int, rng: np.random.Generator) -> Measured:
        """Return depth, 0 in holes; such cameras give no confidence."""
        model, setup = self.model, self.setup
        px = setup.scale
        window = (model.window[0] * px, model.window[1] * px)
        true = _finite(exact.depth)
        focal = np.float32(setup.intrinsics.fx * model.baseline)
        disparity = focal / true
        hidden = faults.shadows(disparity)
        seen = _fattened(disparity, model.fatten * px)
        seen = faults.jitter_edges(seen, model.lateral * px, window, rng, model.mix)
        reflectance = exact.albedo @ GREY
        light = faults.returned_light(reflectance, exact.facing, true, exact.shiny)
        error = model.rms * self._noise(window, rng) * faults.incidence_growth(exact.facing)
        if model.weak:
            error *= np.clip(np.sqrt(4 * model.weak / np.maximum(light, 1e-6)), 1, 2)
        error += self._bias(index)
        seen = seen + px * error.astype(np.float32)
        seen = _mismatched(seen, model.wrong, window, rng)
        step = np.float32(model.step * px)
        seen = np.rint(seen / step) * step
        depth = focal / np.maximum(seen, focal / FAR)
        gone = hidden | self._without_match(exact, light, reflectance, window, rng)
        gone |= (depth < model.near) | (depth > model.far) | ~np.isfinite(exact.depth)
        depth[gone] = 0
        return depth, None

    def photograph(self, image: np.ndarray, index: int, motion: np.ndarray) -> np.ndarray:
        """Return the colour image with its faults, H W 3."""
        return self.color.spoil(self.setup, image, index, motion)

    def _noise(self, window: tuple[float, float], rng: np.random.Generator) -> np.ndarray:
        """Return noise of unit deviation, H W, of which a share is not that of the window."""
        share, shape = self.model.independent, self.setup.size[::-1]
        return (np.float32(np.sqrt(1 - share)) * faults.window_noise(shape, window, rng)
                + np.float32(np.sqrt(share)) * rng.standard_normal(shape, dtype=np.float32))

    def _bias(self, index: int) -> np.ndarray:
        """Return what is fixed in the image and what drifts, H W px; the room does not know it."""
        seed, size = self.setup.seed, self.setup.size
        fixed = faults.smooth_field(
            size, self.model.ripple_cell * self.setup.scale, (seed, _RIPPLE))
        slow = faults.drifting_field(size, size[0] / 3, (seed, _DRIFT), index, SLOW)
        return self.model.ripple * fixed + self.model.drift * slow

    def _without_match(self, exact: Rendering, light: np.ndarray, reflectance: np.ndarray,
                       window: tuple[float, float], rng: np.random.Generator) -> np.ndarray:
        """Return where the matcher finds nothing, H W bool; the borders are ragged."""
        ragged = np.exp(np.float32(0.3) * faults.window_noise(exact.depth.shape, window, rng))
        gone = -exact.facing < GRAZING * ragged
        if self.model.texture:
            seen = faults.local_texture(reflectance, (2 * window[0], 2 * window[1]))
            return gone | (seen < self.model.texture * ragged) | exact.shiny
        return gone | (light < self.model.weak * ragged)


@dataclass(frozen=True)
class TimeOfFlight:
    """What describes a sensor that measures the phase of modulated light."""

    wiggle: float  # metres, amplitude of the periodic error
    period: float  # metres, of it
    ripple: float  # metres, deviation of a bias fixed in the image
    drift: float  # metres, deviation of a smooth bias that changes over seconds
    bounced: float  # factor on the light of second surfaces
    offset: float  # metres between depth and colour camera, which casts shadows
    near: float  # metres
    far: float  # metres
    weak: float  # returned light below which nothing is measured


# Kinect v2 and its like. Noise by Fankhauser et al. (ICAR 2015), see `_deviation`; wiggling and
# drift with temperature of some millimetres (Lachat et al., Remote Sensing 2015; Corti et al.,
# Robotics and Autonomous Systems 2016); flying pixels, multi-path and dark surfaces as Foix,
# Alenya and Torras (IEEE Sensors Journal 2011) and Sarbolandi, Lefloch and Kolb (CVIU 2015)
# describe them. Range 0.5 to 4.5 m (data sheet). Real, HoloLens seen from its colour camera: 37 %
# of the pixels are holes.
KINECT_V2 = TimeOfFlight(
    wiggle=0.004, period=0.47, ripple=0.002, drift=0.004, bounced=1.0, offset=0.05, near=0.5,
    far=4.5, weak=0.012)


@dataclass(frozen=True)
class TofSensor:
    """A time-of-flight camera, and the colour camera beside it."""

    setup: Setup
    model: TimeOfFlight = KINECT_V2
    color: ColorFaults = ColorFaults()

    def measure(self, exact: Rendering, index: int, rng: np.random.Generator) -> Measured:
        """Return depth, 0 in holes, and the amplitude as confidence."""
        model, setup = self.model, self.setup
        true = _finite(exact.depth)
        reflectance = exact.albedo @ GREY
        light = faults.returned_light(reflectance, exact.facing, true, exact.shiny)
        depth = true + model.bounced * faults.multipath(
            true, exact.normals, reflectance, setup.intrinsics)
        depth += np.float32(model.wiggle) * np.sin(np.float32(2 * np.pi / model.period) * true)
        flying, depth = faults.flying_pixels(depth, 0.6, rng)
        noise = 0.8 * rng.standard_normal(true.shape, dtype=np.float32)
        noise += 0.6 * faults.window_noise(true.shape, (3 * setup.scale, 3 * setup.scale), rng)
        depth += noise * self._deviation(true, exact.facing, reflectance) + self._bias(index)
        shape = (true.shape, (5 * setup.scale, 5 * setup.scale), rng)
        ragged = np.exp(np.float32(0.3) * faults.window_noise(*shape))
        gone = (light < model.weak * ragged) | (-exact.facing < GRAZING * ragged)
        gone |= faults.shadows(np.float32(setup.intrinsics.fx * model.offset) / true)
        gone |= flying & (rng.random(true.shape, dtype=np.float32) < 0.4)
        gone |= (depth < model.near) | (depth > model.far) | ~np.isfinite(exact.depth)
        depth = np.rint(depth * 1000) / np.float32(1000)  # millimetres
        confidence = light / (light + np.float32(0.05))
        depth[gone], confidence[gone] = 0, 0
        return depth.astype(np.float32), confidence.astype(np.float32)

    def photograph(self, image: np.ndarray, index: int, motion: np.ndarray) -> np.ndarray:
        """Return the colour image with its faults, H W 3."""
        return self.color.spoil(self.setup, image, index, motion)

    @staticmethod
    def _deviation(depth: np.ndarray, facing: np.ndarray, reflectance: np.ndarray) -> np.ndarray:
        """
        Return the deviation from frame to frame, H W metres.

        Fankhauser et al.: 1.5 - 0.5 z + 0.3 z^2 + 0.1 z^1.5 t^2 / (pi/2 - t)^2 millimetres for a
        white target and angle t. Shot noise goes with the root of the light: a surface that
        reflects a tenth has three times the deviation.
        """
        z = np.minimum(depth, np.float32(10))
        angle = np.arccos(np.clip(-facing, 0, 1))
        steep = angle / np.maximum(np.float32(np.pi / 2) - angle, np.float32(0.1))
        white = (np.float32(1.5) - np.float32(0.5) * z + np.float32(0.3) * z * z
                 + np.float32(0.1) * z * np.sqrt(z) * np.minimum(steep * steep, 30))
        return np.float32(1e-3) * white / np.sqrt(np.clip(reflectance, 0.05, 1))

    def _bias(self, index: int) -> np.ndarray:
        """Return what is fixed in the image and what drifts, H W metres."""
        seed, size = self.setup.seed, self.setup.size
        fixed = faults.smooth_field(size, 20 * self.setup.scale, (seed, _RIPPLE))
        slow = faults.drifting_field(size, size[0] / 3, (seed, _DRIFT), index, SLOW)
        return self.model.ripple * fixed + self.model.drift * slow


_MAKERS = {
    'structured-light': lambda setup: TriangulationSensor(setup, STRUCTURED_LIGHT),
    'active-stereo': lambda setup: TriangulationSensor(setup, ACTIVE_STEREO),
    'tof': TofSensor,
    'stereo': lambda setup: TriangulationSensor(setup, STEREO),
    'independent': PlainSensor,
    'correlated': lambda setup: PlainSensor(setup, correlated=True)}
SENSORS = tuple(_MAKERS)


def make_sensor(name: str, setup: Setup) -> Sensor:
    """Return a sensor by its name, one of SENSORS."""
    if name not in _MAKERS:
        raise ValueError(f'sensor: expected one of {", ".join(SENSORS)}, got {name!r}')
    return _MAKERS[name](setup)


def _finite(depth: np.ndarray) -> np.ndarray:
    return np.minimum(depth, FAR)


def _fattened(disparity: np.ndarray, by: float) -> np.ndarray:
    """Let near things grow over what is behind them; slopes stay."""
    if by < 0.5:
        return disparity
    side = 2 * round(by) + 1
    grown = cv2.dilate(disparity, np.ones((side, side)))
    return np.where(grown > (1 + faults.JUMP * side / 2) * disparity, grown, disparity)


def _mismatched(disparity: np.ndarray, share: float, window: tuple[float, float],
                rng: np.random.Generator) -> np.ndarray:
    """Give patches that cover this share of the image another disparity of the image."""
    if not share:
        return disparity
    where = faults.window_noise(disparity.shape, window, rng)
    wrong = where > np.quantile(where, 1 - share)
    other = np.float32(np.exp(rng.uniform(-0.4, 0.4))) * cv2.blur(disparity, (31, 31))
    return np.where(wrong, other, disparity)
