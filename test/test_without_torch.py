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
"""PyTorch is for GPUs: a CPU refines, and the node runs, where there is none."""

import subprocess
import sys

import pytest

pytest.importorskip('numba')

CODE = """
import sys
for name in sys.argv[1].split(','):
    sys.modules[name] = None  # it is not found, and importing it raises ImportError
from scenes import noisy_stream
from graph_depth_refiner import DepthRefiner, preset
for name in ('realtime', 'stereo', 'paper'):
    refiner = DepthRefiner(preset(name), device=sys.argv[2])
    for frame in noisy_stream((48, 32), 2):
        depth = refiner.refine(frame).depth
        print(name, refiner.device, (abs(depth / frame.depth - 1) < 0.1).mean() > 0.8)
"""


def run(missing, device):
    """Return what a process says that lacks some modules."""
    code = f'import sys; sys.path[:0] = {sys.path!r}\n{CODE}'
    return subprocess.run(
        [sys.executable, '-c', code, missing, device], capture_output=True, text=True)


def test_a_cpu_refines_without():
    done = run('torch', 'auto')
    assert done.returncode == 0, done.stderr
    assert done.stdout.split('\n') == [
        f'{name} cpu True' for name in ('realtime', 'stereo', 'paper') for _ in range(2)] + ['']


@pytest.mark.parametrize('missing, device, sentence', [
    ('torch', 'cuda', 'device: expected auto or cpu, for a GPU needs PyTorch, which is not '
     "installed, got 'cuda'"),
    ('torch,numba', 'auto', 'backend: expected numba, or torch, to be installed, got neither: '
     'pip install numba'),
])
def test_what_is_missing_is_said(missing, device, sentence):
    done = run(missing, device)
    assert done.returncode == 1
    assert done.stderr.strip().split('\n')[-1] == f'ValueError: {sentence}'
