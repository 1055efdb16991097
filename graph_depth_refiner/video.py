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
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from graph_depth_refiner import alignment, lift
from graph_depth_refiner.alignment import Motion
from graph_depth_refiner.compile_once import compile_once
from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.graph_cache import CachedGraph
from graph_depth_refiner.lift import Level
from graph_depth_refiner.measure import middle, thinned, usual
from graph_depth_refiner.problem import Memory
from graph_depth_refiner.voting_rules import CARRIED_SHARE

REACHES = (8, 4, 2)  # cells from the middle to the rim of the windows planes are fitted in
PATIENCE = 1.4  # a wider window is kept up to so many times the cost of a narrower one
GUIDE_LIKENESS = 0.07  # difference of the image in [0, 1] to a window's mean that counts
COLOR_LIKENESS = 0.05  # difference of colour in [0, 1] that counts between two pixels
USUAL = 1.3  # times the noise of a frame that carried planes may be off without more ado
LOOSEST = 4.0  # times the noise of a frame at which noise between frames is no noise any more
DOUBT = 2.0  # times the noise of a frame beyond which odometry is corrected by the frames
CUT = 0.25  # share of the carried planes that must be believed, or the scene is another


@dataclass(frozen=True, eq=False)
class Past:
    """All that is carried from one frame to the next."""

    planes: np.ndarray  # 3 H W at the solved resolution
    evidence: np.ndarray  # H W, in frames
    grey: np.ndarray  # H W
    color: np.ndarray  # C H W uint8
    intrinsics: Intrinsics  # of the solved resolution
    shape: tuple[int, int]  # of the frame
    stamp: float
    pose: np.ndarray | None
    motion: np.ndarray  # 4 4, the last one: a guess for the next
    memory: Memory | None
    graph: CachedGraph


@dataclass(frozen=True, eq=False)
class Carried:
    """The past as seen from the new frame."""

    planes: np.ndarray  # 3 H W
    evidence: np.ndarray  # H W, in frames
    color: np.ndarray  # C H W uint8
    motion: np.ndarray  # 4 4
    sigma: float  # noise between frames: at least that within one, and more on real sensors


@dataclass(frozen=True, eq=False)
class Start:
    """What the solver begins with at the solved resolution."""

    planes: np.ndarray  # 3 H W
    d: np.ndarray  # H W
    m: np.ndarray  # H W
    evidence: np.ndarray  # H W, in frames, this one included
    motion: np.ndarray  # 4 4
    cut: bool  # nothing of the past was used


class Stages:
    """The kernels of the video part: fused where numba is, else plain numpy."""

    def __init__(self) -> None:
        """Import them."""
        package = __package__
        if find_spec('numba'):
            compile_once()
            package += '.fused'
        for name in ('planes', 'hole_planes', 'voting', 'temporal', 'motion', 'lift', 'results'):
            setattr(self, name, import_module(f'{package}.{name}'))


def still_applies(past: Past | None, frame: Frame, level: Level) -> bool:
    """Tell whether a frame continues the stream: same camera and size, time going on."""
    return (past is not None and past.shape == frame.depth.shape
            and past.planes.shape[1:] == level.d.shape and past.color.shape == level.color.shape
            and past.intrinsics == level.intrinsics and frame.stamp >= past.stamp)


def solve_level(stages: Stages, measured: Any, image: np.ndarray, scale: int
                ) -> tuple[Level, Level]:
    """Return the measurement at full resolution and at that it is solved at."""
    full = lift.full_level(measured, image)
    level = full
    while scale > 1:
        level, scale = lift.half(stages.lift, level), scale // 2
    return full, level


def begin(stages: Stages, level: Level, past: Past | None, frame: Frame,
          config: RefinerConfig, clock: Any) -> Start:
    """Elect a plane for every pixel from this frame and the carried past, and fuse them."""
    own, _ = stages.planes.start_planes(
        level.d, level.m, level.grey, level.sigma, REACHES, PATIENCE, GUIDE_LIKENESS)
    lone = (own[0] <= 0) & (level.m > 0)  # too few around it for a plane
    np.copyto(own[0], level.d, where=lone)
    stages.hole_planes.bridge(level.d, level.m, level.color, level.sigma, own)
    clock.done('planes')
    past = None if past is None else carry(stages, past, level, frame, config, clock)
    old = Carried(own, np.zeros_like(level.d), level.color, np.eye(4), level.sigma) \
        if past is None else past
    chosen = stages.voting.vote(
        level.d, voices(level.m, old.evidence), level.color, own, old.planes, old.evidence,
        old.color, old.sigma, COLOR_LIKENESS)
    planes, d, m, left = stages.temporal.fuse(
        level.d, level.m, chosen, old.planes, old.evidence, old.sigma, config.evidence_limit)
    clock.done('vote')
    return Start(planes, d, m, left, old.motion, past is None)


