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

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
import logging
import math
import time
from typing import Any, NamedTuple, TYPE_CHECKING

import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import kernels
from graph_depth_refiner.core.cleaning import clean, extend_planes, is_on, without_rejected
from graph_depth_refiner.core.downsampling import downsample, downsample_image, Guide, Level
from graph_depth_refiner.core.flying import drop_flying
from graph_depth_refiner.core.history import (
    continues,
    find_motion,
    fuse_history,
    History,
    memory_of,
    Present,
    search_motion,
    start_noise,
)
from graph_depth_refiner.core.initialise import gate_edges, initialise
from graph_depth_refiner.core.jit.compile_once import warm_up_arguments
from graph_depth_refiner.core.jit.threads import choosing_threads, Threads
from graph_depth_refiner.core.kernels import Array, Choice, Kernels
from graph_depth_refiner.core.local_planes import finish_planes
from graph_depth_refiner.core.minimise import data_weight, minimise
from graph_depth_refiner.core.noise import NoiseModel
from graph_depth_refiner.core.observation import Observation, observe
from graph_depth_refiner.core.odometry import (
    Aligned,
    FirstSearch,
    fits,
    guess_motion,
    Motion,
    search_widely,
    Target,
)
from graph_depth_refiner.core.output import (
    as_input,
    packed,
    results_of,
    to_refined,
    unknown,
    upsample_and_describe,
)
from graph_depth_refiner.core.patch_graph import CachedGraph, update_graph
from graph_depth_refiner.core.types import Problem, Solution
from graph_depth_refiner.core.upsampling import upsample
from graph_depth_refiner.frame import Frame, Intrinsics, Refined, Status

if TYPE_CHECKING:
    from graph_depth_refiner.core.cuda_graphs import Graphs

MEASURED_SIZE = 640, 480  # of the frames that tell whether a GPU is faster,
MEASURED = 4  # how many of them are timed, and before:
UNTIMED = 6  # two begin the stream, and a GPU captures what the next ones launch
PASSED = 4  # pixels by which the camera passes on from one of them to the next
ASIDE = 0.01  # metres that the camera of the warm-up moves at last

_LOG = logging.getLogger(__name__)


class StageClock:
    """Milliseconds spent by stage of one frame, and those of the calling thread on a core."""

    def __init__(self) -> None:
        """Start the first stage."""
        self.start = self._last = time.perf_counter()
        self._last_cpu = time.thread_time()
        self.milliseconds: dict[str, float] = {}
        self.cpu_milliseconds: dict[str, float] = {}

    def done(self, stage: str) -> None:
        """Book the time since the last call under a stage."""
        now, cpu = time.perf_counter(), time.thread_time()
        for spent, seconds in ((self.milliseconds, now - self._last),
                               (self.cpu_milliseconds, cpu - self._last_cpu)):
            spent[stage] = spent.get(stage, 0) + 1e3 * seconds
        self._last, self._last_cpu = now, cpu

    def deadline(self, budget_ms: float) -> float:
        """Return when a frame has to be done, of time.perf_counter; 0 ms is no limit."""
        return self.start + 1e-3 * budget_ms if budget_ms > 0 else math.inf


@dataclass(frozen=True, eq=False)
class State:
    """What one frame teaches the next; picklable."""

    history: History | None = None
    noise: NoiseModel | None = None

    def known_of(self, obs: Observation, present: Present) -> State:
        """Return the same with what the host knows of a frame, and no graph does."""
        history = self.history and replace(
            self.history, stamp=obs.stamp, pose=obs.pose, motion=present.motion)
        return State(history, self.noise)


class Seen(NamedTuple):
    """A frame up to the first wait."""

    obs: Observation
    guide: Guide
    history: History | None
    noise: NoiseModel
    graph: CachedGraph
    raw: Level  # the measurement alone
    search: FirstSearch | None  # for the motion since the history


