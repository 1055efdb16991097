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
"""From planes to what is published: depth, normals, confidence and provenance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import camera
from graph_depth_refiner.core.downsampling import Guide, Level
from graph_depth_refiner.core.history import Present
from graph_depth_refiner.core.kernels import Array, Kernels, Number
from graph_depth_refiner.core.observation import Observation
from graph_depth_refiner.core.types import Solution
from graph_depth_refiner.core.upsampling import cells_of, kept_of, upsample
from graph_depth_refiner.frame import Frame, Provenance, Refined, Status

UNKNOWN, MEASURED = int(Provenance.UNKNOWN), int(Provenance.MEASURED)
CORRECTED, FILLED = int(Provenance.CORRECTED), int(Provenance.FILLED)
CORRECTED_UNITS = 3.0  # noise units: further from its measurement a pixel is corrected


class Results(NamedTuple):
    """All that leaves the device at the end of a frame."""

    arrays: list[np.ndarray]  # depth, normals, confidence and provenance
    status: Status
    iterations: int
    energy: float
    history: float
    history_frames: float
    hit_rate: float
    deviation: tuple[float, float]  # floor and share of the noise
    learned: bool  # frames stand behind the noise


def upsample_and_describe(k: Kernels, planes: Array, level: Level, present: Present,
                          obs: Observation, guide: Guide, config: RefinerConfig
                          ) -> tuple:
    """Return what is published of all pixels: their planes, described."""
    noise = present.noise
    shown = (obs.d, obs.confidence, present.frames, (noise.floor, noise.share), obs.intrinsics,
             (1 / config.depth.max, 1 / config.depth.min))
    if guide.scale == 1 or config.planes.final_median:
        return k.describe(upsample(k, planes, level, present, obs, guide, config), *shown)
    return k.upsample_and_describe(
        cells_of(k, planes, level, present, obs, guide, config),
        kept_of(k, level, present, obs, config), shown)


def in_turn(upsample_planes: Callable, keep_planes: Callable, describe: Callable, cells: tuple,
            kept: Array | None, shown: tuple) -> tuple:
    """Upsample, clear, and describe by a kernel each."""
    planes = upsample_planes(*cells)
    if kept is not None:
        keep_planes(planes, kept)
    return describe(planes, *shown)


def packed(k: Kernels, described: tuple, present: Present, solution: Solution,
           hit_rate: Number) -> Any:
    """Put all that leaves the device together."""
    noise = present.noise
    numbers = (solution.finite, solution.worse, noise.floor, noise.share, noise.frames,
               solution.iterations, solution.energy, present.kept,
               k.positive_median(present.frames), hit_rate)
    return k.pack(described, numbers)


def results_of(k: Kernels, packed: Any, solution: Solution) -> Results:
    """Return what was described, on the host; waits for the device."""
    arrays, found = k.fetch(packed)
    finite, worse, floor, share, frames, iterations, energy, kept, behind, hits = found
    return Results(arrays, solution.ended(finite > 0, worse > 0), int(iterations), energy, kept,
                   behind, hits, (floor, share), frames > 0)


def to_refined(found: Results, present: Present) -> Refined:
    """Return the refined frame."""
    depth, normals, confidence, provenance = found.arrays
    return Refined(
        depth, normals, confidence, provenance, found.status, found.iterations, found.energy,
        graph_hit_rate=found.hit_rate, history=found.history,
        reset=present.reset or ('' if found.history > 0 else 'scene change'),
        history_frames=found.history_frames, noise=found.deviation, pose=present.pose)


def as_input(k: Kernels, frame: Frame, obs: Observation, planes: Array, present: Present,
             found: Results) -> Refined:
    """Return the measurement as it came, no pixel moved or filled, and normals as they are."""
    valid = k.numpy(obs.m) > 0  # a depth of no confidence is none
    normals = camera.normals(k.numpy(planes), obs.intrinsics).astype(np.float32, order='C')
    normals[~valid] = np.nan
    return Refined(
        np.where(valid, frame.depth, np.nan).astype(np.float32), normals,
        k.numpy(obs.confidence),
        np.where(valid, Provenance.MEASURED, Provenance.UNKNOWN).astype(np.uint8),
        found.status, 0, found.energy, graph_hit_rate=found.hit_rate,
        reset='energy did not fall', noise=found.deviation, pose=present.pose)


def unknown(obs: Observation) -> Refined:
    """Return what is known of a frame without any valid depth: nothing."""
    shape = tuple(obs.d.shape)
    return Refined(
        np.full(shape, np.nan, np.float32), np.full((*shape, 3), np.nan, np.float32),
        np.zeros(shape, np.float32), np.full(shape, Provenance.UNKNOWN, np.uint8),
        Status.EMPTY, 0, 0.0, reset='no valid depth')
