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
"""Test many recordings and files at once, on cores and on a real cluster of two workers."""

from bag_helpers import write_bag
import pytest

from graph_depth_refiner.cli import main

FEW = ('--set', 'iterations=2')


@pytest.fixture(scope='module')
def recordings(tmp_path_factory):
    """Write three recordings, the second damaged, and refine one as a reference."""
    folder = tmp_path_factory.mktemp('recordings')
    for name in ('a', 'b', 'c'):
        write_bag(folder / 'in' / name, 3)
    damaged = folder / 'in' / 'b' / 'part_0.mcap'
    damaged.write_bytes(damaged.read_bytes()[:-100])
    assert main(['refine-bag', str(folder / 'in/a'), str(folder / 'reference'), *FEW]) == 0
    return folder


def contents(folder):
    """Return the bytes of every file of a recording."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def check(folder, out, said):
    """Check that the good ones are there as the reference is, and the bad one was said."""
    assert contents(out / 'a') == contents(folder / 'reference')
    assert contents(out / 'c') == contents(folder / 'reference')
    assert not (out / 'b').exists()
    assert '2 of 3 recordings complete' in said.out
    assert 'b: failed after 2 attempts' in said.err
    assert 'truncated' in said.err


def test_a_folder_on_all_cores(recordings, tmp_path, capsys):
    assert main(['refine-bag', str(recordings / 'in'), str(tmp_path / 'out'), *FEW]) == 1
    check(recordings, tmp_path / 'out', capsys.readouterr())


def test_a_pattern_on_a_cluster_of_two_workers(recordings, tmp_path, capsys):
    distributed = pytest.importorskip('distributed')
    with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        code = main([
            'refine-bag', str(recordings / 'in' / '*'), str(tmp_path / 'out'), *FEW,
            '--cluster', cluster.scheduler_address])
    assert code == 1
    check(recordings, tmp_path / 'out', capsys.readouterr())
