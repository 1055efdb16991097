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
The motion of the camera between two frames: from poses, or from the frames themselves.

Gauss-Newton on point-to-plane distances in inverse depth (point-to-plane ICP: Chen and Medioni,
1992) and on differences of the image (dense visual odometry: Kerl et al., ICRA 2013), with an
affine change of brightness. `normal_equations` sums both over blocks of samples. All of it is in
float64 and continuous in the motion (values and slopes of the image are interpolated, and so is
the measurement), so that rounding does not grow from step to step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TYPE_CHECKING

import cv2
import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.feature_tracking import estimate_pose_pnp
from graph_depth_refiner.core.kernels import Array, Kernels
from graph_depth_refiner.core.noise import NORMAL
from graph_depth_refiner.core.statistics import positive_median, subsample, upper_median
from graph_depth_refiner.frame import Intrinsics

if TYPE_CHECKING:
    from graph_depth_refiner.core.downsampling import Guide, Level
    from graph_depth_refiner.core.history import History

# level of the image pyramid, stride, iterations, and how many times wider outliers begin
PLAN = ((2, 6, 4, 8.0), (2, 6, 3, 3.0), (0, 4, 6, 1.0))
PHOTOMETRIC_SIGMA = 0.02  # difference of the image in [0, 1] that starts to count as an outlier
BLOCK_FLOW_SCALE = 0.1  # pixels by which a block may move on its own before it counts less
STILL = 0.03  # pixels of the pyramid's level; smaller steps end the search there
DOUBT = 2.0  # standard deviations of the measurement beyond which odometry is corrected,
# and pixels by which the median block would move on its own: about 0.1 at the true motion
DOUBTED_SHIFT = 0.2
STEADY = 0.6  # share of the median frame count below which a plane may be of a moving thing
BLUR = 0.8  # pixels; less and interpolation shows
LEAST_SAMPLES = 0.1  # share of the samples that must be measured,
LEAST_AGREEING = 0.5  # share of those that must agree with the planes,
LEAST_ALIKE = 0.3  # and share of all that must look alike, for a motion to be trusted
TERMS = 8  # rotation, translation, gain and bias of the image
SEEN = TERMS * (TERMS + 3) // 2  # where the counts stand behind the sums
BLOCK = 20  # pixels; moving objects are told apart block by block
OUTLIER = 4.0  # squared residual, in its noise unit, beyond which a sample does not agree
DEPTH_SCALE = 2.0  # noise units: a residual in depth of one is this much
FLAT_BLOCK = 1e-4  # squared gradient of the image that keeps an even block in its place
# Pixels at the border that samples must not come into; those of a camera at rest, which are on
# pixels up to rounding, are clear of it.
MARGIN = 0.75


def _places() -> np.ndarray:
    """Return where the terms of J^T J and, last in each row, of J^T r stand in the sums."""
    rows, columns = np.triu_indices(TERMS, m=TERMS + 1)
    places = np.zeros((TERMS, TERMS + 1), int)
    places[rows, columns] = np.arange(SEEN)
    square = places[:, :TERMS]
    square += np.triu(square, 1).T
    return places


PLACES = _places()


@dataclass(frozen=True, eq=False)
class Equations:
    """Normal equations of the alignment, and how well it fits."""

    matrix: np.ndarray  # TERMS TERMS, J^T J
    vector: np.ndarray  # TERMS, J^T r
    shifts: np.ndarray  # pixels by which each block would move on its own
    seen: float  # samples inside the image,
    alike: float  # and those of them that look alike
    measured: float  # samples with depth,
    agreeing: float  # and those of them that agree

    @classmethod
    def of_sums(cls, sums: np.ndarray, shifts: np.ndarray) -> Equations:
        """Unpack sums by block: rows of the upper triangle, each with J^T r, then counts."""
        shifts, sums = shifts[sums[:, SEEN] > 0], sums.sum(axis=0)
        return cls(sums[PLACES[:, :TERMS]], sums[PLACES[:, TERMS]], shifts, *sums[SEEN:])


@dataclass(frozen=True, eq=False)
class Motion:
    """A motion P' = R P + t from the last camera frame to this one."""

    matrix: np.ndarray  # 4 4
    trusted: bool = True
    pose: str = ''  # what became of poses that were given: used, or corrected by the frames


