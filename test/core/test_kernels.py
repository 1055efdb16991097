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
"""The choice of kernels: what it refuses, what it imports, and that variants agree on frames."""

from __future__ import annotations

from dataclasses import replace
import logging
import os
from pathlib import Path
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scenes import noisy_stream
import torch

from graph_depth_refiner import refiner as refining
from graph_depth_refiner.config import preset
from graph_depth_refiner.core import kernels as choice
from graph_depth_refiner.core.kernels import Kernels, select, torch_kernels
from graph_depth_refiner.frame import Status
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream
from graph_depth_refiner.refiner import DepthRefiner

ROOT = Path(__file__).parents[2]
# A robust fit or a test for flying pixels may turn out either way where the sides are equal up
# to rounding; such pixels differ by more than these.
FLIPPED_DEPTH, FLIPPED_NORMAL = 1e-3, 1e-2


def refined_by(backend, name, size, values):
    """Return two frames of a stream; all of them are measured but for a hole."""
    baseline = {} if name == 'realtime' else {'baseline': 20 / size[0]}
    refiner = DepthRefiner(preset(name, backend=backend, **values), device='cpu')
    return [refiner.refine(replace(frame, confidence=None))
            for frame in noisy_stream(size, 2, **baseline)]


def distance(one, other):
    """Return the relative difference of two arrays in the l2 norm."""
    return np.linalg.norm(one - other) / np.linalg.norm(other)


def check_agreement(fused, plain, but_for=0.005):
    """Assert that frames are the same to rounding, but for so large a share of the pixels."""
    assert fused.status is plain.status is Status.REFINED
    known, too = np.isfinite(fused.depth), np.isfinite(plain.depth)
    off = np.linalg.norm(fused.normals - plain.normals, axis=-1)
    same = (np.abs(fused.depth / plain.depth - 1) <= FLIPPED_DEPTH) & (off <= FLIPPED_NORMAL)
    if but_for:
        assert (same | ~known & ~too).mean() > 1 - but_for
    else:
        same = known | too  # NaN, where only one is known, is no agreement
    assert distance(fused.depth[same], plain.depth[same]) < 1e-4
    assert distance(fused.normals[same], plain.normals[same]) < 1e-3


@pytest.mark.parametrize('name, size, values', [
    ('realtime', (53, 37), {}), ('realtime', (160, 120), {}),
    ('realtime', (160, 120), {'solver.scale': 2}),
    ('realtime', (53, 37), {'solver.method': 'irls', 'solver.iterations': 20}),
    ('stereo', (53, 37), {}), ('stereo', (160, 120), {}),
    ('paper', (53, 37), {'solver.iterations': 100, 'solver.learning_rate': 0.1}),
    ('paper', (53, 37), {'solver.iterations': 20, 'solver.method': 'irls'})])
def test_variants_agree_on_whole_frames(name, size, values):
    """
    To 1e-4 in depth and 1e-3 in normals, but for at most 0.5 % of the pixels.

    ADAM divides the gradient by its own size: where that is nothing but rounding the step is
    too, which shows more in slopes than in depth, and the more the larger the steps are.
    """
    values = {'solver.iterations': 6, **values}
    for fused, plain in zip(*(refined_by(backend, name, size, values)
                              for backend in ('fused', 'torch'))):
        check_agreement(fused, plain)


@pytest.mark.parametrize('name, seed, sensor, but_for', [
    ('realtime', 2, 'structured-light', 0), ('realtime', 3, 'tof', 0.005),
    ('stereo', 0, 'stereo', 0), ('paper', 1, 'stereo', 0)])
def test_variants_agree_on_a_moving_camera_in_clutter(name, seed, sensor, but_for):
    """
    Of a camera whose motion is estimated, on all pixels where none is flipped.

    The second frame has rounding that the motion, the noise learned and the fusion pass on.
    """
    stream = SyntheticStream(seed, (160, 120), 'moving', sensor, 'clutter')
    frames = [replace(view.frame, pose=None) for view in stream.views(2)]
    refiners = [DepthRefiner(preset(name, backend=backend), device='cpu')
                for backend in ('fused', 'torch')]
    for frame in frames:
        fused, plain = (refiner.refine(frame) for refiner in refiners)
        check_agreement(fused, plain, but_for)
    assert (fused.history > 0.8) == preset(name).temporal.enabled


