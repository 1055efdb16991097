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
"""What a method costs on one thread, whatever else the cores do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
import time
from typing import Any

import cv2
import numpy as np


@contextmanager
def one_thread() -> Iterator[None]:
    """Let numba and OpenCV compute in the calling thread only."""
    import numba
    threads, cv_threads = numba.get_num_threads(), cv2.getNumThreads()
    numba.set_num_threads(1)
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        numba.set_num_threads(threads)
        cv2.setNumThreads(cv_threads)


class CpuTimes:
    """CPU milliseconds of the frames of a stream: the least of several passes over it."""

    def __init__(self) -> None:
        """Start with no pass."""
        self._frames: list[float] = []
        self._stages: list[dict[str, float]] = []

    def follow(self, method: Callable[[Any], Any], views: Sequence[Any]) -> None:
        """Let a method, new to it, see the stream; its results tell `cpu_stages`."""
        frames, stages = [], []
        for view in views:
            start = time.thread_time()
            result = method(view.frame)
            frames.append(1e3 * (time.thread_time() - start))
            stages.append(result.cpu_stages)
        self._frames = _least(self._frames, frames)
        self._stages = [
            {name: min(one[name], before.get(name, one[name])) for name in one}
            for one, before in zip(stages, self._stages or stages, strict=True)]

    def frame(self, first: int) -> float:
        """Return the median of the frames from one on."""
        return float(np.median(self._frames[first:]))

    def stages(self, first: int) -> dict[str, float]:
        """Return the median by stage."""
        kept = self._stages[first:]
        return {name: float(np.median([one.get(name, 0.0) for one in kept])) for name in kept[-1]}


def _least(before: list[float], now: list[float]) -> list[float]:
    return [min(pair) for pair in zip(before or now, now, strict=True)]
