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
How many threads the kernels of a frame use, by what other work leaves of the cores.

On free cores the time of a frame falls with the number of threads. On busy ones every kernel
waits for its slowest thread, so that several threads are no faster than one, and late more
often. What tells is the CPU time that the process gets per second of a frame: it is the speed
relative to a core of one's own, whatever a frame has to do. It is known for the number of
threads in use; the other number is tried for one frame now and then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from statistics import median
import sys
import time
from typing import Any, cast, TypeVar

F = TypeVar('F', bound=Callable[..., Any])

GAIN = 1.2  # speed of several threads over that of one for which they are worth it
CLEAR = 1.5  # their speed from which one thread need not be tried: it has at most one core
FRAMES = 5  # whose median is a speed
TRIALS = 3  # whose median is a speed of the number that is not in use
TRIAL_SECONDS = 2.0  # between two of them: below 5 % of the frames from 10 Hz on


class ThreadCount:
    """One thread or all of them, chosen from frame to frame; knows nothing of numba."""

    def __init__(self) -> None:
        """Start with all."""
        self.many = True
        self._speeds: dict[bool, deque[float]] = {}
        self._last_trial = 0.0
        self._start()

    def next(self, now: float) -> bool:  # noqa: A003
        """Return whether the next frame uses many threads; `now` is of a steady clock."""
        self._last_trial = self._last_trial or now
        if now - self._last_trial >= TRIAL_SECONDS and self._in_doubt():
            self._last_trial = now
            return not self.many
        return self.many

    def note(self, many: bool, cpu: float, wall: float) -> None:
        """Take in the seconds of CPU, of all threads, and of wall time of a frame."""
        self._speeds[many].append(cpu / max(wall, 1e-9))
        if len(self._speeds[True]) < TRIALS or len(self._speeds[False]) < TRIALS:
            return
        better = median(self._speeds[True]) > GAIN * median(self._speeds[False])
        if better != self.many:
            self.many = better
            self._start()

    def _in_doubt(self) -> bool:
        """Tell whether the number that is not in use may be the better one."""
        speeds = self._speeds[self.many]
        return not self.many or (len(speeds) == FRAMES and median(speeds) < CLEAR)

    def _start(self) -> None:
        """Measure anew."""
        self._speeds = {self.many: deque(maxlen=FRAMES), not self.many: deque(maxlen=TRIALS)}
        self._last_trial = 0.0


class Threads:
    """Sets the number of threads for the kernels of a frame."""

    def __init__(self) -> None:
        """Start with what the caller allows."""
        self._choice = ThreadCount()
        self.number = 0  # of the last frame; 0 before the first

    @contextmanager
    def use(self, asked: int) -> Iterator[None]:
        """
        Let kernels use so many threads meanwhile; 0 chooses.

        The caller's own limit, by numba.set_num_threads or NUMBA_NUM_THREADS, stands.
        """
        numba = sys.modules.get('numba')
        if numba is None:  # no kernel is loaded yet, or none of numba's is in use
            yield
            return
        allowed = numba.get_num_threads()
        many = allowed > 1 and not asked and self._choice.next(time.perf_counter())
        self.number = min(asked, allowed) or (allowed if many else 1)
        numba.set_num_threads(self.number)
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            numba.set_num_threads(allowed)
            if allowed > 1 and not asked:
                self._choice.note(
                    many, time.process_time() - cpu, time.perf_counter() - wall)


def choosing_threads(method: F) -> F:
    """Decorate a method whose object has `threads`, and a `config` that says how many."""
    @wraps(method)
    def call(self: Any, *arguments: Any) -> Any:
        with self.threads.use(self.config.threads):
            return method(self, *arguments)
    return cast(F, call)
