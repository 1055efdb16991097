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
"""Run one function over many items: on all cores, or on a dask cluster."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
import multiprocessing
import os
import signal
import sys
import threading
import time
from typing import Any

from graph_depth_refiner.cli.progress import Progress

GO_ON = 'run the same command again to go on'
ATTEMPTS = 2  # a failed item is tried once more
CONNECT_SECONDS = 10
POLL = 0.05  # seconds between two looks at what has ended
ENDED = 128  # a shell adds this to the number of the signal that ended a command

_asked: list[int] = []  # signals that wish this worker to end
_busy = threading.Event()  # this worker is at an item


class Interrupted(KeyboardInterrupt):
    """SIGINT or SIGTERM ended the batch."""

    def __init__(self, number: int) -> None:
        """Keep the number of the signal."""
        super().__init__(number)
        self.code = ENDED + number


@dataclass(frozen=True)
class Outcome:
    """How one item ended."""

    item: Any
    result: Any = None
    error: str = ''  # empty if it went well
    attempts: int = 1


def add_cluster_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option that names a cluster for `run_all`."""
    parser.add_argument(
        '--cluster', default='', metavar='ADDRESS',
        help='run on the dask.distributed cluster at this address, which sees the same files')


def run_all(
        work: Callable[[Any], Any], items: Sequence[Any], cluster: str = '',
        finished: Callable[[Outcome], None] = lambda outcome: None) -> list[Outcome]:
    """
    Return the outcome of every item, in the order of the items.

    `work` and the items travel to other processes, so both must pickle. Items that failed,
    also because their process died, are tried once more, each in a process of its own.
    """
    outcomes: dict[int, Outcome] = {}
    with asked_to_stop() as asked:
        for index, outcome in _run(work, items, cluster, asked):
            outcomes[index] = outcome
            if not outcome.error:
                finished(outcome)
        for index in sorted(i for i, outcome in outcomes.items() if outcome.error):
            (_, again), = _run(work, [items[index]], cluster, asked)
            outcomes[index] = Outcome(again.item, again.result, again.error, ATTEMPTS)
            finished(outcomes[index])
    return [outcomes[index] for index in range(len(items))]


def run_shown(what: str, work: Callable[[Any], Any], items: Sequence[Any], cluster: str = ''
              ) -> list[Outcome]:
    """Do as `run_all` with a progress bar; a signal ends the command in one sentence."""
    progress = Progress(what, len(items))
    try:
        return run_all(work, items, cluster, lambda outcome: progress.advance())
    except Interrupted as interrupted:
        print(f'interrupted; {GO_ON}', file=sys.stderr)
        raise SystemExit(interrupted.code) from None
    finally:
        progress.close()


def report_failures(outcomes: Sequence[Outcome]) -> int:
    """Say on the error stream what failed; return how many went well."""
    failed = [outcome for outcome in outcomes if outcome.error]
    for outcome in failed:
        print(f'failed after {outcome.attempts} attempts: {outcome.error}', file=sys.stderr)
    return len(outcomes) - len(failed)


@contextmanager
def asked_to_stop() -> Iterator[list[int]]:
    """Collect SIGINT and SIGTERM, so that nothing is cut in two; the second one kills."""
    asked: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)

    def ask(number: int, _: object) -> None:
        asked.append(number)
        for one in numbers:
            signal.signal(one, signal.SIG_DFL)

    previous = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def wanted() -> bool:
    """Say whether the work of this process is still wanted; long work asks now and then."""
    return not _asked


def _run(work: Callable[[Any], Any], items: Sequence[Any], cluster: str,
         asked: list[int]) -> Iterator[tuple[int, Outcome]]:
    """Yield the outcomes with the indices of their items as they come."""
    with _cluster(cluster) if cluster else _cores(len(items)) as executor:
        with _deaf_children():
            waiting = {executor.submit(_call, work, item): i for i, item in enumerate(items)}
        while waiting and not asked:
            for future in [future for future in waiting if future.done()]:
                index = waiting.pop(future)
                yield index, _outcome(items[index], future)
            time.sleep(POLL)
        if waiting:
            raise Interrupted(asked[0])


@contextmanager
def _cores(count: int) -> Iterator[Executor]:
    """Give processes on this machine; on an error they end after the item at hand."""
    cores = os.cpu_count() or 1
    workers = max(1, min(cores, count))
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(
            workers, multiprocessing.get_context('spawn'),
            initializer=_begin_worker, initargs=(max(1, cores // workers),)) as pool:
        try:
            yield pool
        except BaseException:
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    """Give the workers of a dask cluster; on an error they end only the item at hand."""
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(
            'cluster: expected the package distributed (pip install distributed), '
            'got an environment without it') from None
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise ValueError(
            f'cluster: expected a dask scheduler at {address!r}, got {error}') from None
    with client:
        # not pure: an equal item may stand for a file that has changed
        executor = client.get_executor(pure=False)
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=False)  # cancels what no worker is at
            raise


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Start processes that do not hear Ctrl-C, which a terminal sends to parent and children."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker(threads: int) -> None:
    """End with the parent, and on SIGTERM after the item at hand."""
    _share_cores(threads)

    def end(number: int, _: object) -> None:
        _asked.append(number)
        if not _busy.is_set():
            os._exit(ENDED + number)

    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)


def _call(work: Callable[[Any], Any], item: Any) -> Any:
    """Do the work on one item in a worker."""
    _busy.set()
    try:
        return work(item)
    finally:
        _busy.clear()
        if _asked:
            os._exit(ENDED + _asked[0])


def _share_cores(threads: int) -> None:
    """Keep the processes from all using every core; results do not depend on it."""
    for name in ('NUMBA_NUM_THREADS', 'OMP_NUM_THREADS'):
        os.environ[name] = str(threads)


def _outcome(item: Any, future: Future) -> Outcome:
    try:
        return Outcome(item, future.result())
    except Exception as error:  # whatever it was: it is reported, and the others go on
        return Outcome(item, error=str(error) or type(error).__name__)
