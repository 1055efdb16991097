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
"""The start of a frame of a video: planes of its own, and those of the frame before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import odometry as alignment
from graph_depth_refiner.core import resolution as lift
from graph_depth_refiner.core.kernels import Kernels
from graph_depth_refiner.core.observation import positive_median, subsample, upper_median
from graph_depth_refiner.core.odometry import Motion
from graph_depth_refiner.core.patch_graph import CachedGraph
from graph_depth_refiner.core.plane_selection import WARPED_SHARE
from graph_depth_refiner.core.resolution import Level
from graph_depth_refiner.core.types import Memory
from graph_depth_refiner.frame import Frame, Intrinsics

WINDOW_RADII = (8, 4, 2)  # cells from the middle to the rim of the windows planes are fitted in
WIDE_WINDOW_BONUS = 1.4  # a wider window is kept up to so many times the cost of a narrower one
GUIDE_SIGMA = 0.07  # difference of the image in [0, 1] to a window's mean that counts
COLOR_SIGMA = 0.05  # difference of colour in [0, 1] that counts between two pixels
USUAL = 1.3  # times the noise of a frame that carried planes may be off without more ado
LOOSEST = 4.0  # times the noise of a frame at which noise between frames is no noise any more
DOUBT = 2.0  # times the noise of a frame beyond which odometry is corrected by the frames
LEAST_HISTORY = 0.25  # share of the carried planes that must be believed, or the scene is another


@dataclass(frozen=True, eq=False)
class History:
    """All that one frame leaves to the next, in arrays of the kernels."""

    planes: Any  # 3 H W at the solved resolution
    frame_count: Any  # H W, in frames
    grey: Any  # H W
    color: Any  # C H W uint8
    intrinsics: Intrinsics  # of the solved resolution
    shape: tuple[int, int]  # of the frame
    stamp: float
    pose: np.ndarray | None
    motion: np.ndarray  # 4 4, the last one: a guess for the next
    memory: Memory | None
    graph: CachedGraph


@dataclass(frozen=True, eq=False)
class WarpedHistory:
    """The past as seen from the new frame."""

    planes: Any  # 3 H W
    frame_count: Any  # H W, in frames
    color: Any  # C H W uint8
    motion: np.ndarray  # 4 4
    sigma: float  # noise between frames: at least that within one, and more on real sensors


@dataclass(frozen=True, eq=False)
class Start:
    """What the solver begins with at the solved resolution."""

    planes: Any  # 3 H W
    d: Any  # H W
    m: Any  # H W
    frame_count: Any  # H W, in frames, this one included
    motion: np.ndarray  # 4 4
    scene_change: bool  # nothing of the past was used


def still_applies(past: History | None, frame: Frame, level: Level) -> bool:
    """Tell whether a frame continues the stream: same camera and size, time going on."""
    return (past is not None and past.shape == frame.depth.shape
            and past.planes.shape[1:] == level.d.shape and past.color.shape == level.color.shape
            and past.intrinsics == level.intrinsics and frame.stamp >= past.stamp)


def solve_level(k: Kernels, measured: Any, image: np.ndarray, scale: int
                ) -> tuple[Level, Level]:
    """Return the measurement at full resolution and at that it is solved at."""
    full = lift.full_level(k, measured, image)
    level = full
    while scale > 1:
        level, scale = lift.half(k, level), scale // 2
    return full, level


def begin(k: Kernels, level: Level, past: History | None, frame: Frame,
          config: RefinerConfig, clock: Any) -> Start:
    """Elect a plane for every pixel from this frame and the carried past, and fuse them."""
    own, _ = k.fit_planes(
        level.d, level.m, level.grey, level.sigma, WINDOW_RADII, WIDE_WINDOW_BONUS, GUIDE_SIGMA)
    k.geodesic_fill(level.d, level.m, level.color, level.sigma, own)
    clock.done('planes')
    warped = None if past is None else carry(k, past, level, frame, config, clock)
    old = warped or WarpedHistory(own, 0 * level.d, level.color, np.eye(4), level.sigma)
    chosen = k.select_planes(
        level.d, data_weight(k, level.m, old.frame_count), level.color, own, old.planes,
        old.frame_count, old.color, old.sigma, COLOR_SIGMA)
    planes, d, m, left = k.fuse(
        level.d, level.m, chosen, old.planes, old.frame_count, old.sigma,
        config.temporal.evidence_limit)
    clock.done('vote')
    return Start(planes, d, m, left, old.motion, warped is None)


def data_weight(k: Kernels, m: Any, frame_count: Any) -> Any:
    """
    Return what the measurement counts in the vote, H W.

    Where the past is hardly believed it also has the voice that the past has elsewhere: else
    what was there before would outvote what moved there.
    """
    elsewhere = positive_median(k.numpy(frame_count))
    if elsewhere == 0:
        return m
    weight = frame_count * np.float32(-2 * WARPED_SHARE)
    weight += np.float32(1 + WARPED_SHARE * elsewhere)
    return weight.clip(1) * m


def aware(k: Kernels, weights: Any, start: Start, level: Level, config: RefinerConfig) -> Any:
    """Return the graph without the edges across depth jumps of the start."""
    if config.edges.passes:
        weights = k.gate_depth_edges(weights, start.planes, config.edges.sigma * level.sigma)
    if config.energy.reg_curved:
        weights = k.relax_at_curvature(weights, start.planes,
                                       config.energy.reg_curved * level.sigma)
    return weights


def remember(planes: Any, start: Start, level: Level, frame: Frame, graph: CachedGraph,
             memory: Memory | None) -> History:
    """Return what the next frame may use of this one."""
    return History(planes, start.frame_count, level.grey, level.color, level.intrinsics,
                frame.depth.shape, frame.stamp, frame.pose, start.motion, memory, graph)


def carry(k: Kernels, past: History, level: Level, frame: Frame, config: RefinerConfig,
          clock: Any) -> WarpedHistory | None:
    """Return the past as seen from here and as far as it is believed; None after a cut."""
    motion = find_motion(past, frame, config)
    old = _follow(k, past, level, motion) if motion else None
    if motion is None or old is None or (
            config.temporal.motion != 'none' and old.sigma > DOUBT * level.sigma):
        guess = past.motion if motion is None else motion.matrix
        motion = alignment.align(
            k, past.planes, past.frame_count, past.grey, level, guess)
        clock.done('motion')
        old = _follow(k, past, level, motion)
    history_weight = k.consistency_gate(
        level.d, level.m, level.color, old.planes, old.frame_count, old.color, old.sigma)
    both = _both_known(k, old.frame_count, level.m)
    weights = k.numpy(subsample(history_weight))[both]
    scene_change = not motion.trusted or (
        weights.sum() < LEAST_HISTORY * max(1, int(np.count_nonzero(both))))
    clock.done('carry')
    return None if scene_change else replace(old, frame_count=old.frame_count * history_weight)


def find_motion(past: History, frame: Frame, config: RefinerConfig) -> Motion | None:
    """Return how the camera moved by the configuration or odometry, None if neither says."""
    if config.temporal.motion == 'none':
        return Motion(np.eye(4))
    if config.temporal.motion == 'auto' and frame.pose is not None and past.pose is not None:
        return alignment.between(past.pose, frame.pose)
    return None


def _follow(k: Kernels, past: History, level: Level, motion: Motion) -> WarpedHistory:
    """Carry the past along a motion and see how far off the measurement it is."""
    planes, frame_count, color = k.warp(
        past.planes, past.frame_count, past.color, motion.matrix, level.intrinsics)
    both = _both_known(k, frame_count, level.m)
    residual = k.numpy(abs(subsample(level.d) - subsample(planes[0])))[both]
    spread = 1.4826 * upper_median(residual) / USUAL if residual.size else 0.0
    sigma = min(max(spread, level.sigma), LOOSEST * level.sigma)
    return WarpedHistory(planes, frame_count, color, motion.matrix, sigma)


def _both_known(k: Kernels, frame_count: Any, m: Any) -> np.ndarray:
    """Return which of some pixels are known from before and measured now."""
    return k.numpy((subsample(frame_count) > 0) & (subsample(m) > 0))


def full_planes(k: Kernels, planes: Any, full: Level, level: Level) -> Any:
    """Return the solved planes, 3 h w, at full resolution, 3 H W."""
    if full is level:
        return planes
    scale = full.d.shape[0] // level.d.shape[0]
    large = k.upsample_planes(planes, full.d.shape, scale)
    return k.select_planes(
        full.d, full.m, full.color, large, large, 0 * full.d, full.color, full.sigma,
        COLOR_SIGMA, slopes=False)
