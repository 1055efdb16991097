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

from dataclasses import dataclass, field, replace
from typing import NamedTuple, TYPE_CHECKING

import cv2
import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.feature_tracking import estimate_pose_pnp
from graph_depth_refiner.core.kernels import Array, Kernels, Number
from graph_depth_refiner.core.noise import NORMAL
from graph_depth_refiner.core.types import HOST
from graph_depth_refiner.frame import Intrinsics

if TYPE_CHECKING:
    from graph_depth_refiner.core.history import History

PHOTOMETRIC_SIGMA = 0.02  # difference of the image in [0, 1] that starts to count as an outlier
BLOCK_FLOW_SCALE = 0.1  # pixels by which a block may move on its own before it counts less
# Pixels by which most blocks may move at a guess that one step can mend, and after it: the noise
# of depth and image leaves .1 to .15, a wrong guess more than .2.
NEARLY, MENDED = 0.3, 0.17
# level of the image pyramid, stride, iterations, how many times wider outliers begin, and the
# median motion of blocks, pixels, beyond which the search is given up
FINE_PLAN = ((0, 6, 4, 1.0, np.inf),  # few samples lead to where
             (0, 4, 2, 1.0, np.inf))  # many decide
ONE_LOOK = ((0, 4, 1, 1.0, BLOCK_FLOW_SCALE),)  # whether a motion fits
PLAN = ((2, 6, 4, 8.0, np.inf), (2, 6, 3, 3.0, np.inf), *FINE_PLAN)
SMALL = 50_000  # pixels: of an image of less, few samples do not tell that a guess is wrong
SMALLEST = 32  # pixels, shorter side of images that are halved
STILL = 0.03  # pixels of the pyramid's level; smaller steps end the search there
DOUBT = 2.0  # standard deviations of the measurement beyond which odometry is corrected
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


@dataclass(frozen=True, eq=False)
class Motion:
    """A motion P' = R P + t from the last camera frame to this one."""

    matrix: np.ndarray = field(metadata=HOST)  # 4 4
    trusted: bool = True
    array: Array = None  # the same as the kernels take it
    pose: str = ''  # what became of poses that were given: used, or corrected by the frames
    # pixels by which it moves the image, as the host knows it
    flow: float = field(default=0.0, metadata=HOST)


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
    sigma: Number  # standard deviation of d
    intrinsics: Intrinsics


class Alignment(NamedTuple):
    """Two frames whose motion is searched for."""

    past: Aligned
    steady: Array  # H W, frames of the past that no moving thing has
    now: Target
    near: Number  # typical inverse depth: the unit of length is 1 / near
    images: list[tuple[Array, Array]]  # of both frames, blurred, ever smaller


class FirstSearch(NamedTuple):
    """A first search for a motion, before anybody has asked what it found."""

    problem: Alignment
    found: Array  # the 16 numbers of the motion, and 1 if it is trusted


def between(before: np.ndarray, now: np.ndarray) -> Motion:
    """Return the motion between two camera-to-world poses."""
    return Motion(np.linalg.inv(now) @ before)


def guess_motion(k: Kernels, history: History | None, pose: np.ndarray | None,
                 config: RefinerConfig) -> Motion | None:
    """Return where the search for a motion begins: at that by poses, or at the last one."""
    if history is None or not config.temporal.enabled or config.temporal.motion == 'none':
        return None
    if config.temporal.motion == 'frames' or pose is None or history.pose is None:
        rest = np.eye(4)
        return Motion(rest, array=k.motion(rest) if history.motion is None else history.motion)
    given = between(history.pose, pose)
    return replace(given, array=k.motion(given.matrix), pose='used')


def begin_search(k: Kernels, past: Aligned, now: Target, guess: Motion) -> FirstSearch:
    """Search from a guess on; a motion by poses is only looked at. Nothing is waited for."""
    problem = _alignment(k, past, now)
    if guess.pose:
        return FirstSearch(problem, _search(k, problem, guess.array, ONE_LOOK, np.inf))
    stride = 4 if now.grey.shape[0] * now.grey.shape[1] < SMALL else 6
    plan = (0, stride, 1, 1.0, NEARLY), (0, 4, 6, 1.0, MENDED)
    return FirstSearch(problem, _search(k, problem, guess.array, plan, BLOCK_FLOW_SCALE))


def find_motion(k: Kernels, begun: FirstSearch | None, guess: Motion | None) -> Motion:
    """Return how the camera moved: not at all, by odometry, or by the frames themselves; waits."""
    if begun is None or guess is None:
        return Motion(np.eye(4))
    return (_corrected if guess.pose else _aligned)(k, begun, guess)


