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
"""Sheds work under overload: first steps, then solve resolution; frames go by themselves."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from statistics import median

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.downsampling import scale_of
from graph_depth_refiner.ros.watch import LONGEST_PERIOD

# share of the frame period that may be spent before, and must be free after, a change
BUSY, FREE = 0.9, 0.6
CLEARLY_FREE = 0.45  # from here on even what proved to be too much is tried soon
# frames whose median counts, so that a single slow one does not, and the least time between
# two changes, so that the last one shows first
FRAMES, LEAST_SECONDS = 5, 0.5
# seconds of free time before work is taken up again; doubled, up to the second number,
# each time that proves to be too much
RECOVERY, LONGEST_RECOVERY = 2.0, 60.0
COARSEST = 4  # pixels that a solved pixel has on a side at most


@dataclass(frozen=True)
class Stage:
    """How much work is done, and what doing less costs."""

    steps: float  # share of the iterations
    coarser: int  # times that a solved pixel has more pixels on a side
    saved: int = 0  # percent of the CPU time of a frame
    depth: int = 0  # percent by which the mean error of depth grows
    normals: int = 0  # percent by which the mean error of normals grows

    def apply(self, config: RefinerConfig, shape: tuple[int, int]) -> RefinerConfig:
        """Return the configuration with the work of this stage for frames of a shape."""
        if self.steps == self.coarser == 1 or config.solver.mode != 'realtime':
            return config
        solver = config.solver
        scale = max(solver.scale, min(COARSEST, self.coarser * scale_of(solver.scale, shape)))
        return replace(config, solver=replace(
            solver, iterations=round(self.steps * solver.iterations),
            scale=scale if self.coarser > 1 else solver.scale))

    @property
    def cost(self) -> str:
        """Say what the stage costs in accuracy."""
        return f'error of depth {self.depth:+d} %, of normals {self.normals:+d} %'


# In the order of what accuracy a saved millisecond costs. Figures of `benchmark shedding
# --stages-only --frames 14 --repeat 2` at 640x480 and 320x240, of both the lesser saving and the
# larger error; the last stage differs from the one before at 320x240 only. Fewer steps save
# too little to be a stage of their own.
STAGES = (
    Stage(1, 1), Stage(0, 1, saved=16, depth=0, normals=0),
    Stage(0, 2, saved=33, depth=25, normals=22), Stage(0, 4, saved=35, depth=38, normals=61))


class Shedder:
    """Chooses how much work a frame may be, from how long the last ones took."""

    def __init__(self) -> None:
        """Start with all work done."""
        self.stage = 0
        self._recovery = RECOVERY
        self._last_change = 0
        self._start()

    def reset(self) -> None:
        """Do all work again."""
        self.__init__()

    def observe(self, period: float, cost: float) -> None:
        """Take in the time between the last two frames and what the last one cost."""
        if period > LONGEST_PERIOD:
            return
        self._shares.append(cost / max(period, 1e-6))
        passed = max(period, cost)
        self._seconds += passed
        if len(self._shares) < FRAMES:
            return
        share = median(self._shares)
        self._free = self._free + passed if share < FREE else 0.0
        if self._seconds < LEAST_SECONDS:
            return
        if share > BUSY and self.stage < len(STAGES) - 1:
            self._change(1)
        elif self.stage > 0 and self._free >= (
                RECOVERY if share < CLEARLY_FREE else self._recovery):
            self._change(-1)

    def apply(self, config: RefinerConfig, shape: tuple[int, int]) -> RefinerConfig:
        """Return the configuration with the work of this stage for frames of a shape."""
        return STAGES[self.stage].apply(config, shape)

    def _change(self, by: int) -> None:
        if (self._last_change, by) == (-1, 1):
            self._recovery = min(2 * self._recovery, LONGEST_RECOVERY)
        self._last_change = by
        self.stage += by
        self._start()

    def _start(self) -> None:
        """Measure anew: what was measured at another stage says nothing."""
        self._shares: deque[float] = deque(maxlen=FRAMES)  # of the frame period
        self._seconds = 0.0
        self._free = 0.0  # seconds in a row
