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

import pytest

from graph_depth_refiner.batch import run_all


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


def same(item):
    """Return the item."""
    return item


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


def test_no_cluster_there_is_one_sentence(monkeypatch):
    pytest.importorskip('distributed')
    monkeypatch.setattr('graph_depth_refiner.batch.CONNECT_SECONDS', 0.2)
    with pytest.raises(ValueError, match='cluster: expected a dask scheduler'):
        run_all(same, [1], 'tcp://127.0.0.1:9')
