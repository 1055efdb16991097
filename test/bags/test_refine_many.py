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

import signal
import subprocess
import sys
import time

from bag_helpers import write_bag
import pytest

from graph_depth_refiner.bags.bags import reading
from graph_depth_refiner.cli.main import main

FEW = ('--set', 'solver.iterations=2')


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


def test_a_pattern_on_a_cluster_of_two_workers(recordings, tmp_path, capsys, monkeypatch):
    distributed = pytest.importorskip('distributed')
    monkeypatch.chdir(tmp_path)  # the workers stay there
    with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        monkeypatch.chdir(recordings)
        code = main([
            'refine-bag', 'in/*', str(tmp_path / 'out'), *FEW,
            '--cluster', cluster.scheduler_address])
    assert code == 1
    check(recordings, tmp_path / 'out', capsys.readouterr())


def test_interrupted_recordings_are_closed_and_go_on(tmp_path):
    for name in ('a', 'b'):
        write_bag(tmp_path / 'in' / name, 1000)
    command = [sys.executable, '-m', 'graph_depth_refiner', 'refine-bag', str(tmp_path / 'in'),
               str(tmp_path / 'out'), *FEW]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    begun = [tmp_path / 'out' / name / 'unfinished' for name in ('a', 'b')]
    while run.poll() is None and not any(path.exists() for path in begun):
        time.sleep(0.01)
    run.send_signal(signal.SIGTERM)
    _, said = run.communicate()
    assert run.returncode == 143
    assert said == 'interrupted; run the same command again to go on\n'
    left = [path.parent for path in begun if path.parent.exists()]
    assert left
    for folder in left:
        assert not (folder / 'unfinished').exists()
        with reading(folder) as bag:
            assert bag.count('/camera/depth_refined/image') < 1000
    assert subprocess.run(command, capture_output=True).returncode == 0
    assert contents(tmp_path / 'out/a') == contents(tmp_path / 'out/b')
