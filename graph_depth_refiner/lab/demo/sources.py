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
"""Frames for the demo, with something to judge them by."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
import multiprocessing
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from graph_depth_refiner.bags.bags import reading
from graph_depth_refiner.bags.frames import plan_frames, read_inputs
from graph_depth_refiner.bags.places import BagPlaces
from graph_depth_refiner.bags.refine_bag import SLOP
from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.frame import Frame
from graph_depth_refiner.lab.evaluation.datasets import READERS
from graph_depth_refiner.lab.synthetic.sensor_noise import UNKNOWN, withheld
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream
from graph_depth_refiner.messages.assembly import Assembler
from graph_depth_refiner.messages.placement import placed


@dataclass(frozen=True, eq=False)
class Sample:
    """One frame and its truth, known where there is a surface or at withheld pixels only."""

    frame: Frame
    depth: np.ndarray  # H W float32 metres, NaN where unknown or nothing is
    normals: np.ndarray  # H W 3 float32, NaN where unknown


def synthetic(seed: int, size: tuple[int, int], count: int, sensor: str,
              room: str) -> list[Sample]:
    """Render the first frames of a synthetic stream on all cores."""
    cores = min(os.cpu_count() or 1, count)
    shares = [_Share(seed, size, sensor, room, range(first, count, cores))
              for first in range(cores)]
    with ProcessPoolExecutor(cores, multiprocessing.get_context('spawn')) as pool:
        parts = list(pool.map(_render, shares))
    return [parts[number % cores][number // cores] for number in range(count)]


def recorded_folder(folder: Path, count: int) -> list[Sample]:
    """Return the first frames of a TUM folder with spots withheld."""
    scenes = READERS['tum'](folder)
    return [_withheld(scenes[n].frame, n) for n in range(min(count, len(scenes)))]


def recorded_bag(path: Path, count: int) -> list[Sample]:
    """Return the first frames of a recording with spots withheld."""
    assembler = Assembler()
    samples: list[Sample] = []
    with reading(path) as bag:
        plan = plan_frames(bag, SLOP)
        config = plan.configured(NodeConfig())
        places = BagPlaces(bag, config)
        for inputs in read_inputs(bag, plan.frames[:count]):
            with suppress(ValueError):  # one damaged frame is no reason to show none
                frame = assembler.assemble(placed(inputs, config, places), config).frame
                samples.append(_withheld(frame, len(samples)))
    return samples


def to_and_fro(count: int) -> Iterator[int]:
    """Yield 0 to count - 1 and back again, for ever, so that nothing jumps."""
    if not count:
        raise ValueError('frames: expected at least one, got none')
    period = max(1, 2 * count - 2)
    number = 0
    while True:
        at = number % period
        yield min(at, period - at)
        number += 1


class _Share(NamedTuple):
    """What one process renders."""

    seed: int
    size: tuple[int, int]
    sensor: str
    room: str
    numbers: range


def _render(share: _Share) -> list[Sample]:
    stream = SyntheticStream(share.seed, share.size, sensor=share.sensor, room=share.room)
    views = (stream.view(number) for number in share.numbers)
    return [Sample(view.frame, np.where(np.isfinite(view.depth), view.depth, UNKNOWN),
                   view.normals) for view in views]


def _withheld(frame: Frame, seed: int) -> Sample:
    rest, truth = withheld(frame, seed)
    return Sample(rest, truth, np.full((*truth.shape, 3), UNKNOWN))
