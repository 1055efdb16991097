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
"""One thread with one slot: the newest job wins, and no job can kill it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
import threading
from typing import Any


class Ledger:
    """Counts what became of every frame, so that nothing is lost without a cause."""

    def __init__(self) -> None:
        """Start with nothing counted."""
        self._lock = threading.Lock()
        self._fates: Counter[str] = Counter()

    def count(self, fate: str, number: int = 1) -> None:
        """Add to one fate."""
        with self._lock:
            self._fates[fate] += number

    def snapshot(self) -> dict[str, int]:
        """Return all counts of one moment."""
        with self._lock:
            return dict(self._fates)


class Worker:
    """
    Works on jobs in a thread of its own.

    A job that comes while another waits takes its place. Jobs that raise are handed to
    `on_error`, and the thread goes on.
    """

    def __init__(self, work: Callable[[Any], None], on_drop: Callable[[Any, str], None],
                 on_error: Callable[[Any, Exception], None],
                 prepare: Callable[[], None] = lambda: None) -> None:
        """
        Start the thread, which first prepares itself.

        `on_drop` is told the job and the cause, `on_error` the job (None while preparing)
        and what it raised.
        """
        self._work, self._on_drop, self._on_error = work, on_drop, on_error
        self._prepare = prepare
        self._wake = threading.Condition()
        self._waiting: Any = None
        self._busy = False
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name='refiner', daemon=True)
        self._thread.start()

    def offer(self, job: Any) -> None:
        """Hand over a job; never blocks for longer than a swap."""
        with self._wake:
            if self._stopped:
                dropped, cause = job, 'stopped'
            else:
                dropped, cause = self._waiting, 'superseded'
                self._waiting = job
                self._wake.notify()
        if dropped is not None:
            self._on_drop(dropped, cause)

    @property
    def load(self) -> int:
        """Return how many jobs wait or are worked on."""
        with self._wake:
            return (self._waiting is not None) + self._busy

    def stop(self, timeout: float) -> bool:
        """End after the job at hand; return whether that came within the time."""
        with self._wake:
            self._stopped = True
            left, self._waiting = self._waiting, None
            self._wake.notify()
        if left is not None:
            self._on_drop(left, 'stopped')
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self._attempt(None, self._prepare)
        while True:
            with self._wake:
                self._busy = False
                self._wake.wait_for(lambda: self._stopped or self._waiting is not None)
                if self._stopped:
                    return
                job, self._waiting = self._waiting, None
                self._busy = True
            self._attempt(job, self._work, job)
            del job  # its messages are not needed while waiting for the next

    def _attempt(self, job: Any, act: Callable[..., None], *arguments: Any) -> None:
        try:
            act(*arguments)
        except Exception as error:
            self._on_error(job, error)
