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
"""Test that no item of a batch is lost, on cores and on a cluster."""

import os
from pathlib import Path
import signal
import subprocess
import sys
import time

import pytest

from graph_depth_refiner.cli.batch import Interrupted, run_all


def square(item):
    """Return the square; refuse 3."""
    if item == 3:
        raise ValueError('item: expected anything but 3, got 3')
    return item * item


def die_once(marker):
    """Kill the own process the first time, as the kernel does when memory runs out."""
    if not os.path.exists(marker):
        Path(marker).touch()
        os._exit(9)
    return 'survived'


def rest(seconds):
    """Do nothing for some time."""
    time.sleep(seconds)


def same(item):
    """Return the item."""
    return item


SLOW = """
import os
from pathlib import Path
import sys
import time

from graph_depth_refiner.cli.batch import Interrupted, run_all, wanted


def work(folder):
    path = Path(folder) / str(os.getpid())
    path.write_text('open')
    while wanted():
        time.sleep(0.01)
    path.write_text('closed')


if __name__ == '__main__':
    try:
        run_all(work, [sys.argv[1]] * 5)
    except Interrupted as interrupted:
        sys.exit(interrupted.code)
"""


def alive(pid):
    """Say whether a process runs; one that ended and was not waited for does not."""
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except OSError:
        return False


def wait_for(condition):
    """Wait until it holds."""
    while not condition():
        time.sleep(0.01)


@pytest.fixture
def slow_batch(tmp_path):
    """Run five items that take for ever; return the parent and a function to the workers."""
    script, folder = tmp_path / 'slow.py', tmp_path / 'items'
    script.write_text(SLOW)
    folder.mkdir()
    parent = subprocess.Popen(
        [sys.executable, str(script), str(folder)], start_new_session=True)
    count = min(5, os.cpu_count())
    wait_for(lambda: len(list(folder.iterdir())) == count or parent.poll() is not None)
    yield parent, lambda: {int(p.name): p.read_text() for p in folder.iterdir()}
    parent.kill()
    parent.wait()


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize('send', [os.kill, os.killpg])  # by a script, or by a terminal to all
def test_an_interrupted_batch_ends_its_workers_after_their_items(slow_batch, number, send):
    parent, workers = slow_batch
    send(parent.pid, number)
    assert parent.wait() == 128 + number
    assert set(workers().values()) == {'closed'}
    assert not any(map(alive, workers()))


def test_workers_end_with_a_killed_parent(slow_batch):
    parent, workers = slow_batch
    parent.kill()
    wait_for(lambda: not any(map(alive, workers())))


def test_results_come_in_order_and_failures_are_reported():
    seen = []
    outcomes = run_all(square, [1, 2, 3, 4], finished=seen.append)
    assert [o.result for o in outcomes] == [1, 4, None, 16]
    assert outcomes[2].error == 'item: expected anything but 3, got 3'
    assert outcomes[2].attempts == 2
    assert sorted(o.item for o in seen) == [1, 2, 3, 4]


def test_an_item_whose_process_died_is_tried_again(tmp_path):
    outcome, = run_all(die_once, [str(tmp_path / 'marker')])
    assert (outcome.result, outcome.error, outcome.attempts) == ('survived', '', 2)


def test_two_worker_cluster_gives_the_same_results():
    distributed = pytest.importorskip('distributed')
    with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        outcomes = run_all(square, [1, 2, 3, 4], cluster.scheduler_address)
    assert [o.result for o in outcomes] == [1, 4, None, 16]
    assert outcomes[2].error == 'item: expected anything but 3, got 3'


def test_an_interrupted_batch_leaves_the_cluster():
    distributed = pytest.importorskip('distributed')
    asked = []

    def ask_once(outcome):
        if not asked:
            asked.append(outcome)
            os.kill(os.getpid(), signal.SIGINT)

    with distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with pytest.raises(Interrupted) as interrupted:
            run_all(rest, [0, 2, 2, 2], cluster.scheduler_address, ask_once)
        with distributed.Client(cluster) as client:
            assert client.submit(square, 5).result() == 25
    assert interrupted.value.code == 130


def test_no_cluster_there_is_one_sentence(monkeypatch):
    pytest.importorskip('distributed')
    monkeypatch.setattr('graph_depth_refiner.cli.batch.CONNECT_SECONDS', 0.2)
    with pytest.raises(ValueError, match='cluster: expected a dask scheduler'):
        run_all(same, [1], 'tcp://127.0.0.1:9')
