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

from dataclasses import replace

from graph_depth_refiner.config import RefinerConfig

# share of the frame period that may be spent before, and must be free after, a change
BUSY, FREE = 0.9, 0.6
SMOOTHING = 0.3  # weight of the newest frame
# between two changes, so that the last one shows first
LEAST_FRAMES, LEAST_SECONDS = 4, 0.5
RECOVERY = 3.0  # seconds of free time before work is taken up again

# the stated order: share of the iterations, least solve scale
STAGES = ((1.0, 0), (0.7, 0), (0.5, 0), (0.3, 0), (0.3, 2), (0.3, 4))


class Shedder:
    """Chooses how much work a frame may be, from how long the last ones took."""

    def __init__(self) -> None:
        """Start with all work done."""
        self.stage = 0
        self._period = self._cost = 0.0  # seconds, smoothed
        self._frames, self._seconds = 0, 0.0  # since the last change
        self._free = 0.0  # seconds in a row

    def reset(self) -> None:
        """Forget the past, as when the stream starts anew."""
        self.__init__()

    def observe(self, period: float, cost: float) -> None:
        """Take in the time between the last two frames and what the last one cost."""
        weight = SMOOTHING if self._period else 1.0
        self._period += weight * (period - self._period)
        self._cost += weight * (cost - self._cost)
        passed = max(period, cost)
        self._frames += 1
        self._seconds += passed
        self._free = self._free + passed if self._cost < FREE * self._period else 0.0
        if self._frames < LEAST_FRAMES or self._seconds < LEAST_SECONDS:
            return
        if self._cost > BUSY * self._period and self.stage < len(STAGES) - 1:
            self._change(1)
        elif self._free >= RECOVERY and self.stage > 0:
            self._change(-1)

    def apply(self, config: RefinerConfig) -> RefinerConfig:
        """Return the configuration with the work of this stage."""
        share, scale = STAGES[self.stage]
        if self.stage == 0 or config.mode != 'realtime':
            return config
        return replace(
            config, iterations=min(config.iterations, max(1, round(share * config.iterations))),
            solve_scale=max(config.solve_scale, scale))

    def _change(self, by: int) -> None:
        self.stage += by
        self._frames, self._seconds, self._free = 0, 0.0, 0.0
