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
"""The refinement of one frame after another: the only owner of state."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import kernels, output, patch_graph, resolution, video
from graph_depth_refiner.core.kernels import Kernels
from graph_depth_refiner.core.minimise import minimise
from graph_depth_refiner.core.observation import measure, Measured
from graph_depth_refiner.core.start import begin, median
from graph_depth_refiner.core.types import Problem, Solution
from graph_depth_refiner.frame import Frame, Intrinsics, Provenance, Refined, Status

NO_FRAMES = np.zeros((1, 1), np.float32)


class StageClock:
    """Milliseconds spent by stage of one frame."""

    def __init__(self) -> None:
        """Start the first stage."""
        self.start = self._last = time.perf_counter()
        self.milliseconds: dict[str, float] = {}

    def done(self, stage: str) -> None:
        """Book the time since the last call under a stage."""
        now = time.perf_counter()
        self.milliseconds[stage] = 1e3 * (now - self._last)
        self._last = now


class DepthRefiner:
    """Refines depth and estimates normals, frame by frame."""

    def __init__(self, config: RefinerConfig | None = None, device: str = 'auto') -> None:
        """Choose the backend; nothing is computed yet."""
        self.config = config or RefinerConfig()
        self._wanted_device = device
        self._choice = kernels.choose(device, self.config.backend)
        self.state: video.History | None = None  # picklable

    @property
    def device(self) -> str:
        """Name the device that computes."""
        return self._choice.device

    @property
    def _kernels(self) -> Kernels:
        return kernels.make(self._choice)

    def configure(self, config: RefinerConfig) -> None:
        """Use another configuration from the next frame on."""
        if config.backend != self.config.backend:
            self._choice = kernels.choose(self._wanted_device, config.backend)
            self.reset()
        self.config = config

    def reset(self) -> None:
        """Forget all earlier frames."""
        self.state = None

    def warm_up(self, shape: tuple[int, int] = (240, 320)) -> None:
        """Load or compile every kernel by refining a rough wall twice; nothing of it is kept."""
        state = self.state
        rng = np.random.default_rng(0)
        wall = Frame(
            rng.integers(0, 255, (*shape, 3), np.uint8),
            rng.normal(1.0, 0.01, shape).astype(np.float32),
            Intrinsics(shape[1], shape[1], shape[1] / 2, shape[0] / 2))
        for _ in range(2):  # the second has a past
            self.refine(wall)
        self.state = state

    def refine(self, frame: Frame) -> Refined:
        """Return the refined depth and the normals of a frame."""
        clock = StageClock()
        measured = measure(frame, self.config)
        clock.done('measure')
        if not measured.m.any():
            self.reset()
            return empty(measured)
        if self.config.planes.start:
            return self._refine_video(frame, measured, clock)
        return self._refine_single(frame, measured, clock)

    def _refine_video(self, frame: Frame, measured: Measured, clock: StageClock) -> Refined:
        """Start from planes of this frame and of the past, take a few steps, remember."""
        config, k = self.config, self._kernels
        scale = resolution.scale_of(config.solver.scale, measured.d.shape)
        full, level = video.solve_level(k, measured, frame.image, scale)
        past = self.state if video.still_applies(self.state, frame, level) else None
        clock.done('scale')
        graph = patch_graph.update_graph(k, past.graph if past else None, level.guide, config)
        clock.done('graph')
        start = video.begin(k, level, past if config.temporal.enabled else None, frame, config,
                            clock)
        weights = video.aware(k, graph.weights, start, level, config)
        clock.done('depth-aware')
        memory = past.memory if past and not start.scene_change else None
        problem = Problem(start.planes, weights, start.d, start.m, level.sigma, level.d,
                          level.guide, memory)
        solution = minimise(k, problem, config, deadline(clock, config))
        clock.done('solve')
        if solution.status in (Status.WORSE, Status.DIVERGED):
            self.reset()
        else:
            self.state = video.remember(
                solution.x, start, level, frame, graph, solution.memory)
        large = video.full_planes(k, solution.x, full, level)
        clock.done('lift')
        if solution.status is Status.WORSE:
            return output.as_measured(
                frame, measured, k.numpy(large), solution, clock.milliseconds)
        return finish(k, solution, large, measured, config, clock, start.frame_count,
                      graph.hit_rate)

    def _refine_single(self, frame: Frame, measured: Measured, clock: StageClock) -> Refined:
        """Prepare a frame on its own and solve it."""
        guide = self._kernels.array(measured.guide)
        weights = self._kernels.build_graph(guide, self.config)
        clock.done('graph')
        start = begin(self._kernels, measured, weights, self.config, frame.image)
        clock.done('start')
        problem = Problem(
            start.planes, start.weights, start.d, start.m, measured.unit, guide=guide)
        solution = minimise(self._kernels, problem, self.config, deadline(clock, self.config))
        clock.done('solve')
        k, planes = self._kernels, solution.x
        if self.config.planes.final_median:
            planes = k.array(median(k.numpy(planes)))
        if solution.status is Status.WORSE:
            return output.as_measured(
                frame, measured, k.numpy(planes), solution, clock.milliseconds)
        return finish(k, solution, planes, measured, self.config, clock, k.array(NO_FRAMES))


def deadline(clock: StageClock, config: RefinerConfig) -> float:
    """Return when the solver has to stop, of time.perf_counter."""
    budget = config.solver.time_budget_ms
    return clock.start + 1e-3 * budget if budget > 0 else math.inf


def finish(k: Kernels, solution: Solution, planes: Any, measured: Measured,
           config: RefinerConfig, clock: StageClock, frame_count: Any,
           hit_rate: float = 0.0) -> Refined:
    """Turn planes of inverse depth into depth, normals and what is known of them."""
    limits = (1 / config.depth.max, 1 / config.depth.min)
    described = k.describe(planes, k.array(measured.d), k.array(measured.m), frame_count,
                           measured.unit, measured.intrinsics, limits)
    depth, normals, confidence, provenance = map(k.numpy, described)
    clock.done('finish')
    return Refined(depth, normals, confidence, provenance, solution.status,
                   solution.iterations, solution.energy, clock.milliseconds, hit_rate)


def empty(measured: Measured) -> Refined:
    """Return what is known of a frame without any valid depth: nothing."""
    shape = measured.d.shape
    return Refined(
        np.full(shape, np.nan, np.float32), np.full((*shape, 3), np.nan, np.float32),
        np.zeros(shape, np.float32), np.full(shape, Provenance.UNKNOWN, np.uint8),
        Status.EMPTY, 0, 0.0)
