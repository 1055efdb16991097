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
"""
Whether memory grows, told apart from memory that is taken once.

What a process holds says little: malloc keeps what is freed (`ros/memory.py`), so that a leak
hides in it for long and a single peak looks like growth. What is in use, without the free part,
has steps too: a reader of Fast DDS keeps the place of every message that ever waited in it, up to
the depth of its queue, so that a node which stands still for some seconds holds more from then
on. The next time that is found again, while a leak goes on in every cycle of the same faults.
"""

from __future__ import annotations

from statistics import median_low

CYCLE = 1.0  # minutes at least between two levels


class Levels:
    """Memory in use at the end of each cycle: all faults once, or a minute."""

    def __init__(self) -> None:
        """Start with none."""
        self.levels: list[tuple[float, float]] = []  # minutes, MB

    def due(self, minutes: float) -> bool:
        """Return whether a cycle ends after all faults, or the last one ended just before."""
        return minutes - (self.levels[-1][0] if self.levels else 0.0) >= CYCLE

    def add(self, minutes: float, megabytes: float) -> None:
        """Note the memory in use at the end of a cycle."""
        self.levels.append((minutes, megabytes))

    def growth(self) -> float | None:
        """
        Return the median growth of the cycles after the first, in MB a minute.

        Of two in the middle the lower one: a step in one of them is none of the other.
        None where there are fewer than three cycles.
        """
        if len(self.levels) < 3:
            return None
        pairs = zip(self.levels, self.levels[1:])
        return round(median_low((m1 - m0) / (t1 - t0) for (t0, m0), (t1, m1) in pairs), 3)