def voices(m: np.ndarray, evidence: np.ndarray) -> np.ndarray:
    """
    Return what the measurement counts in the vote, H W.

    Where the past is hardly believed it also has the voice that the past has elsewhere: else
    what was there before would outvote what moved there.
    """
    elsewhere = usual(evidence)
    if elsewhere == 0:
        return m
    heard = evidence * np.float32(-2 * CARRIED_SHARE)
    heard += np.float32(1 + CARRIED_SHARE * elsewhere)
    return np.multiply(np.maximum(heard, 1, out=heard), m, out=heard)


def aware(backend: Any, weights: Any, start: Start, level: Level, config: RefinerConfig) -> Any:
    """Return the graph without the edges across depth jumps of the start."""
    planes = backend.array(start.planes)
    if config.depth_aware:
        weights = backend.prepare.depth_aware(weights, planes, config.depth_sigma * level.sigma)
    if config.reg_curved:
        weights = backend.prepare.give_way(weights, planes, config.reg_curved * level.sigma)
    return weights


def remember(planes: np.ndarray, start: Start, level: Level, frame: Frame, graph: CachedGraph,
             memory: Memory | None) -> Past:
    """Return what the next frame may use of this one."""
    return Past(planes, start.evidence, level.grey, level.color, level.intrinsics,
                frame.depth.shape, frame.stamp, frame.pose, start.motion, memory, graph)


def carry(stages: Stages, past: Past, level: Level, frame: Frame, config: RefinerConfig,
          clock: Any) -> Carried | None:
    """Return the past as seen from here and as far as it is believed; None after a cut."""
    motion = find_motion(past, frame, config)
    old = _follow(stages, past, level, motion) if motion else None
    if motion is None or (config.motion != 'none' and old.sigma > DOUBT * level.sigma):
        guess = past.motion if motion is None else motion.matrix
        motion = alignment.align(
            stages.motion, past.planes, past.evidence, past.grey, level, guess)
        clock.done('motion')
        old = _follow(stages, past, level, motion)
    believed = stages.temporal.trust(
        level.d, level.m, level.color, old.planes, old.evidence, old.color, old.sigma)
    both = (thinned(old.evidence) > 0) & (thinned(level.m) > 0)
    cut = not motion.trusted or (
        thinned(believed)[both].sum() < CUT * max(1, np.count_nonzero(both)))
    clock.done('carry')
    return None if cut else replace(old, evidence=old.evidence * believed)


def find_motion(past: Past, frame: Frame, config: RefinerConfig) -> Motion | None:
    """Return how the camera moved by the configuration or odometry, None if neither says."""
    if config.motion == 'none':
        return Motion(np.eye(4))
    if config.motion == 'auto' and frame.pose is not None and past.pose is not None:
        return alignment.between(past.pose, frame.pose)
    return None


def _follow(stages: Stages, past: Past, level: Level, motion: Motion) -> Carried:
    """Carry the past along a motion and see how far off the measurement it is."""
    planes, evidence, color = stages.motion.carry(
        past.planes, past.evidence, past.color, motion.matrix, level.intrinsics)
    both = (thinned(evidence) > 0) & (thinned(level.m) > 0)
    residual = np.abs(thinned(level.d) - thinned(planes[0]))[both]
    spread = 1.4826 * middle(residual) / USUAL if residual.size else 0.0
    sigma = min(max(spread, level.sigma), LOOSEST * level.sigma)
    return Carried(planes, evidence, color, motion.matrix, sigma)


def full_planes(stages: Stages, planes: np.ndarray, full: Level, level: Level) -> np.ndarray:
    """Return the solved planes, 3 h w, at full resolution, 3 H W."""
    if full is level:
        return planes
    scale = full.d.shape[0] // level.d.shape[0]
    large = stages.lift.enlarge(planes, full.d.shape, scale)
    return stages.voting.vote(
        full.d, full.m, full.color, large, large, np.zeros_like(full.d), full.color, full.sigma,
        COLOR_LIKENESS, slopes=False)