class Solved(NamedTuple):
    """A frame up to the second wait."""

    present: Present
    level: Level
    solution: Solution
    planes: Array  # 3 h w, the result at the solved resolution
    packed: Any  # all that leaves the device


@cache
def fastest(choice: Choice) -> Choice:
    """Return the choice, or the CPU where a short measurement says that it is faster."""
    if choice.device == 'cpu':
        return choice
    cpu = kernels.choose('cpu')
    try:
        there = frame_ms(choice)
    except Exception as error:  # of whatever kind: nobody asked for this device by its name
        _LOG.warning('%s failed (%s: %s)', choice.device, type(error).__name__, error)
        there = math.inf
    here = frame_ms(cpu)
    best = choice if there < here else cpu
    _LOG.info('device: %s takes %.1f ms for a frame of %dx%d, the CPU %.1f ms: %s computes',
              choice.device, there, *MEASURED_SIZE, here, best.device)
    return best


def frame_ms(choice: Choice) -> float:
    """Return the time of a frame in milliseconds; infinite if the device fails."""
    refiner = DepthRefiner(device=choice.device)
    width, height = MEASURED_SIZE
    refiner.warm_up((height, width))
    frames = passed_walls((height, width), UNTIMED + MEASURED)
    for frame in frames[:UNTIMED]:
        refiner.refine(frame)
    start = time.perf_counter()
    for frame in frames[UNTIMED:]:
        refiner.refine(frame)
    spent = time.perf_counter() - start
    return math.inf if refiner.device_failures else 1e3 * spent / MEASURED


def rough_walls(shape: tuple[int, int]) -> list[Frame]:
    """Return frames of a wall: the motion to be found, known to be none, and a step aside."""
    rng = np.random.default_rng(0)
    wall = Frame(
        rng.integers(0, 255, (*shape, 3), np.uint8),
        rng.normal(1.0, 0.01, shape).astype(np.float32),
        # floats, as those of a camera: Triton compiles for whole numbers apart
        Intrinsics(float(shape[1]), float(shape[1]), shape[1] / 2, shape[0] / 2))
    aside = np.eye(4)
    aside[0, 3] = ASIDE
    return [replace(wall, pose=pose) for pose in (None, None, np.eye(4), aside)]


def passed_walls(shape: tuple[int, int], number: int) -> list[Frame]:
    """Return frames of a stream: a camera with known poses passes by a rough wall."""
    rng, wall = np.random.default_rng(1), rough_walls(shape)[0]
    frames = []
    for place in range(0, number * PASSED, PASSED):
        pose = np.eye(4)
        pose[0, 3] = place / wall.intrinsics.fx  # the wall is 1 m away
        frames.append(replace(
            wall, image=np.roll(wall.image, -place, axis=1), pose=pose, stamp=float(place),
            depth=rng.normal(1.0, 0.01, shape).astype(np.float32)))
    return frames


