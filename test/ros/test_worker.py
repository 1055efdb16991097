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
"""One slot, newest wins, nothing kills it."""

import threading

import pytest

from graph_depth_refiner.ros.worker import Ledger, Worker


class Bench:
    """A worker whose jobs wait for leave."""

    def __init__(self):
        self.leave = threading.Semaphore(0)
        self.began = threading.Semaphore(0)
        self.done, self.dropped, self.errors = [], [], []
        self.worker = Worker(
            self.work, lambda job, cause: self.dropped.append((job, cause)),
            lambda job, error: self.errors.append((job, error)))

    def work(self, job):
        self.began.release()
        self.leave.acquire()
        if job == 'bad':
            raise RuntimeError(job)
        self.done.append(job)

    def finish(self):
        """Let everything go and wait for the end."""
        for _ in range(10):
            self.leave.release()
        assert self.worker.stop(10)


@pytest.fixture
def bench():
    made = Bench()
    yield made
    made.finish()


def test_the_newest_wins(bench):
    bench.worker.offer(1)
    bench.began.acquire()
    for job in (2, 3, 4):
        bench.worker.offer(job)
    assert bench.worker.load == 2
    bench.leave.release()
    bench.began.acquire()  # the next has begun
    bench.finish()
    assert bench.done == [1, 4]
    assert bench.dropped == [(2, 'superseded'), (3, 'superseded')]


def test_exceptions_are_handed_over_and_survived(bench):
    for job in ('bad', 'bad', 'good'):
        bench.worker.offer(job)
        bench.began.acquire()
        bench.leave.release()
        while bench.worker.load:
            pass
    assert bench.done == ['good']
    assert [(job, str(error)) for job, error in bench.errors] == [('bad', 'bad')] * 2


def test_what_waits_at_the_end_is_accounted_for(bench):
    bench.worker.offer(1)
    bench.began.acquire()
    bench.worker.offer(2)
    stopper = threading.Thread(target=bench.worker.stop, args=(10,))
    stopper.start()
    bench.leave.release()
    stopper.join()
    bench.worker.offer(3)
    assert bench.done == [1]
    assert bench.dropped == [(2, 'stopped'), (3, 'stopped')]


def test_stop_does_not_wait_for_ever(bench):
    bench.worker.offer(1)
    bench.began.acquire()
    assert not bench.worker.stop(0.01)


def test_a_failing_preparation_is_survived():
    errors, done = [], threading.Event()

    def prepare():
        raise RuntimeError('no device')

    worker = Worker(lambda job: done.set(), None, lambda *what: errors.append(what), prepare)
    worker.offer('job')
    assert done.wait(10)
    assert worker.stop(10)
    assert errors[0][0] is None and str(errors[0][1]) == 'no device'


def test_ledger_counts_from_many_threads():
    ledger = Ledger()
    threads = [
        threading.Thread(target=lambda: [ledger.count('refined') for _ in range(1000)])
        for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.snapshot() == {'refined': 4000}
