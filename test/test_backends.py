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
"""All backends do the same, on every device there is, and a step never waits for one."""

from __future__ import annotations

import os
from pathlib import Path
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from graph_depth_refiner.config import preset
from graph_depth_refiner.core import adam_compiled as compiled
from graph_depth_refiner.core import adam_torch as solver
from graph_depth_refiner.core import kernels
from graph_depth_refiner.core.problem import REGULARISERS, Terms
from graph_depth_refiner.lab.benchmarks import reference

ROOT = Path(__file__).parents[1]
DEVICES = ['cpu'] + ['cuda'] * torch.cuda.is_available()
UNIT = 0.005
FIRST_RATE, LAST_RATE, SLOPE_RATE = 0.3, 0.01, 0.05  # noise units


def scene(shape=(48, 64)):
    """Return guide, planes, data and weight: two planes with noise and a hole."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:shape[0], :shape[1]].astype(np.float32)
    left = x < shape[1] // 2
    truth = np.where(left, 0.4 + 0.001 * x, 0.7 - 0.002 * y)
    guide = np.where(left, 0.3, 0.6) + 0.02 * rng.standard_normal(shape)
    d = truth + UNIT * rng.standard_normal(shape)
    m = np.ones(shape)
    m[10:20, 30:45] = 0
    planes = np.stack((np.where(m > 0, d, 0.5), 0 * d, 0 * d))
    return [values.astype(np.float32) for values in (guide, planes, d * m, m)]


def after(stages: kernels.Kernels, steps: int, terms: Terms, dtype=None):
    """Return the planes after so many steps."""
    guide, *arrays = scene()
    w = kernels.select('cpu', 'fused').build_graph(guide, preset('realtime'))
    x, w, d, m = (stages.array(values) for values in (arrays[0], w, *arrays[1:]))
    if dtype is not None:
        x, w, d, m = (values.to(dtype) for values in (x, w, d, m))
    state = stages.adam.init(x, w, d, m, UNIT, terms)
    for k in range(steps):
        rate = FIRST_RATE * (LAST_RATE / FIRST_RATE) ** (k / (steps - 1))
        stages.adam.step(state, rate, SLOPE_RATE * rate)
    return stages.numpy(stages.adam.planes(state))


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Return the difference of inverse depth, relative to its size."""
    return float(np.linalg.norm(a[0] - b[0]) / np.linalg.norm(b[0]))


@pytest.mark.parametrize('device', DEVICES)
@pytest.mark.parametrize('backend', ['fused', 'torch'])
@pytest.mark.parametrize('regulariser', REGULARISERS)
def test_agreement_after_fifty_steps(device, backend, regulariser):
    """To 1e-4 relative of plain torch in float64 on the CPU."""
    if backend == 'fused':
        device = 'cpu'
    terms = Terms(7.5, 5.5, regulariser)
    exact = after(kernels.select('cpu', 'torch'), 50, terms, torch.float64)
    assert difference(after(kernels.select(device, backend), 50, terms), exact) < 1e-4


@pytest.mark.parametrize('device', DEVICES)
def test_compiled_update_is_the_plain_one(device, monkeypatch):
    """One graph without breaks; on a CPU traced only, as that needs no C++ compiler."""
    stages = kernels.select(device, 'compiled')
    if device == 'cpu':
        update = compiled.update('aot_eager')
        monkeypatch.setattr(compiled, 'update', lambda: update)
    terms = Terms(7.5, 5.5)
    plain = after(kernels.select('cpu', 'torch'), 50, terms)
    assert difference(after(stages, 50, terms), plain) < 1e-4


def test_compiled_update_never_runs_out_of_sizes(monkeypatch):
    """Every size is compiled once, whatever the terms; torch keeps only so many."""
    counter = CompileCounter()
    update = torch.compile(solver.adam, fullgraph=True, dynamic=False, backend=counter)
    monkeypatch.setattr(compiled, 'update', lambda: update)
    stages = kernels.select('cpu', 'compiled')
    for height in range(4, 16):
        for lam in (1.0, 7.5):
            x, w = torch.ones(3, height, 5), torch.ones(8, height, 5)
            state = stages.adam.init(x, w, x[0], x[0], UNIT, Terms(lam, 5.5))
            stages.adam.steps(state, [0.1, 0.2], 0.01)
            assert stages.adam.taken(state) == 2
    assert counter.frame_count == 12