class DepthRefiner:
    """Refines depth and estimates normals, frame by frame."""

    def __init__(self, config: RefinerConfig | None = None, device: str = 'auto') -> None:
        """Choose the kernels; nothing is computed yet."""
        self.config = config or RefinerConfig()
        self._wanted_device = device
        self._choice = kernels.choose(device, self.config.backend)
        self.kernels: Kernels | None = None  # others than those chosen, to measure or to plan
        self.graphs: Graphs | None = None  # of a GPU, made with the first frame
        self.device_failures = 0  # times that computation moved to the CPU
        self._compiled = warm_up_arguments(self.config)
        self.state = State()
        self.threads = Threads()

    @property
    def device(self) -> str:
        """Name the device that computes."""
        return self._choice.device

    @property
    def _kernels(self) -> Kernels:
        if self._wanted_device == 'auto' and self.config.backend == 'auto':
            self._choice = fastest(self._choice)
        return self.kernels or kernels.make(self._choice, self._compiled)

    @property
    def _run(self) -> Callable[..., Any]:
        """Return how a part of a frame is computed: called, or by a GPU started as a graph."""
        if self.graphs is None and self.kernels is None and self._choice.device != 'cpu':
            from graph_depth_refiner.core.cuda_graphs import CudaCapture, Graphs
            self.graphs = Graphs(CudaCapture(self._choice.device))
        return self.graphs.run if self.graphs is not None and is_static(self.config) else call

    def configure(self, config: RefinerConfig) -> None:
        """Use another configuration from the next frame on."""
        if config.backend != self.config.backend:
            self._choice = kernels.choose(self._wanted_device, config.backend)
            self.graphs = None
            self.reset()
        if config.noise != self.config.noise:
            self.reset()
        if config != self.config:
            self._compiled = warm_up_arguments(config)
        self.config = config

    def reset(self) -> None:
        """Forget all earlier frames."""
        self.state = State()

    def warm_up(self, shape: tuple[int, int] = (240, 320)) -> None:
        """Load or compile every kernel by refining a rough wall; nothing of it is kept."""
        state = self.state
        if self.graphs is not None:
            self.graphs.forget()  # the state may lie in their buffers
        for frame in rough_walls(shape):
            self.refine(frame)
        self.refine(replace(frame, image=frame.image[:, :, 0]))  # grey is filled by other kernels
        self._served(self._take_rare_ways, frame)
        self.state = state

    @choosing_threads
    def refine(self, frame: Frame) -> Refined:
        """Refine one frame; what it teaches helps the next."""
        return self._served(self._refine, frame)

    def _served(self, act: Callable[[Any], Any], argument: Any) -> Any:
        """Let the device do something, or where it fails what computes instead."""
        try:
            return act(argument)
        except Exception as error:
            instead = kernels.instead(self._choice, error)
            if instead is None:
                raise
            self.device_failures += instead.device != self._choice.device
            self._choice, self._wanted_device = instead, instead.device
            self.graphs = None
            self.reset()  # what is carried on is of the device, or half of this frame
        return self._served(act, argument)

    def _take_rare_ways(self, frame: Frame) -> None:
        """Warp, and search for a motion widely: what only some scenes ask for."""
        k, past, noise = self._kernels, self.state.history, self.state.noise
        if past is None or noise is None or frame.pose is None:
            return
        k.warp(past.d, past.frames, past.grey[None], past.level_planes[1:], k.motion(frame.pose),
               past.intrinsics)
        before = Aligned(past.level_planes, past.level_frames, past.level_grey)
        now = Target(past.level_planes[0], past.level_frames, past.level_grey, noise.floor,
                     past.intrinsics)
        fits(k, before, now, search_widely(k, before, now))

    def _refine(self, frame: Frame) -> Refined:
        k, run, config, clock = self._kernels, self._run, self.config, StageClock()
        obs = observe(k, frame, config)
        if obs.empty:
            self.reset()
            return unknown(obs)
        past = self.state.history
        if past is not None and past.intrinsics != frame.intrinsics:
            self.reset()  # another camera has another noise
        noise = self.state.noise or start_noise(k, obs, config)

        # Solve at reduced resolution: a plane is exact at any
        guide = downsample_image(k, obs, config)
        history = past if past is not None and continues(past, obs, guide) else None
        guess = guess_motion(k, history, obs.pose, config)
        clock.done('observe')

        # The past as seen from here, what both say, and planes through that
        seen = run(look, k, config, clock, obs=obs, guide=guide, history=history, noise=noise,
                   guess=guess)
        motion = find_motion(k, history, seen.search, guess, obs, config)
        solved = run(solve, k, config, clock, obs=seen.obs, guide=seen.guide,
                     history=seen.history, noise=seen.noise, graph=seen.graph, raw=seen.raw,
                     motion=motion)
        found = results_of(k, solved.packed, solved.solution)

        if found.status in (Status.WORSE, Status.DIVERGED):
            self.reset()
        else:
            self.state = run(remember, k, config, clock, obs=seen.obs, guide=seen.guide,
                             graph=seen.graph, learned=found.learned, present=solved.present,
                             level=solved.level, solution=solved.solution
                             ).known_of(obs, solved.present)
        if found.status is Status.WORSE:
            large = upsample(k, solved.planes, solved.level, solved.present, seen.obs, seen.guide,
                             config)
            refined = as_input(k, frame, obs, large, solved.present, found)
        else:
            refined = to_refined(found, solved.present)
        clock.done('output')
        return refined.with_times(clock.milliseconds, clock.cpu_milliseconds)


