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
"""On a CPU the same frames give the same bytes: run to run, thread count to thread count."""

import hashlib
import json
import os
import subprocess
import sys

import pytest
from scenes import noisy_stream

from graph_depth_refiner.bags.bags import BagWriter
from graph_depth_refiner.bags.make_bag import messages, topics
from graph_depth_refiner.bags.refinement import BagJob, refine_bag
from graph_depth_refiner.config import NodeConfig, preset, RefinerConfig
from graph_depth_refiner.refiner import DepthRefiner

# two sizes: one with rows to spare for each thread, one with hardly any
SIZES = ((403, 301), (160, 120), (53, 37), (33, 5), (1, 1))  # the first is solved at half
FRAMES = 4


def digest(config):
    """Return a hash of everything that comes out for some short videos."""
    total = hashlib.sha256()
    for size in SIZES:
        refiner = DepthRefiner(config, device='cpu')
        for frame in noisy_stream(size, FRAMES):
            refined = refiner.refine(frame)
            for array in (refined.depth, refined.normals, refined.confidence, refined.provenance):
                total.update(array.tobytes())
            total.update(repr((refined.status, refined.iterations, refined.energy, refined.noise,
                               refined.history, refined.reset)).encode())
    return total.hexdigest()


def digests(presets):
    """Return the hashes of some presets."""
    return {name: digest(preset(name, **{'solver.iterations': 6})) for name in presets}


PRESETS = ('realtime', 'stereo', 'paper')


def in_process(threads):
    """Return the hashes that a process of its own with so many threads comes to."""
    code = f'import json, test_refiner_determinism as t; print(json.dumps(t.digests({PRESETS!r})))'
    environment = {
        **os.environ, 'NUMBA_NUM_THREADS': str(threads), 'OMP_NUM_THREADS': str(threads),
        'PYTHONHASHSEED': str(threads),
        'PYTHONPATH': os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    printed = subprocess.run(
        [sys.executable, '-c', code], env=environment, capture_output=True, text=True, check=True)
    return json.loads(printed.stdout)


@pytest.fixture(scope='module')
def one_thread():
    return in_process(1)


@pytest.mark.parametrize('threads', [1, 2, 3])
def test_processes_of_any_number_of_threads_agree(one_thread, threads):
    assert in_process(threads) == one_thread


def test_number_of_threads_changed_at_run_time(one_thread):
    numba = pytest.importorskip('numba')
    before = numba.get_num_threads()
    for threads in range(1, before + 1):
        numba.set_num_threads(threads)
        try:
            assert digests(PRESETS) == one_thread
        finally:
            numba.set_num_threads(before)


def test_a_reset_refiner_knows_nothing_of_before():
    frames = list(noisy_stream((48, 32), FRAMES))
    fresh = DepthRefiner(device='cpu').refine(frames[0])
    used = DepthRefiner(device='cpu')
    for frame in frames:
        used.refine(frame)
    used.reset()
    again = used.refine(frames[0])
    assert again.depth.tobytes() == fresh.depth.tobytes()
    assert again.normals.tobytes() == fresh.normals.tobytes()


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_a_recording_refined_twice_is_the_same_recording(tmp_path, storage):
    source = tmp_path / 'source'
    source.mkdir()
    writer = BagWriter(source, storage, topics(False), [])
    for frame in noisy_stream((48, 32), FRAMES):
        for message in messages((frame, round(frame.stamp * 1e9)), False):
            writer.write(message)
    writer.finish()
    contents = []
    for name in ('first', 'second'):
        job = BagJob(
            source, tmp_path / name, '', {}, ('depth_refined/image', 'normals/image', 'points'),
            None, 0.1, 0, RefinerConfig(), NodeConfig(), 'cpu')
        assert refine_bag(job).frames == FRAMES
        contents.append({
            path.name: path.read_bytes() for path in (tmp_path / name).iterdir()
            if path.suffix in ('.mcap', '.db3', '.yaml')})
    assert contents[0] == contents[1]
    assert len(contents[0]) == 2
