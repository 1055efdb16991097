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
"""What is carried from frame to frame, and how it looks from the present camera."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import odometry, temporal
from graph_depth_refiner.core.camera import image_flow
from graph_depth_refiner.core.downsampling import Guide, Level
from graph_depth_refiner.core.kernels import Array, Kernels, Number
from graph_depth_refiner.core.noise import first_model, NoiseModel
from graph_depth_refiner.core.observation import Observation
from graph_depth_refiner.core.patch_graph import CachedGraph
from graph_depth_refiner.core.statistics import positive_median
from graph_depth_refiner.core.types import HOST, Memory, Solution
from graph_depth_refiner.frame import Intrinsics

LEAST_KEPT = 0.4  # share of the history in sight that must be kept, or the scene is another
AT_REST = 0.1  # pixels: a motion of less is that of a camera at rest
LEARNING_GATE = 6.0  # standard deviations: a residual of more is of another surface


@dataclass(frozen=True, eq=False)
class History:
    """All that is carried from one frame to the next."""

    d: Array  # H W, the running mean of inverse depth
    frames: Array  # H W, frames behind it
    grey: Array  # H W uint8
    level_planes: Array  # 3 h w, the solution
    level_frames: Array  # h w
    level_grey: Array  # h w float32 in [0, 1]
    intrinsics: Intrinsics
    stamp: float = field(metadata=HOST)
    pose: np.ndarray | None = field(metadata=HOST)
    # 4 4, the last one, where the next search begins; None: at rest
    motion: Array | None = field(metadata=HOST)
    memory: Memory | None
    graph: CachedGraph

    @classmethod
    def of(cls, obs: Observation, guide: Guide, graph: CachedGraph, present: Present,
           level: Level, solution: Solution) -> History:
        """Keep what the next frame may use of this one."""
        return cls(present.d, present.frames, obs.grey, solution.x, level.frames, guide.grey,
                   obs.intrinsics, obs.stamp, obs.pose, present.motion, solution.memory,
                   graph)


class Present(NamedTuple):
    """The present frame fused with the history, at full resolution."""

    d: Array  # H W inverse depth, 0 where unknown
    frames: Array  # H W, frames that stand behind it, 0 where unknown
    noise: NoiseModel
    motion: Array | None  # 4 4; None: at rest
    kept: Number  # share of the history in sight that is kept; 0 without a history
    reset: str  # why none was looked for, empty if one was
    pose: str = ''  # what became of poses that were given, see Motion


def continues(history: History | None, obs: Observation, guide: Guide) -> bool:
    """Tell whether a frame continues the stream: same camera and size, time going on."""
    return (history is not None and tuple(history.frames.shape) == tuple(obs.d.shape)
            and tuple(history.level_grey.shape) == tuple(guide.grey.shape)
            and history.intrinsics == obs.intrinsics and obs.stamp >= history.stamp)


def search_motion(k: Kernels, history: History | None, raw: Level, guide: Guide,
                  guess: odometry.Motion | None) -> odometry.FirstSearch | None:
    """Begin to search for the motion since the history; nothing is waited for."""
    if history is None or guess is None:
        return None
    past = odometry.Aligned(history.level_planes, history.level_frames, history.level_grey)
    now = odometry.Target(raw.d, raw.frames, guide.grey, raw.unit, guide.intrinsics)
    return odometry.begin_search(k, past, now, guess)


def find_motion(k: Kernels, history: History | None, begun: odometry.FirstSearch | None,
                guess: odometry.Motion | None, obs: Observation, config: RefinerConfig
                ) -> odometry.Motion | None:
    """Return how the camera moved since the history; waits, to be told if that is trusted."""
    if history is None or not config.temporal.enabled:
        return None
    motion = odometry.find_motion(k, begun, guess)
    if not motion.trusted:
        return motion
    flow = image_flow(motion.matrix, obs.intrinsics, obs.d.shape, positive_median(obs.host))
    if flow < AT_REST:  # as it is: no cracks to close, and no holes
        return replace(motion, array=None)
    return replace(motion, flow=flow)


def fuse_history(k: Kernels, history: History | None, motion: odometry.Motion | None,
                 obs: Observation, noise: NoiseModel, config: RefinerConfig) -> Present:
    """Warp the history to the present camera, and fuse the measurement with it."""
    alone = Present(obs.measured, obs.m, noise, None, 0.0, 'first frame')
    if not config.temporal.enabled:
        return alone._replace(reset='switched off')
    if history is None or motion is None:
        return alone
    if not motion.trusted:
        return alone._replace(reset='motion unknown', pose=motion.pose)
    flow: Number = 0.0
    warped = history.d, history.frames, history.grey[None]
    if motion.array is not None:
        warped = k.warp(*warped, history.level_planes[1:], motion.array, obs.intrinsics)
        flow = k.flow(motion.flow, motion.array, obs.intrinsics, obs.d)
    if noise.is_guess and not noise.fixed:  # nothing is gated by a guess
        noise = k.learn_noise(noise, obs.d, obs.m, warped[0], warped[1], np.inf)
    fused = temporal.fuse(k, obs, warped, noise, flow, config.temporal.evidence_limit)

    def continued() -> tuple:
        learned = noise if noise.fixed else k.learn_noise(
            noise, obs.d, obs.m, fused.history, warped[1], LEARNING_GATE)
        return fused.d, fused.frames, learned, fused.kept
    d, frames, after, kept = k.either(
        fused.kept >= LEAST_KEPT, continued,
        lambda: (alone.d, alone.frames, alone.noise, 0.0))
    return Present(d, frames, after, motion.array, kept, '', motion.pose)


def memory_of(k: Kernels, history: History | None, present: Present) -> Memory | None:
    """Return what ADAM goes on with: that of the history, if it is kept."""
    if history is None or history.memory is None:
        return None
    return k.either(present.kept > 0, lambda: history.memory, lambda: None)


def start_noise(k: Kernels, obs: Observation, config: RefinerConfig) -> NoiseModel:
    """Return the noise that a stream begins with."""
    return k.noise(first_model(config.noise.sensor, obs.host, obs.intrinsics))