# The three parts of a frame between its waits, where a GPU is asked nothing: from the second
# frame of a kind on it replays them (`core/cuda_graphs.py`).

def call(part: Callable, k: Kernels, config: RefinerConfig, clock: StageClock, **given: Any
         ) -> Any:
    """Compute a part of a frame."""
    return part(k, config, clock, **given)


def is_static(config: RefinerConfig) -> bool:
    """Tell whether parts of a frame ask nothing of the host: only then they can be replayed."""
    solver = config.solver
    return not (is_on(config) or config.planes.guided or solver.method == 'irls'
                or solver.mode == 'converged' or solver.time_budget_ms > 0)


def look(k: Kernels, config: RefinerConfig, clock: StageClock, obs: Observation, guide: Guide,
         history: History | None, noise: NoiseModel, guess: Motion | None) -> Seen:
    """Compare a frame with the past: the image, for the graph, and all of it, for the motion."""
    graph = update_graph(k, history.graph if history else None, guide.guide, config)
    clock.done('graph')
    raw = downsample(k, obs.measured, obs.m, noise, guide.scale)
    return Seen(obs, guide, history, noise, graph, raw,
                search_motion(k, history, raw, guide, guess))


def solve(k: Kernels, config: RefinerConfig, clock: StageClock, obs: Observation, guide: Guide,
          history: History | None, noise: NoiseModel, graph: CachedGraph, raw: Level,
          motion: Motion | None) -> Solved:
    """Fuse a frame with the past, and fit planes to both."""
    present = fuse_history(k, history, motion, obs, noise, config)
    clock.done('history')
    level = k.either(
        present.kept > 0,
        lambda: downsample(k, present.d, present.frames, present.noise, guide.scale,
                           present.noise.hidden),
        lambda: raw)
    cleaned = clean(k, level, guide, config)
    present = without_rejected(k, present, level, cleaned, guide.scale)
    level = cleaned
    clock.done('clean')

    # Minimise the paper's energy over edges that cross no depth jump
    planes = initialise(k, level, graph.weights, config)
    planes, level, present = drop_flying(k, planes, level, present, guide, config)
    planes = extend_planes(k, planes, level, guide, config)
    weights, planes = gate_edges(k, graph.weights, planes, level, config)
    clock.done('planes')
    memory = memory_of(k, history, present)
    solution = minimise(
        k, Problem(planes, weights, level.d, data_weight(level), level.fused_unit, raw.d,
                   guide.guide, memory),
        config, clock.deadline(config.solver.time_budget_ms))
    clock.done('solve')

    # Back to full resolution, where the measurement has the last word
    planes = finish_planes(k, solution.x, level, guide, config)
    described = upsample_and_describe(k, planes, level, present, obs, guide, config)
    clock.done('upsample')
    return Solved(present, level, solution, planes, packed(
        k, described, present, solution, graph.hit_rate))


def remember(k: Kernels, config: RefinerConfig, clock: StageClock, obs: Observation,
             guide: Guide, graph: CachedGraph, learned: bool, present: Present, level: Level,
             solution: Solution) -> State:
    """Return what the next frame may use of this one."""
    noise = present.noise if learned else replace(present.noise, frames=0.0)
    return State(History.of(obs, guide, graph, present, level, solution), noise)