def corrected(k: Kernels, past: Aligned, now: Target, given: Motion) -> Motion:
    """Return a motion by poses if depth and image agree with it, else what they say."""
    given = replace(given, array=k.motion(given.matrix), pose='used')
    return _corrected(k, begin_search(k, past, now, given), given)


def _corrected(k: Kernels, begun: FirstSearch, given: Motion) -> Motion:
    if not _read(k, begun.found).trusted:
        past, now = begun.problem.past, begun.problem.now
        found = align(k, past, now, given.array)
        if found.trusted or not fits(k, past, now, given):
            return replace(found, pose='corrected')
    return given


def fits(k: Kernels, past: Aligned, now: Target, motion: Motion) -> bool:
    """Tell whether a motion brings the past to within the noise of the measurement; waits."""
    none = k.zeros((1, *now.d.shape), 'uint8')
    d, frames, _ = k.warp(past.planes[0], past.frames, none, past.planes[1:], motion.array,
                          now.intrinsics)
    both = (frames > 0) & (now.m > 0)
    residual = k.known_median(abs(now.d - d), both)  # 0 if nothing is known
    return bool(k.numpy(NORMAL * residual <= DOUBT * now.sigma))


def align(k: Kernels, past: Aligned, now: Target, guess: Array | None) -> Motion:
    """
    Find the motion that brings the last planes and image onto this measurement.

    Gauss-Newton on point-to-plane distances in inverse depth and on image differences: from
    a guess if most of the image is at rest there, else from the motion of tracked corners,
    else coarse to fine from the guess. Single samples are weighted robustly, and so are
    blocks by how far they would move on their own, as those of a moving object do.
    """
    begin = Motion(np.eye(4), array=k.motion(np.eye(4)) if guess is None else guess)
    return _aligned(k, begin_search(k, past, now, begin), begin)


def _aligned(k: Kernels, begun: FirstSearch, guess: Motion) -> Motion:
    problem, motion = begun.problem, _read(k, begun.found)
    if motion.trusted:
        return motion
    past, now = problem.past, problem.now
    tracked = estimate_pose_pnp(k.numpy(past.grey), k.numpy(now.grey),
                                k.numpy(past.planes[0] * (problem.steady > 0)), now.intrinsics)
    if tracked is not None:
        tracked = k.motion(tracked)
        motion = _searched(k, problem, tracked, FINE_PLAN, BLOCK_FLOW_SCALE)
        if motion.trusted:
            return motion
    for begin in (tracked, guess.array, k.motion(np.eye(4))):
        if begin is not None:
            motion = _searched(k, problem, begin, PLAN, np.inf)
            if motion.trusted:
                break
    return motion


def search_widely(k: Kernels, past: Aligned, now: Target) -> Motion:
    """Search for a motion coarse to fine, from a camera at rest on."""
    return _searched(k, _alignment(k, past, now), k.motion(np.eye(4)), PLAN, np.inf)


def _alignment(k: Kernels, past: Aligned, now: Target) -> Alignment:
    steady = past.frames * (past.frames >= STEADY * k.positive_median(past.frames))  # H W
    return Alignment(past, steady, now, k.positive_median(past.planes[0]),
                     [k.blurred((past.grey, now.grey), BLUR)])


def _searched(k: Kernels, problem: Alignment, matrix: Array, plan: tuple,
              block_flow_scale: float) -> Motion:
    """Search from a motion on; waits for the device."""
    return _read(k, _search(k, problem, matrix, plan, block_flow_scale))


def _search(k: Kernels, problem: Alignment, matrix: Array, plan: tuple,
            block_flow_scale: float) -> Array:
    """Search from a motion on; what is found stays on the device."""
    images = problem.images
    for floor, *_ in plan:
        while len(images) <= floor and min(images[-1][0].shape) >= SMALLEST:
            images.append(k.halved(images[-1]))
    return k.search_motion(problem, matrix, plan, block_flow_scale)  # 17


def _read(k: Kernels, found: Array) -> Motion:
    """Return a motion that was found; waits for the device, to be told whether it is trusted."""
    numbers = k.numpy(found)
    return Motion(numbers[:16].reshape(4, 4), bool(numbers[16] > 0), found[:16].reshape(4, 4))


def blurred(images: tuple[np.ndarray, ...], sigma: float) -> tuple[np.ndarray, ...]:
    """Return images, H W, without what interpolation would show of single pixels."""
    return tuple(cv2.GaussianBlur(one, (5, 5), sigma) for one in images)


def halved(images: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Return images, H W, of half their size."""
    return tuple(cv2.pyrDown(one) for one in images)
