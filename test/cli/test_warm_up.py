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
"""Test that the warm-up loads every kernel that the first frames need."""

from dataclasses import replace
import fcntl
from importlib import import_module
from logging.handlers import BufferingHandler
import os
from pathlib import Path
import pkgutil
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from graph_depth_refiner import core, messages
from graph_depth_refiner.cli.main import main
from graph_depth_refiner.cli.warm_up import LOCK
from graph_depth_refiner.config import preset, PRESETS
from graph_depth_refiner.core.downsampling import BIG
from graph_depth_refiner.core.jit import cache, compile_once
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream
from graph_depth_refiner.messages import outgoing
from graph_depth_refiner.refiner import DepthRefiner

SMALL, LARGE = (96, 72), (480, 320)
REALTIME = compile_once.warm_up_arguments(preset('realtime'))


def loaded():
    """Return the signatures that the kernels are loaded for, by module and name."""
    modules = [import_module(f'{package.__name__}.{m.name}')
               for package in (core, messages) for m in pkgutil.iter_modules(package.__path__)
               if m.name.endswith('_numba')]
    assert modules
    return {
        (module.__name__, name): len(kernel.signatures)
        for module in modules for name, kernel in vars(module).items()
        if hasattr(kernel, 'signatures')}


@pytest.fixture(scope='module')
def warm():
    pytest.importorskip('numba')
    assert main(['warm-up', '--device', 'cpu']) == 0
    return loaded()


@pytest.mark.parametrize('name', PRESETS)
@pytest.mark.parametrize('size', [SMALL, LARGE])
def test_the_first_frames_compile_nothing(warm, name, size):
    assert SMALL[0] * SMALL[1] < BIG < LARGE[0] * LARGE[1]
    stream = SyntheticStream(0, size)
    refiner = DepthRefiner(preset(name), 'cpu')
    for number in range(2):
        refiner.refine(stream.view(number).frame)
    frame = stream.view(0).frame
    refiner.reset()
    refiner.refine(replace(
        frame, image=np.ascontiguousarray(frame.image[..., 0]), confidence=None,
        intrinsics=replace(frame.intrinsics, baseline=0.1)))
    assert loaded() == warm


def test_the_first_messages_compile_nothing(warm):
    frame = SyntheticStream(0, SMALL).view(0).frame
    refined = DepthRefiner(preset('realtime'), 'cpu').refine(frame)
    outgoing.cloud_fields(frame, refined)
    outgoing.depth_fields(refined.depth, '16UC1')
    outgoing.normal_color_fields(refined.normals)
    ours = {key: count for key, count in loaded().items() if 'messages' in key[0]}
    assert ours.items() <= warm.items()
    assert {name for (_, name), count in ours.items() if count} >= {
        'cloud_points', 'millimetres', 'normal_colors', '_decode'}


@pytest.fixture
def empty_store(monkeypatch, tmp_path):
    pytest.importorskip('numba')
    monkeypatch.setenv('NUMBA_CACHE_DIR', str(tmp_path / 'store'))
    return tmp_path / 'store'


def test_kernels_are_stored_by_another_process_once(monkeypatch, empty_store):
    monkeypatch.setattr(sys, 'executable', shutil.which('true'))
    compile_once.compile_once.__wrapped__(REALTIME)
    assert [file.name.partition('-')[0] for file in empty_store.iterdir()] == ['complete']
    monkeypatch.setattr(sys, 'executable', '/there/is/none')
    compile_once.compile_once.__wrapped__(REALTIME)  # needs it no more


def test_how_far_it_is_is_said(monkeypatch, empty_store):
    said = BufferingHandler(100)
    monkeypatch.setattr(compile_once._LOG, 'handlers', [said])
    compile_once._LOG.setLevel('INFO')
    slow = empty_store.parent / 'slow'
    slow.write_text('#!/bin/sh\ntouch a.nbi\nsleep 0.5\n')
    slow.chmod(0o755)
    monkeypatch.setattr(sys, 'executable', str(slow))
    monkeypatch.setattr(compile_once, '_REPORT', 0.2)
    compile_once.compile_once.__wrapped__(REALTIME)
    lines = [record.getMessage() for record in said.buffer]
    assert lines[0].startswith('compiling the kernels of preset realtime, once')
    assert lines[1] == 'compiling: 1 kernels after 0 s'
    assert lines[-1].startswith('1 kernels compiled in ')


def is_lock(file):
    """Tell whether a file that a process has open is the lock; it may be closed by now."""
    try:
        return os.path.basename(os.readlink(file)) == LOCK
    except FileNotFoundError:
        return False


def test_one_process_compiles_at_a_time_and_ends_with_who_asked(empty_store):
    """Nodes that start together need one compilation, and one that is stopped needs none."""
    empty_store.mkdir()
    store = empty_store / cache.key(cache.PACKAGE)  # as a parent process settles it
    store.mkdir()
    command = f'{sys.executable} -m graph_depth_refiner warm-up --device cpu --preset realtime'
    with open(store / LOCK, 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        asking = subprocess.Popen(
            ['sh', '-c', f'{command} & echo $!; wait'], stdout=subprocess.PIPE, text=True,
            env={**os.environ, compile_once._COMPILING: '1', cache.VARIABLE: str(store)})
        compiling = Path('/proc') / asking.stdout.readline().strip()
        end = time.monotonic() + 60
        while time.monotonic() < end and not any(
                is_lock(file) for file in (compiling / 'fd').iterdir()):
            time.sleep(0.1)
        time.sleep(3)  # in which a kernel or more would be compiled
        assert compiling.exists() and not list(store.rglob('*.nbi'))
        asking.kill()
        asking.wait()
        while compiling.exists() and time.monotonic() < end:
            time.sleep(0.1)
        assert not compiling.exists()


@pytest.mark.parametrize('name', PRESETS)
def test_only_what_a_preset_uses_is_compiled(name):
    config = preset(name, **{'solver.iterations': 3, 'depth.max': 5.0})
    assert compile_once.warm_up_arguments(config) == (
        '--preset', name, '--set', 'solver.method=adam')
    irls = config.with_values(**{'solver.method': 'irls'})
    assert compile_once.warm_up_arguments(irls)[-1] == 'solver.method=irls'


@pytest.mark.parametrize('python', [shutil.which('false'), '/there/is/none'])
def test_kernels_that_cannot_be_stored_are_compiled_here(
        monkeypatch, empty_store, python):
    said = BufferingHandler(100)
    monkeypatch.setattr(compile_once._LOG, 'handlers', [said])
    monkeypatch.setattr(sys, 'executable', python)
    compile_once.compile_once.__wrapped__(REALTIME)
    assert 'kernels: expected to store them, got' in said.buffer[-1].getMessage()
    assert not list(empty_store.iterdir())


def test_kernels_are_the_same_however_the_package_is_reached(tmp_path):
    pytest.importorskip('numba')
    package = cache.PACKAGE
    (tmp_path / package.name).symlink_to(package)
    seen = [subprocess.run(
        [sys.executable, '-c', 'from graph_depth_refiner.core.jit.compile_once import _marker;'
         'from graph_depth_refiner.core import local_planes_numba as kernels;'
         'print(_marker(()), kernels.__file__)'],
        cwd=folder, capture_output=True, text=True, check=True).stdout
        for folder in (tmp_path, package.parent)]
    assert seen[0] == seen[1] != ''
