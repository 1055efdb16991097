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
How many threads the kernels of a frame use: as many as other work leaves cores free.

On free cores the time of a frame falls with the number of threads. On busy ones every kernel
waits for its slowest thread, so that several threads are no faster than one, and late more
often. What is left is what this process got, what nobody used, and what went to processes of
low priority (nice), in seconds of CPU time per second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
import math
import os
import sys
import time
from typing import Any, cast, TypeVar

F = TypeVar('F', bound=Callable[..., Any])

WINDOW = 1.0  # seconds at least over which is measured what is left
# Of the last core of those in use, the share that has to be left to begin to use it, and below
# which it is given up: camera driver and readers of the outputs take half a core of two.
TAKE, GIVE_UP = 0.3, 0.1
# fields of a line of /proc/stat: user, nice, system, idle, waiting for a disk, ...
NICE, IDLE, WAITING = 1, 3, 4


class ThreadCount:
    """As many threads as cores are left; knows nothing of numba."""

    def __init__(self, most: int) -> None:
        """Start with all."""
        self.number = self.most = most
        self._then: tuple[float, float] | None = None

    def look(self, now: float, left: Callable[[], float]) -> int:
        """
        Return the number for the next frame; `now` is of a steady clock.

        `left` returns the CPU seconds that were ours or to be had until now; it is called once in
        a window. NaN, where that is not known, means all threads.
        """
        if self._then is None:
            self._then = now, left()
        elif now - self._then[0] >= WINDOW:
            before, self._then = self._then, (now, left())
            self._choose((self._then[1] - before[1]) / (now - before[0]))
        return self.number

    def _choose(self, cores: float) -> None:
        """Follow what was left on average, in cores."""
        if math.isnan(cores):
            return
        fits = int(cores + 1 - TAKE)
        if fits > self.number or cores < self.number - 1 + GIVE_UP:
            self.number = max(1, min(fits, self.most))


class Threads:
    """Sets the number of threads for the kernels of a frame."""

    def __init__(self) -> None:
        """Start with what the caller allows."""
        self._choice = ThreadCount(0)
        self.number = 0  # of the last frame; 0 before the first

    @contextmanager
    def use(self, asked: int) -> Iterator[None]:
        """
        Let kernels use so many threads meanwhile; 0 chooses.

        The caller's own limit, by numba.set_num_threads or NUMBA_NUM_THREADS, stands.
        """
        numba = sys.modules.get('numba')
        # no kernel is loaded yet, none of numba's is in use, or another thread is importing it
        if numba is None or not hasattr(numba, 'set_num_threads'):
            yield
            return
        allowed = numba.get_num_threads()
        self.number = min(asked, allowed) or self._chosen(allowed)
        numba.set_num_threads(self.number)
        try:
            yield
        finally:
            numba.set_num_threads(allowed)

    def _chosen(self, allowed: int) -> int:
        if allowed != self._choice.most:
            self._choice = ThreadCount(allowed)
        return self._choice.look(time.perf_counter(), seconds_left)


def seconds_left() -> float:
    """Return the CPU seconds since boot that were ours or to be had; NaN where unknown."""
    try:
        with open('/proc/stat') as stat:
            ticks = free_ticks(stat.read(), os.sched_getaffinity(0), os.nice(0) == 0)
    except (OSError, AttributeError):  # not Linux
        return math.nan
    return ticks / os.sysconf('SC_CLK_TCK') + time.process_time()


def free_ticks(stat: str, cores: set[int], before_nice: bool) -> int:
    """Return the ticks of some cores that nobody used, or only processes of low priority."""
    names = {f'cpu{core}' for core in cores}
    fields = (IDLE, WAITING, NICE) if before_nice else (IDLE, WAITING)
    lines = (line.split() for line in stat.splitlines())
    return sum(int(line[1 + field]) for line in lines if line[:1] and line[0] in names
               for field in fields)


def choosing_threads(method: F) -> F:
    """Decorate a method whose object has `threads`, and a `config` that says how many."""
    @wraps(method)
    def call(self: Any, *arguments: Any) -> Any:
        with self.threads.use(self.config.threads):
            return method(self, *arguments)
    return cast(F, call)
