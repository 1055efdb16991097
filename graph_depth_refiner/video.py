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

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from graph_depth_refiner import alignment, lift
from graph_depth_refiner.alignment import Motion
from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.graph_cache import CachedGraph
from graph_depth_refiner.lift import Level
from graph_depth_refiner.problem import Memory

REACHES = (8, 4, 2)  # cells from the middle to the rim of the windows planes are fitted in
PATIENCE = 1.3  # a wider window is kept up to so many times the cost of a narrower one
GUIDE_LIKENESS = 0.07  # difference of the image in [0, 1] to a window's mean that counts
COLOR_LIKENESS = 0.04  # difference of colour in [0, 1] that counts between two pixels
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
        package = __package__ + ('.fused' if find_spec('numba') else '')
        for name in ('planes', 'voting', 'temporal', 'motion', 'lift', 'results'):
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
    own[0][lone] = level.d[lone]
    clock.done('planes')
    carried, evidence, color, motion = own, np.zeros_like(level.d), level.color, np.eye(4)
    cut = past is None
    if past is not None:
        moved = find_motion(stages, past, level, frame, config)
        clock.done('motion')
        carried, evidence, color, cut = _carry(stages, past, level, moved)
        motion = np.eye(4) if cut else moved.matrix
        clock.done('carry')
    chosen = stages.voting.vote(
        level.d, level.m, level.color, own, carried, evidence, color, level.sigma,
        COLOR_LIKENESS)
    planes, d, m, left = stages.temporal.fuse(
        level.d, level.m, chosen, carried, evidence, level.sigma, config.evidence_limit)
    clock.done('vote')
    return Start(planes, d, m, left, motion, cut)


def aware(backend: Any, weights: Any, start: Start, level: Level, config: RefinerConfig) -> Any:
    """Return the graph without the edges across depth jumps of the start."""
    if config.depth_aware == 0:
        return weights
    units = backend.array(start.planes * np.float32(1 / level.sigma))
    return backend.prepare.depth_aware(weights, units, config.depth_sigma)


def remember(planes: np.ndarray, start: Start, level: Level, frame: Frame, graph: CachedGraph,
             memory: Memory | None) -> Past:
    """Return what the next frame may use of this one."""
    return Past(planes, start.evidence, level.grey, level.color, level.intrinsics,
                frame.depth.shape, frame.stamp, frame.pose, start.motion, memory, graph)


def find_motion(stages: Stages, past: Past, level: Level, frame: Frame,
                config: RefinerConfig) -> Motion:
    """Return how the camera moved: as odometry says, or as the frames show."""
    if config.motion == 'none':
        return Motion(np.eye(4))
    if config.motion == 'auto' and frame.pose is not None and past.pose is not None:
        return alignment.between(past.pose, frame.pose)
    return alignment.align(
        stages.motion, past.planes, past.evidence, past.grey, level, past.motion)


def _carry(stages: Stages, past: Past, level: Level, motion: Motion) -> tuple:
    """Return carried planes, evidence and colour, and whether they belong to another scene."""
    carried, evidence, color = stages.motion.carry(
        past.planes, past.evidence, past.color, motion.matrix, level.intrinsics)
    believed = stages.temporal.trust(
        level.d, level.m, level.color, carried, evidence, color, level.sigma)
    both = (evidence > 0) & (level.m > 0)
    cut = not motion.trusted or believed[both].sum() < CUT * max(1, np.count_nonzero(both))
    return carried, evidence * (0 if cut else believed), color, cut


def full_planes(stages: Stages, planes: np.ndarray, full: Level, level: Level) -> np.ndarray:
    """Return the solved planes, 3 h w, at full resolution, 3 H W."""
    if full is level:
        return planes
    scale = full.d.shape[0] // level.d.shape[0]
    large = stages.lift.enlarge(planes, full.d.shape, scale)
    return stages.voting.vote(
        full.d, full.m, full.color, large, large, np.zeros_like(full.d), full.color, full.sigma,
        COLOR_LIKENESS, slopes=False)