@pytest.mark.parametrize('regulariser', REGULARISERS)
def test_a_step_never_reads_back(regulariser):
    """Fake tensors have shapes but no values: whatever asks for one raises."""
    with FakeTensorMode():
        x, d, m = torch.ones(3, 9, 11), torch.ones(9, 11), torch.ones(9, 11)
        w = torch.ones(24, 9, 11)
        state = solver.init(x, w, d, m, UNIT, Terms(7.5, 5.5, regulariser))
        before = state.z
        for _ in range(2):
            solver.step(state, FIRST_RATE, SLOPE_RATE)
        assert state.z is before  # updated in its own memory
        assert state.z.shape == (3, 9, 11)
        with pytest.raises(DataDependentOutputException):
            solver.finite(state)


def test_the_reference_minimises_the_same_energy():
    """The plain lists of neighbours give the energy of the graph, up to the smoothing."""
    guide, x, d, m = scene((20, 30))
    config = preset('paper')
    stages = kernels.select('cpu', 'fused')
    state = stages.adam.init(
        x, stages.build_graph(guide, config), d, m, UNIT,
        Terms(config.energy.reg_lambda, config.energy.reg_alpha))
    tensors = [torch.from_numpy(values) for values in (x, d, m)]
    plain = reference.Solver(
        reference.Lists(torch.from_numpy(guide), config), *tensors, UNIT, config)
    expected = plain.energy().item()
    assert stages.adam.energy(state) / UNIT == pytest.approx(expected, rel=1e-2)
    plain.step()
    assert plain.energy().item() != expected


def test_unusable_choices_are_refused():
    """In one sentence each."""
    for device, backend, text in (
            ('gpu', 'auto', "device: expected auto, cpu, cuda or cuda:N, got 'gpu'"),
            ('cuda:99', 'torch', 'device: expected one of'),
            ('cpu', 'fast', 'backend: expected one of')):
        with pytest.raises(ValueError, match=text):
            kernels.select(device, backend)
    with pytest.raises(AttributeError, match='fused backend: no stage nonsense'):
        _ = kernels.select('cpu', 'fused').nonsense


def run_python(code: str, **environment: str) -> str:
    """Run code in a process of its own."""
    done = subprocess.run(
        [sys.executable, '-c', code], cwd=ROOT, env={**os.environ, **environment},
        capture_output=True, text=True, check=True)
    return done.stdout


def test_fused_backend_never_imports_torch():
    """It costs seconds, so the first frame must not wait for it."""
    run_python(
        'import sys; from graph_depth_refiner import kernels, config\n'
        'kernels.select("cpu").warm_up(config.preset("realtime"))\n'
        'assert kernels.select("cpu").name == "fused"\n'
        'assert "torch" not in sys.modules')


def test_without_numba_torch_takes_over():
    """A missing numba is told and survived."""
    assert run_python(
        'import sys; sys.modules["numba"] = None\n'
        'from importlib import util; found = util.find_spec\n'
        'util.find_spec = lambda name: None if name == "numba" else found(name)\n'
        'from graph_depth_refiner import kernels; print(kernels.select("cpu").name)'
    ) == 'torch\n'


def test_kernels_are_cached_where_the_package_is_read_only(tmp_path):
    """They go to the user's cache; an unusable one is passed over."""
    code = (
        'from pathlib import Path; import tempfile\n'
        'refuse = tempfile.TemporaryFile\n'
        'def only_elsewhere(dir):\n'
        '    if "__pycache__" in str(dir): raise OSError("read-only")\n'
        '    return refuse(dir=dir)\n'
        'tempfile.TemporaryFile = only_elsewhere\n'
        'import graph_depth_refiner.core.jit, os\n'
        'print(os.path.dirname(os.environ["NUMBA_CACHE_DIR"]))')
    home = tmp_path / 'home'
    home.mkdir()
    environment = {'HOME': str(home), 'XDG_CACHE_HOME': '', 'NUMBA_CACHE_DIR': ''}
    assert run_python(code, **environment) == f'{home}/.cache/graph_depth_refiner\n'
    nowhere = tmp_path / 'file'
    nowhere.write_text('')
    folder = Path(run_python(
        code, **{**environment, 'HOME': str(nowhere), 'TMPDIR': str(tmp_path)}).strip())
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o077 == 0


def test_a_device_that_torch_does_not_see_is_warned_of_once(monkeypatch, tmp_path):
    warnings = []
    monkeypatch.setattr(kernels, '_NODES', (str(tmp_path),))  # something that exists
    monkeypatch.setattr(kernels._LOG, 'warning', warnings.append)
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    kernels._warn_once.cache_clear()
    for _ in range(2):
        assert kernels.select('auto').device == 'cpu'
    sentence, = warnings
    assert 'torch sees no CUDA' in sentence
