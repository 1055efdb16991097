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
"""Align frames of a recording to each other: point-to-plane distances and image differences."""

from __future__ import annotations

from collections.abc import Callable
import math

import cv2
import numpy as np

from graph_depth_refiner.core.camera import normals, points
from graph_depth_refiner.files.pictures import image_colors
from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.lab.evaluation.recording import geometry_numba as kernels
from graph_depth_refiner.lab.evaluation.recording.sources import Recording

GATES = (0.05, 0.05, 0.03, 0.03, 0.02, 0.02, 0.02, 0.02)  # of the depth, step by step
NOISE_GROWTH = 0.0025  # metres per square metre; weights near against far, whatever the sensor
IMAGE_WEIGHT = 0.01  # of a pixel's difference beside its distance: neighbours are correlated
LEADING_IMAGE = 1.0  # the same where the image decides along what depth does not tell
ALIGNED = 19200  # pixels of a frame, about, that are aligned
LEAST_PIXELS = 200  # of a coarse grid that have to agree
LEAST_SHARE = 0.35  # of the pixels that meet a measured one, of frames far apart
NEIGHBOUR_SHARE = 0.3  # the same of one frame and the next
STILL = 2e-5  # metres and radians; a smaller step is none
# Known poses are kept if aligning lowers the squared distances, in deviations, by less than this
# for a pixel (median of the frames): it would fit the noise. Exact poses leave 0.01 to lower.
POSE_DOUBT = 0.02
FARTHEST = 0.06  # metres that an alignment may lie from a known pose
JUMP = 0.05  # of the depth, between neighbours that have no common normal
NORMAL_STEP = 3  # px to either side, for normals
AT_REST = 0.3  # px that corners may move over the recording if the camera stands still
CORNERS = 300  # followed to tell that
LOOKS = 8  # frames they are looked for in
TEXTURE = 0.01  # change of the image, in [0, 1], for a pixel, from which on it shows a shift
MOST_DIFFERENCE = 0.1  # of images in [0, 1], at which a difference counts: what moved is no misfit