class Aligned(NamedTuple):
    """What is aligned: the past at the solved resolution."""

    planes: Array  # 3 H W
    frames: Array  # H W
    grey: Array  # H W in [0, 1]


class Target(NamedTuple):
    """What it is aligned to: the present measurement at the solved resolution."""

    d: Array  # H W
    m: Array  # H W, weight
    grey: Array  # H W in [0, 1]
    sigma: float  # standard deviation of d
    intrinsics: Intrinsics


def between(before: np.ndarray, now: np.ndarray) -> Motion:
    """Return the motion between two camera-to-world poses."""
    return Motion(np.linalg.inv(now) @ before)


def find_motion(k: Kernels, history: History, raw: Level, guide: Guide,
                pose: np.ndarray | None, config: RefinerConfig) -> Motion:
    """Return how the camera moved: not at all, by odometry, or by the frames themselves."""
    if config.temporal.motion == 'none':
        return Motion(np.eye(4))
    past = Aligned(history.level_planes, history.level_frames, history.level_grey)
    now = Target(raw.d, raw.frames, guide.grey, raw.unit, guide.intrinsics)
    if config.temporal.motion == 'frames' or pose is None or history.pose is None:
        return align(k, past, now, history.motion)
    return corrected(k, past, now, between(history.pose, pose))


def corrected(k: Kernels, past: Aligned, now: Target, given: Motion) -> Motion:
    """Return a motion by poses if depth and image agree with it, else what they say."""
    close = fits(k, past, now, given)
    if not (close and block_shift(k, past, now, given) <= DOUBTED_SHIFT):
        found = align(k, past, now, given.matrix)
        if found.trusted or not close:
            return replace(found, pose='corrected')
    return replace(given, pose='used')


def block_shift(k: Kernels, past: Aligned, now: Target, motion: Motion) -> float:
    """Return by how many pixels the median block of the image would move after a motion."""
    near = positive_median(k.numpy(past.planes[0]))
    if not near > 0:
        return 0.0
    return _Search(k, past, past.frames, now, near).shift(motion.matrix)


def fits(k: Kernels, past: Aligned, now: Target, motion: Motion) -> bool:
    """Tell whether a motion brings the past to within the noise of the measurement."""
    none = k.array(np.zeros((1, *now.d.shape), np.uint8))
    planes, frames, _ = k.warp(past.planes, past.frames, none, motion.matrix, now.intrinsics)
    old, behind, d, m = (
        k.numpy(subsample(one)) for one in (planes[0], frames, now.d, now.m))
    residual = np.abs(d - old)[(behind > 0) & (m > 0)]
    return not residual.size or NORMAL * upper_median(residual) <= DOUBT * now.sigma


def align(k: Kernels, past: Aligned, now: Target, guess: np.ndarray) -> Motion:
    """
    Find the motion that brings the last planes and image onto this measurement.

    Gauss-Newton on point-to-plane distances in inverse depth and on image differences: from
    a guess if most of the image is at rest there, else from the motion of tracked corners,
    else coarse to fine from the guess. Single samples are weighted robustly, and so are
    blocks by how far they would move on their own, as those of a moving object do.
    """
    planes, frames = past.planes, past.frames
    typical = positive_median(k.numpy(frames))
    near = positive_median(k.numpy(planes[0]))  # the unit of length is 1 / near
    if not (typical > 0 and near > 0):
        return Motion(np.eye(4), trusted=False)
    steady = frames * (frames >= STEADY * typical)  # H W
    search = _Search(k, past, steady, now, near)
    motion = search.run(guess, PLAN[-1:], BLOCK_FLOW_SCALE, foreseen=True)
    if motion.trusted:
        return motion
    tracked = estimate_pose_pnp(k.numpy(past.grey), k.numpy(now.grey),
                                k.numpy(planes[0] * (steady > 0)), now.intrinsics)
    if tracked is not None:
        motion = search.run(tracked, PLAN[-1:], BLOCK_FLOW_SCALE)
        if motion.trusted:
            return motion
    for begin in (tracked, guess, np.eye(4)):
        if begin is not None:
            motion = search.run(begin, PLAN, np.inf)
            if motion.trusted:
                break
    return motion