@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a CUDA device')
@pytest.mark.parametrize('name', ['realtime', 'stereo', 'paper'])
def test_a_device_refines_whole_frames(name):
    refiner = DepthRefiner(preset(name, backend='torch'), device='cuda')
    for frame in noisy_stream((53, 37), 2):
        assert np.isfinite(refiner.refine(frame).depth).any()


def test_every_stage_has_both_variants(variants):
    fused, plain = variants
    assert (fused.name, plain.name) == ('fused', 'torch')
    for name, one, other in zip(Kernels._fields, fused, plain):
        assert one is not None and other is not None
        assert name == 'device' or one is not other
    with pytest.raises(TypeError, match='missing .* required positional argument'):
        Kernels(name='fused', device='cpu')


def test_kernels_are_made_once():
    assert torch_kernels('cpu') is torch_kernels('cpu')


def test_bytes_and_truth_values_keep_their_type(kernels):
    for kind, kept in ((np.uint8, True), (np.bool_, True), (np.float64, False)):
        values = np.ones((2, 3), kind)[:, ::2]  # not contiguous
        found = kernels.numpy(kernels.array(values))
        assert found.dtype == (kind if kept else np.float32)
        assert (found == values).all()


def test_unusable_choices_are_refused():
    """In one sentence each."""
    for device, backend, text in (
            ('gpu', 'auto', "device: expected auto, cpu, cuda or cuda:N, got 'gpu'"),
            ('cuda:99', 'torch', 'device: expected one of'),
            ('cpu', 'fast', 'backend: expected one of')):
        with pytest.raises(ValueError, match=text):
            select(device, backend)


@pytest.fixture
def said(monkeypatch):
    """Return what is said from now on."""
    heard = []
    handler = logging.Handler()  # caplog hears nothing where launch is imported
    handler.emit = lambda record: heard.append(record.getMessage())
    for log in (choice._LOG, refining._LOG):
        monkeypatch.setattr(log, 'handlers', [handler])
        monkeypatch.setattr(log, 'level', logging.INFO)
        log.manager._clear_cache()
    return heard


class OutOfMemoryError(RuntimeError):
    """As torch has it."""


def on_a_device(refiner, backend='torch'):
    """Let a refiner believe that it computes on a device."""
    refiner._choice = refiner._wanted_device = choice.Choice(backend, 'cuda:0')
    refiner.kernels = torch_kernels('cpu')
    return refiner


LOST = RuntimeError('CUDA error: device lost')


@pytest.mark.parametrize('stage, error', [
    ('fit_local_planes', OutOfMemoryError('CUDA out of memory')), ('fit_local_planes', LOST),
    ('adam', RuntimeError('Triton Error [CUDA]: an illegal memory access was encountered')),
    ('search_motion', RuntimeError('cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR')),
    ('fetch', LOST), ('warp', LOST)])
def test_a_full_or_lost_device_is_left_for_the_cpu(stage, error, monkeypatch, said):
    """Whichever stage of the warm-up it happens in: all of it is done, counted and told."""
    refiner = on_a_device(DepthRefiner(device='cpu'))

    def fail(*arguments):
        raise error
    refiner.kernels = refiner.kernels._replace(
        **{stage: fail if stage != 'adam' else SimpleNamespace(init=fail)})
    monkeypatch.setattr(
        choice, 'choose', lambda device: [setattr(refiner, 'kernels', None),
                                          choice.Choice('fused', device)][1])
    refiner.warm_up((24, 32))
    assert refiner.device == 'cpu'
    assert refiner.device_failures == 1
    sentence, = said
    assert 'cuda:0 failed' in sentence and 'the CPU computes' in sentence


def test_a_device_that_compiles_nothing_and_then_fills_up_is_left_too(monkeypatch, said):
    """One after the other in one frame: from Triton to torch, and from there to the CPU."""
    monkeypatch.setattr(choice, '_failed', set())
    refiner = on_a_device(DepthRefiner(device='cpu'), 'triton')
    errors = [ImportError('no libtriton'), OutOfMemoryError('CUDA out of memory')]

    def fail(*arguments):
        raise errors.pop(0)
    refiner.kernels = refiner.kernels._replace(fit_local_planes=fail)
    monkeypatch.setattr(
        choice, 'choose', lambda device: [setattr(refiner, 'kernels', None),
                                          choice.Choice('fused', device)][1])
    frame, = noisy_stream((32, 24), 1)
    assert refiner.refine(frame).status is Status.REFINED
    assert refiner.device == 'cpu' and refiner.device_failures == 1 and not errors


