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
"""A progress bar with the time left; plain lines where the output is no terminal."""

from __future__ import annotations

import sys
import time
from typing import TextIO

WIDTH = 30  # characters
REDRAW = 0.1  # seconds
LINES = 10  # lines in all where the output is no terminal


class Progress:
    """Counts finished items of a known total."""

    def __init__(self, what: str, total: int, done: int = 0, stream: TextIO | None = None) -> None:
        """Start counting at `done`, which was finished in an earlier run."""
        self._what, self._total, self._done, self._first = what, total, done, done
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._start = time.monotonic()
        self._drawn = -REDRAW
        self._show()

    def advance(self) -> None:
        """Count one more item."""
        self._done += 1
        self._show()

    def close(self) -> None:
        """Leave the line of the bar."""
        if self._terminal:
            self._stream.write('\n')
            self._stream.flush()

    def text(self) -> str:
        """Return the bar as text."""
        share = self._done / self._total if self._total else 1.0
        bar = '#' * int(WIDTH * share)
        return (
            f'{self._what} [{bar:-<{WIDTH}}] {self._done}/{self._total} {share:4.0%} '
            f'{self._time_left()}')

    def _time_left(self) -> str:
        new = self._done - self._first
        if not new:
            return 'time left unknown'
        elapsed = time.monotonic() - self._start
        left = round(elapsed / new * (self._total - self._done))
        return f'{left // 60}:{left % 60:02d} left'

    def _show(self) -> None:
        if self._terminal:
            now = time.monotonic()
            if now - self._drawn >= REDRAW or self._done == self._total:
                self._drawn = now
                self._stream.write(f'\r{self.text()} \x1b[K')
                self._stream.flush()
        elif self._done and (
                self._done * LINES // self._total > (self._done - 1) * LINES // self._total):
            self._stream.write(self.text() + '\n')
            self._stream.flush()