class Aligner:
    """Aligns frames to one target."""

    def __init__(self, target: Frame, planes: np.ndarray | None = None,
                 image_weight: float = IMAGE_WEIGHT) -> None:
        """
        Prepare points, normals and image of the target.

        planes: its surface as planes of inverse depth, 3 H W, NaN where unknown; by default the
        slightly smoothed depth. image_weight: of a pixel's difference beside its distance.
        """
        camera = target.intrinsics
        self._camera, self._image_weight = pinhole(camera), image_weight
        if planes is None:
            smooth = _smoothed(target.depth)
            self._points = _points(smooth, camera)  # H W 3
            self._normals = _cross_normals(smooth, self._points)  # H W 3
        else:
            self._points = _points(np.nan_to_num(1 / planes[0]), camera)  # H W 3
            self._normals = normals(planes, camera).astype(np.float32)  # H W 3
        self._grey = grey(target)
        self._gradients = [
            cv2.Sobel(self._grey, cv2.CV_32F, *order, ksize=3) / 8 for order in ((1, 0), (0, 1))]

    def align(self, frame: Frame, guess: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the motion 4 4 from a frame to the target, and the share of it that agrees."""
        equations = self._equations(frame)
        motion, share = guess.copy(), 0.0
        for gate in GATES:
            squares, gradient, agreeing, met = equations(motion, gate)
            if agreeing < LEAST_PIXELS:
                return guess, 0.0
            step = -_solved(squares, gradient)
            motion = _exponential(step) @ motion
            share = agreeing / met
            if np.abs(step).max() < STILL:
                break
        return motion, share

    def doubt(self, frame: Frame, motion: np.ndarray) -> tuple[float, float]:
        """Return by how much aligning would lower the squares of a pixel, and what agrees."""
        squares, gradient, agreeing, met = self._equations(frame)(motion, GATES[-1])
        if agreeing < LEAST_PIXELS:
            return math.inf, 0.0
        return float(gradient @ _solved(squares, gradient)) / agreeing, agreeing / met

    def _equations(self, frame: Frame) -> Callable:
        """Return the normal equations of a frame as a function of motion and gate."""
        source, source_grey = _points(frame.depth, frame.intrinsics), grey(frame)
        stride = math.ceil(math.sqrt(frame.depth.size / ALIGNED))  # px
        return lambda motion, gate: kernels.point_to_plane_equations(
            source, source_grey, self._points, self._normals, self._grey, *self._gradients,
            motion, self._camera, gate, NOISE_GROWTH, self._image_weight, stride)


def motions_to(recording: Recording, target: int, others: range) -> dict[int, np.ndarray]:
    """
    Return the motions 4 4 of later frames to a target, those that could be aligned.

    Known poses are kept if they fit, else each is a guess; without, the last motion goes on, and
    the first frame that is lost ends the search.
    """
    here = recording.frame(target)
    aligner = Aligner(here)
    fitting = _fitting_poses(recording, here, others, aligner)
    if fitting is not None:
        return fitting
    return follow(recording, here, others, aligner)


def follow(recording: Recording, here: Frame, others: range, aligner: Aligner
           ) -> dict[int, np.ndarray]:
    """Return the motions 4 4 of later frames to the target of an aligner, one after the other."""
    found: dict[int, np.ndarray] = {}
    last = before = np.eye(4)
    for number in others:
        frame = recording.frame(number)
        known = here.pose is not None and frame.pose is not None
        if known:
            guess = np.linalg.inv(here.pose) @ frame.pose
        else:
            guess = last @ np.linalg.inv(before) @ last if len(found) > 1 else last
        motion, share = aligner.align(frame, guess)
        if share < LEAST_SHARE:
            if not known:
                break
            continue
        if known and np.linalg.norm((np.linalg.inv(guess) @ motion)[:3, 3]) > FARTHEST:
            continue
        before, last = last, motion
        found[number] = motion
    return found


def _fitting_poses(recording: Recording, here: Frame, others: range, aligner: Aligner
                   ) -> dict[int, np.ndarray] | None:
    """Return the motions 4 4 of known poses if aligning would hardly change the fit, or None."""
    frames = {number: recording.frame(number) for number in others}
    if here.pose is None or not frames or any(one.pose is None for one in frames.values()):
        return None
    motions = {k: np.linalg.inv(here.pose) @ frame.pose for k, frame in frames.items()}
    doubts = {k: aligner.doubt(frame, motions[k]) for k, frame in frames.items()}
    if np.median([doubt for doubt, _ in doubts.values()]) > POSE_DOUBT:
        return None
    return {k: motion for k, motion in motions.items() if doubts[k][1] >= LEAST_SHARE}


def anchored(recording: Recording, number: int, motions: dict[int, np.ndarray], aligner: Aligner
             ) -> dict[int, np.ndarray]:
    """
    Align all frames once more to a surface that was fused from them, 4 4 to the frame `number`.

    That frame is aligned as well and the motions are taken relative to it: what is fused along
    motions with a common error lies off by that error.
    """
    start, _ = aligner.align(recording.frame(number), np.eye(4))
    back, found = np.linalg.inv(start), {}
    for k, motion in motions.items():
        motion, share = aligner.align(recording.frame(k), start @ motion)
        if share >= LEAST_SHARE:
            found[k] = back @ motion
    return found


def misfit(recording: Recording, here: Frame, depth: np.ndarray, motions: dict[int, np.ndarray]
           ) -> tuple[float, float]:
    """
    Return how far later frames are from a fused depth (H W, NaN where unknown) along motions.

    The first is the mean difference of the images in [0, 1] on texture, brightness apart; the
    second the mean over the frames of the median distance, relative to the depth. Both are
    infinite without a frame to compare.
    """
    camera, image = here.intrinsics, grey(here)
    texture = np.hypot(*(cv2.Sobel(image, cv2.CV_32F, *o, ksize=3) / 8 for o in ((1, 0), (0, 1))))
    space = _points(depth, camera)  # H W 3
    found = []
    for number, motion in motions.items():
        frame, back = recording.frame(number), np.linalg.inv(motion).astype(np.float32)
        x, y, z = np.moveaxis(space @ back[:3, :3].T + back[:3, 3], -1, 0)  # H W each
        with np.errstate(invalid='ignore', divide='ignore'):
            place = (camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy)  # px
        place = tuple(np.nan_to_num(p, nan=-9, posinf=-9, neginf=-9) for p in place)
        seen = cv2.remap(grey(frame), *place, cv2.INTER_LINEAR, borderValue=-1)
        measured = cv2.remap(frame.depth, *place, cv2.INTER_NEAREST, borderValue=0)
        off = np.abs(measured - z) / z
        same = (seen >= 0) & (measured > 0) & (off < kernels.IMAGE_GATE) & (texture > TEXTURE)
        if same.sum() >= LEAST_PIXELS:
            change = (seen - image)[same]
            change = np.abs(change - np.median(change))
            found.append((np.minimum(change, MOST_DIFFERENCE).mean(), np.median(off[same])))
    if not found:
        return math.inf, math.inf
    image_misfit, depth_misfit = np.mean(found, axis=0)
    return float(image_misfit), float(depth_misfit)


def steps(recording: Recording, last: int) -> dict[int, np.ndarray]:
    """
    Return the motion 4 4 of each frame from 1 to the last one to the frame before it.

    Where a frame cannot be aligned its pose tells, or else the motion before goes on.
    """
    found, step = {}, np.eye(4)
    for number in range(1, last + 1):
        before, now = recording.frame(number - 1), recording.frame(number)
        if before.pose is not None and now.pose is not None:
            step = np.linalg.inv(before.pose) @ now.pose
        motion, share = Aligner(before).align(now, step)
        step = motion if share > NEIGHBOUR_SHARE else step
        found[number] = step
    return found


def warp(depth: np.ndarray, motion: np.ndarray, camera: Intrinsics,
         slopes: tuple[np.ndarray, np.ndarray] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return a depth map seen after a motion (H W, 0 where unknown), and where each came from."""
    if slopes is None:
        slopes = (np.zeros(depth.shape, np.float32),) * 2
    return kernels.splat(depth, motion, pinhole(camera), *slopes)


def is_at_rest(recording: Recording, frames: int) -> bool:
    """Say whether the camera stands still over the first frames, by corners of the image."""
    first = _bytes(recording.frame(0))
    corners = cv2.goodFeaturesToTrack(first, CORNERS, 0.01, 7)
    if corners is None:
        return False
    for number in np.unique(np.linspace(1, frames - 1, LOOKS).round().astype(int)):
        moved, found, _ = cv2.calcOpticalFlowPyrLK(
            first, _bytes(recording.frame(int(number))), corners, None)
        shift = np.linalg.norm((moved - corners)[found.ravel() == 1], axis=-1)
        if not shift.size or np.median(shift) > AT_REST:
            return False
    return True


def largest_shift(motions: dict[int, np.ndarray], frame: Frame) -> float:
    """Return how far, in pixels, the motions move the middle of the image at its median depth."""
    camera, known = frame.intrinsics, frame.depth > 0
    if not known.any():
        return 0.0
    height, width = frame.depth.shape
    z = float(np.median(frame.depth[known]))
    u, v = (width - 1) / 2, (height - 1) / 2
    point = np.array([(u - camera.cx) / camera.fx * z, (v - camera.cy) / camera.fy * z, z, 1.0])
    shifts = [0.0]
    for motion in motions.values():
        x, y, depth, _ = motion @ point
        shifts.append(float(np.hypot(
            camera.fx * x / depth + camera.cx - u, camera.fy * y / depth + camera.cy - v)))
    return max(shifts)


def pinhole(camera: Intrinsics) -> tuple[float, float, float, float]:
    """Return fx, fy, cx and cy as the kernels here take them, in double precision."""
    return float(camera.fx), float(camera.fy), float(camera.cx), float(camera.cy)


def grey(frame: Frame) -> np.ndarray:
    """Return the slightly blurred grey image, H W float32 in [0, 1]."""
    values = cv2.cvtColor(image_colors(frame.image), cv2.COLOR_RGB2GRAY).astype(np.float32) / 255
    return cv2.GaussianBlur(values, (5, 5), 1.0)


def _bytes(frame: Frame) -> np.ndarray:
    return np.rint(255 * grey(frame)).astype(np.uint8)


def _points(depth: np.ndarray, camera: Intrinsics) -> np.ndarray:
    measured = np.where(depth > 0, depth, np.float32(np.nan))
    return points(measured, camera).astype(np.float32)  # H W 3


def _smoothed(depth: np.ndarray) -> np.ndarray:
    """Return depth after a 5x5 bilateral filter of inverse depth, good enough for normals."""
    known = depth > 0
    d = np.zeros(depth.shape, np.float32)
    np.divide(np.float32(1), np.maximum(depth, np.float32(1e-3)), out=d, where=known)
    total, weight = np.zeros_like(d), np.zeros_like(d)
    width = 0.01 * np.maximum(d, 1e-3)
    padded = np.pad(d, 2)
    for dy in range(5):
        for dx in range(5):
            other = padded[dy:dy + d.shape[0], dx:dx + d.shape[1]]
            near = np.where((other > 0) & known, np.exp(-((other - d) / width) ** 2), 0)
            total += near * other
            weight += near
    smooth = np.zeros(depth.shape, np.float32)
    return np.divide(weight, total, out=smooth, where=total > 0)


def _cross_normals(depth: np.ndarray, space: np.ndarray) -> np.ndarray:
    """Return normals by central differences of points, H W 3, NaN at jumps."""
    s = NORMAL_STEP
    found = np.full(space.shape, np.nan, np.float32)
    dx = space[s:-s, 2 * s:] - space[s:-s, :-2 * s]
    dy = space[2 * s:, s:-s] - space[:-2 * s, s:-s]
    z = depth[s:-s, s:-s]
    cross = np.cross(dy, dx)
    length = np.linalg.norm(cross, axis=-1, keepdims=True)
    jump = (np.abs(dx[..., 2]) > JUMP * z) | (np.abs(dy[..., 2]) > JUMP * z)
    bad = jump[..., None] | ~(length > 0)
    cross = np.where(bad, np.nan, cross / np.maximum(length, 1e-12))
    away = (cross * space[s:-s, s:-s]).sum(-1, keepdims=True) > 0
    found[s:-s, s:-s] = np.where(away, -cross, cross)
    return found


def _solved(squares: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Solve the normal equations, slightly damped."""
    return np.linalg.solve(squares + np.diag(np.full(6, 1e-6 * np.trace(squares))), gradient)


def _exponential(step: np.ndarray) -> np.ndarray:
    """Return a small motion 4 4 from a rotation vector and a shift."""
    motion = np.eye(4)
    motion[:3, :3] = cv2.Rodrigues(step[:3])[0]
    motion[:3, 3] = step[3:]
    return motion