class _Search:
    """A search for the motion between two frames, which may begin at several places."""

    def __init__(self, k: Kernels, past: Aligned, steady: Array, now: Target, near: float
                 ) -> None:
        self._equations = partial(k.normal_equations, past.planes, steady)
        self._k, self._level, self._near = k, now, near
        self._pyramid: list[tuple] = [tuple(
            cv2.GaussianBlur(k.numpy(one), (5, 5), BLUR) for one in (past.grey, now.grey))]

    def shift(self, matrix: np.ndarray) -> float:
        """Return by how many pixels the median block would move on its own."""
        level, stride = self._level, PLAN[-1][1]
        before, now = map(self._k.array, self._images(0))
        found = Equations.of_sums(*map(self._k.numpy, self._equations(
            before, level.d, level.m, now, stride, matrix, np.array([1.0, 0.0]),
            level.intrinsics, level.sigma, PHOTOMETRIC_SIGMA, np.inf)))
        return upper_median(found.shifts) if found.shifts.size else 0.0

    def run(self, matrix: np.ndarray, plan: tuple, block_flow_scale: float,
            foreseen: bool = False) -> Motion:
        """Search from a motion on; if it is to be `foreseen`, only if few blocks move there."""
        level, gain_bias, found = self._level, np.array([1.0, 0.0]), None
        for floor, stride, iterations, wider in plan:
            before, now = map(self._k.array, self._images(floor))
            for _ in range(iterations):
                found = Equations.of_sums(*map(self._k.numpy, self._equations(
                    before, level.d, level.m, now, stride, matrix, gain_bias, level.intrinsics,
                    wider * level.sigma, wider * PHOTOMETRIC_SIGMA, block_flow_scale)))
                shift = upper_median(found.shifts) if found.shifts.size else 0.0
                step = _solve(found, self._near)
                if not np.isfinite(step).all() or (foreseen and shift > BLOCK_FLOW_SCALE):
                    return Motion(np.eye(4), trusted=False)
                matrix = _moved(matrix, step)
                gain_bias = gain_bias + step[6:]
                block_flow_scale = max(BLOCK_FLOW_SCALE, 2 * shift)
                if _pixels(step, self._near, level.intrinsics.fx) < STILL * 2 ** floor:
                    break
        height, width = level.d.shape
        return Motion(matrix, _trusted(found, matrix, height * width / PLAN[-1][1] ** 2))

    def _images(self, floor: int) -> tuple[np.ndarray, np.ndarray]:
        """Return both images at a level of the pyramid, or the smallest that makes sense."""
        while len(self._pyramid) <= floor and min(self._pyramid[-1][0].shape) >= 32:
            self._pyramid.append(tuple(cv2.pyrDown(one) for one in self._pyramid[-1]))
        return self._pyramid[min(floor, len(self._pyramid) - 1)]


def _solve(found: Any, near: float) -> np.ndarray:
    """Return the Gauss-Newton step, slightly damped, in units free of the scene's scale."""
    scale = np.array([1, 1, 1, 1 / near, 1 / near, 1 / near, 1, 1])
    matrix = found.matrix * scale[:, None] * scale
    damping = 1e-6 * np.trace(matrix) / len(matrix) + 1e-12
    try:
        step = np.linalg.solve(matrix + damping * np.eye(len(matrix)), -found.vector * scale)
    except np.linalg.LinAlgError:
        return np.full(len(matrix), np.nan)
    return step * scale


def _pixels(step: np.ndarray, near: float, focal: float) -> float:
    """Return about how far a step moves the image."""
    return focal * max(np.abs(step[:3]).max(), np.abs(step[3:6]).max() * near)


def _moved(matrix: np.ndarray, step: np.ndarray) -> np.ndarray:
    twist = np.eye(4)
    twist[:3, :3] = cv2.Rodrigues(step[:3])[0]
    twist[:3, 3] = step[3:6]
    return twist @ matrix


def _trusted(found: Any, matrix: np.ndarray, samples: float) -> bool:
    return bool(
        np.isfinite(matrix).all() and found.measured > LEAST_SAMPLES * samples
        and found.agreeing > LEAST_AGREEING * found.measured
        and found.alike > LEAST_ALIKE * found.seen)