def test_other_errors_are_not_of_the_device():
    refiner = on_a_device(DepthRefiner(device='cpu'))

    def fail(*arguments):
        raise RuntimeError('of another kind')
    refiner.kernels = refiner.kernels._replace(fit_local_planes=fail)
    with pytest.raises(RuntimeError, match='of another kind'):
        refiner.warm_up((24, 32))
    assert refiner.device == 'cuda:0' and refiner.device_failures == 0


def test_where_triton_cannot_compile_torch_serves(monkeypatch, said):
    """From then on, and told once."""
    monkeypatch.setattr(choice, '_failed', set())
    choice._warn_once.cache_clear()
    error = subprocess.CalledProcessError(1, ['cc'])
    triton = choice.Choice('triton', 'cuda:0')
    for _ in range(2):
        assert choice.instead(triton, error) == choice.Choice('torch', 'cuda:0')
    assert ' '.join(said).count('Triton cannot compile for cuda:0') == 1
    assert choice._best('cuda:0') == 'torch'
    assert choice.instead(choice.Choice('torch', 'cuda:0'), error) is None


@pytest.mark.parametrize('there, best', [(5.0, 'cuda:0'), (50.0, 'cpu'), (np.inf, 'cpu')])
def test_auto_takes_the_faster_device(there, best, monkeypatch, said):
    """What was measured is told."""
    triton = choice.Choice('triton', 'cuda:0')
    monkeypatch.setattr(
        refining, 'frame_ms', lambda chosen: there if chosen is triton else 20.0)
    refining.fastest.cache_clear()
    assert refining.fastest(triton).device == best
    assert f'the CPU 20.0 ms: {best} computes' in said[0]
    refining.fastest.cache_clear()


def test_a_frame_is_timed():
    assert 0 < refining.frame_ms(choice.Choice('fused', 'cpu')) < np.inf


def test_what_is_timed_is_a_stream_that_moves():
    refiner = DepthRefiner(device='cpu')
    refined = [refiner.refine(frame) for frame in refining.passed_walls((120, 160), 4)]
    for one in refined[1:]:
        assert one.pose == 'used' and one.history > 0.9 and one.graph_hit_rate < 0.1


def test_a_device_that_fails_while_it_is_timed_is_not_taken(monkeypatch):
    refine = DepthRefiner.refine

    def fails(refiner, frame):
        refiner.device_failures += 1
        return refine(refiner, frame)
    monkeypatch.setattr(refining, 'MEASURED_SIZE', (64, 48))
    monkeypatch.setattr(DepthRefiner, 'refine', fails)
    assert refining.frame_ms(choice.Choice('fused', 'cpu')) == np.inf


def run_python(code: str, **environment: str) -> str:
    """Run code in a process of its own."""
    done = subprocess.run(
        [sys.executable, '-c', code], cwd=ROOT, env={**os.environ, **environment},
        capture_output=True, text=True, check=True)
    return done.stdout


def test_fused_kernels_never_import_torch():
    """It costs seconds, so the first frame must not wait for it."""
    run_python(
        'import sys\n'
        'from graph_depth_refiner.core import kernels\n'
        'from graph_depth_refiner.refiner import DepthRefiner\n'
        'DepthRefiner(device="cpu").warm_up((24, 32))\n'
        'assert kernels.select("cpu").name == "fused"\n'
        'assert not {"torch", "triton"} & set(sys.modules)')


def test_a_refiner_that_refines_nothing_imports_neither_torch_nor_numba():
    run_python(
        'import sys\n'
        'from graph_depth_refiner.refiner import DepthRefiner\n'
        'refiner = DepthRefiner(device="cpu")\n'
        'assert refiner.device == "cpu"\n'
        'assert not {"torch", "numba", "llvmlite"} & set(sys.modules)')


def test_without_numba_torch_takes_over():
    """A missing numba is told and survived."""
    assert run_python(
        'import sys; sys.modules["numba"] = None\n'
        'from importlib import util; found = util.find_spec\n'
        'util.find_spec = lambda name: None if name == "numba" else found(name)\n'
        'from graph_depth_refiner.core import kernels; print(kernels.select("cpu").name)'
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
    monkeypatch.setattr(choice, '_NODES', (str(tmp_path),))  # something that exists
    monkeypatch.setattr(choice._LOG, 'warning', warnings.append)
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    choice._warn_once.cache_clear()
    for _ in range(2):
        assert select('auto').device == 'cpu'
    sentence, = warnings
    assert 'torch sees no CUDA' in sentence
