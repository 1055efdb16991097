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
"""Progress of batch commands: a bar on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import math
import sys
from threading import RLock
from typing import TextIO

from tqdm import tqdm

FORMAT = '{desc} [{bar:30}] {n_fmt}/{total_fmt} {percentage:3.0f}% {remaining} left'
LINES = 10  # lines in all where the output is no terminal


class _Bar(tqdm):
    """A bar of one process that is drawn only when it advances."""

    monitor_interval = 0


_Bar.set_lock(RLock())  # tqdm's own is one over processes


class Progress:
    """Counts finished items of a known total."""

    def __init__(self, what: str, total: int, done: int = 0, stream: TextIO | None = None) -> None:
        """Start counting at `done`, which was finished in an earlier run."""
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._bar = _Bar(
            desc=what, total=total, initial=done, file=self._stream, ascii='-#',
            bar_format=FORMAT, delay=0 if self._terminal else math.inf)  # inf: never drawn

    def advance(self) -> None:
        """Count one more item."""
        self._bar.update()
        done, total = self._bar.n, self._bar.total
        if not self._terminal and done * LINES // total > (done - 1) * LINES // total:
            self._stream.write(f'{self._bar}\n')
            self._stream.flush()

    def close(self) -> None:
        """Leave the line of the bar."""
        self._bar.close()
