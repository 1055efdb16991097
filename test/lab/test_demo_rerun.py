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
"""Test what the demo sends to Rerun, with the real package where it is installed."""

import subprocess
import sys

import numpy as np
import pytest

from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.demo import rerun_log
from graph_depth_refiner.lab.demo.score import INPUT, Observation, REFINED

SHAPE = (24, 32)
SENT = ('/camera', '/camera/image', '/input/depth', '/input/cloud', '/refined/depth',
        '/refined/cloud', '/refined/normals', '/node/history\\ weight\\ \\(frames\\)',
        '/node/stage\\ solve\\ \\(ms\\)')


def observation():
    """Return a wall 2 m ahead, with a hole in what came."""
    wall = np.full(SHAPE, 2, np.float32)
    normals = np.zeros((*SHAPE, 3), np.float32)
    normals[..., 2] = -1
    came = wall.copy()
    came[3, 4] = np.nan
    return Observation(np.zeros((*SHAPE, 3), np.uint8), Intrinsics(30, 30, 15.5, 11.5), wall,
                       normals, {INPUT: came, REFINED: wall}, {REFINED: normals})


def test_everything_is_in_the_file(tmp_path):
    pytest.importorskip('rerun', reason='pip install rerun-sdk')
    path = tmp_path / 'demo.rrd'
    log = rerun_log.RerunLog(str(path))
    log.frame(12.5, observation())
    log.figures(12.5, {'stage solve (ms)': '3.5', 'history weight (frames)': '4.0',
                       'device': 'cpu'})
    log.close()
    told = subprocess.run(
        [sys.executable, '-m', 'rerun', 'rrd', 'print', '-v', str(path)], capture_output=True,
        text=True)
    assert told.returncode == 0, told.stderr
    for name in SENT:
        assert name in told.stdout, name
    assert 'device' not in told.stdout  # a word is no figure


def test_without_the_package_it_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, 'rerun', None)
    with pytest.raises(ValueError, match='^rerun: expected the package rerun-sdk, got none'):
        rerun_log.check(rerun_log.VIEWER)


def test_a_file_that_cannot_be_written_is_said_at_the_start(tmp_path):
    pytest.importorskip('rerun', reason='pip install rerun-sdk')
    with pytest.raises(ValueError, match='^rerun: expected a file that can be written'):
        rerun_log.check(str(tmp_path / 'nowhere' / 'demo.rrd'))
