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
from dataclasses import replace
from statistics import median

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.ros.watch import LONGEST_PERIOD

# share of the frame period that may be spent before, and must be free after, a change
BUSY, FREE = 0.8, 0.6
# frames whose median counts, so that a single slow one does not, and the least time between
# two changes, so that the last one shows first
FRAMES, LEAST_SECONDS = 5, 0.5
# seconds of free time before work is taken up again; doubled, up to the second number,
# each time that proves to be too much
RECOVERY, LONGEST_RECOVERY = 3.0, 60.0

# the stated order: share of the iterations, least solve scale. The first steps of ADAM raise the
# energy before they lower it: three of ten may end above the measurement.
STAGES = ((1.0, 0), (0.7, 0), (0.5, 0), (0.5, 2), (0.5, 4))


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
        elif self._free >= self._recovery and self.stage > 0:
            self._change(-1)

    def apply(self, config: RefinerConfig) -> RefinerConfig:
        """Return the configuration with the work of this stage."""
        share, scale = STAGES[self.stage]
        if self.stage == 0 or config.solver.mode != 'realtime':
            return config
        iterations = config.solver.iterations
        return replace(config, solver=replace(
            config.solver, iterations=min(iterations, max(1, round(share * iterations))),
            scale=max(config.solver.scale, scale)))

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
