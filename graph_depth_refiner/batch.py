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

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed, Future, ProcessPoolExecutor
from dataclasses import dataclass
import multiprocessing
import os
from typing import Any

ATTEMPTS = 2  # a failed item is tried once more
CONNECT_SECONDS = 10


@dataclass(frozen=True)
class Outcome:
    """How one item ended."""

    item: Any
    result: Any = None
    error: str = ''  # empty if it went well
    attempts: int = 1


def run_all(
        work: Callable[[Any], Any], items: Sequence[Any], cluster: str = '',
        finished: Callable[[Outcome], None] = lambda outcome: None) -> list[Outcome]:
    """
    Return the outcome of every item, in the order of the items.

    `work` and the items travel to other processes, so both must pickle. Items that failed,
    also because their process died, are tried once more, each in a process of its own.
    """
    run = _on_cluster(cluster) if cluster else _on_cores
    outcomes: dict[int, Outcome] = {}
    for index, outcome in run(work, items):
        outcomes[index] = outcome
        if not outcome.error:
            finished(outcome)
    for index in sorted(i for i, outcome in outcomes.items() if outcome.error):
        (_, again), = run(work, [items[index]])
        outcomes[index] = Outcome(again.item, again.result, again.error, ATTEMPTS)
        finished(outcomes[index])
    return [outcomes[index] for index in range(len(items))]


def _on_cores(
        work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[tuple[int, Outcome]]:
    cores = os.cpu_count() or 1
    workers = max(1, min(cores, len(items)))
    with ProcessPoolExecutor(
            workers, multiprocessing.get_context('spawn'),
            initializer=_share_cores, initargs=(max(1, cores // workers),)) as pool:
        waiting = {pool.submit(work, item): index for index, item in enumerate(items)}
        try:
            for future in as_completed(waiting):
                yield waiting[future], _outcome(items[waiting[future]], future)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _share_cores(threads: int) -> None:
    """Keep the processes from all using every core; results do not depend on it."""
    for name in ('NUMBA_NUM_THREADS', 'OMP_NUM_THREADS'):
        os.environ[name] = str(threads)


def _on_cluster(address: str) -> Callable[..., Iterator[tuple[int, Outcome]]]:
    try:
        from distributed import as_completed as dask_completed
        from distributed import Client
    except ImportError:
        raise ValueError(
            'cluster: expected the package distributed (pip install distributed), '
            'got an environment without it') from None

    def run(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[tuple[int, Outcome]]:
        try:
            client = Client(address, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise ValueError(
                f'cluster: expected a dask scheduler at {address!r}, got {error}') from None
        with client:
            # not pure: an equal item may stand for a file that has changed
            waiting = {
                client.submit(work, item, pure=False): index for index, item in enumerate(items)}
            for future in dask_completed(list(waiting)):
                yield waiting[future], _outcome(items[waiting[future]], future)

    return run


def _outcome(item: Any, future: Future) -> Outcome:
    try:
        return Outcome(item, future.result())
    except Exception as error:  # whatever it was: it is reported, and the others go on
        return Outcome(item, error=str(error) or type(error).__name__)
