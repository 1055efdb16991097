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
"""What is measured about topics and frames, for the diagnostics."""

from __future__ import annotations

from collections import deque
import threading

import numpy as np

WINDOW = 2.0  # seconds over which a rate is measured
RECENT = 300  # frames over which percentiles are taken
STAGE = 'stage '  # names of the times of stages, in milliseconds, begin so
SILENCE = 2.0  # seconds, or three messages where these come slower, and a topic is silent
LONGEST_PERIOD = 10.0  # seconds; a longer pause says nothing about the rate
MANY_JUMPS, JUMPS_WITHIN = 3, 2.0  # in so many seconds: no recording that begins anew


class TopicWatch:
    """Rate, age and stamps of one input topic; all times in seconds."""

    def __init__(self) -> None:
        """Start with nothing received."""
        self.received = 0
        self.stamp: float | None = None  # of the newest message
        self.arrival: float | None = None  # steady clock
        self._period = 0.0  # between the newest two messages
        self._arrivals: deque[float] = deque()

    def note(self, stamp: float, now: float) -> None:
        """Take in a message; `now` is of a steady clock."""
        self.received += 1
        if self.arrival is not None:
            self._period = now - self.arrival
        self.stamp, self.arrival = stamp, now
        self._arrivals.append(now)
        self._forget(now)

    def rate(self, now: float) -> float:
        """Return messages a second."""
        self._forget(now)
        if len(self._arrivals) < 2:
            return len(self._arrivals) / WINDOW
        # while it comes the span of the messages counts, after that the time since
        return (len(self._arrivals) - 1) / max(
            self._arrivals[-1] - self._arrivals[0], (now - self._arrivals[0]) * 0.8, 1e-9)

    def silent_for(self, now: float) -> float:
        """Return the time since the newest message; infinite before the first."""
        return now - self.arrival if self.arrival is not None else float('inf')

    def is_silent(self, now: float) -> bool:
        """Return whether messages stay away, by the rate they came with."""
        usual = 3 * self._period if self._period <= LONGEST_PERIOD else 0.0
        return self.silent_for(now) > max(SILENCE, usual)

    def _forget(self, now: float) -> None:
        while self._arrivals and now - self._arrivals[0] > WINDOW:
            self._arrivals.popleft()


class Jumps:
    """Tells recordings that begin anew from clocks that differ, by how often stamps go back."""

    def __init__(self) -> None:
        """Start with none."""
        self.number = 0
        self._times: dict[str, deque[float]] = {}

    def note(self, topic: str, now: float) -> bool:
        """Take in a jump; return whether those of the topic come too often for a recording."""
        self.number += 1
        times = self._times.setdefault(topic, deque(maxlen=MANY_JUMPS))
        times.append(now)
        return len(times) == MANY_JUMPS and now - times[0] <= JUMPS_WITHIN


class Recent:
    """The last values of a few quantities, written by one thread and read by another."""

    def __init__(self) -> None:
        """Start empty."""
        self._lock = threading.Lock()
        self._values: dict[str, deque[float]] = {}

    def note(self, **values: float) -> None:
        """Add one value of each quantity."""
        with self._lock:
            for name, value in values.items():
                self._values.setdefault(name, deque(maxlen=RECENT)).append(value)

    def percentile(self, name: str, percent: float) -> float:
        """Return a percentile of the last values, NaN where there are none."""
        with self._lock:
            values = list(self._values.get(name, ()))
        return float(np.percentile(values, percent)) if values else float('nan')

    def mean(self, name: str) -> float:
        """Return the mean of the last values, NaN where there are none."""
        with self._lock:
            values = list(self._values.get(name, ()))
        return float(np.mean(values)) if values else float('nan')

    def newest(self, name: str) -> float:
        """Return the newest value, NaN where there is none."""
        with self._lock:
            values = self._values.get(name)
            return values[-1] if values else float('nan')

    def names(self, beginning: str) -> list[str]:
        """Return the quantities whose names begin so, in the order they came."""
        with self._lock:
            return [name for name in self._values if name.startswith(beginning)]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
