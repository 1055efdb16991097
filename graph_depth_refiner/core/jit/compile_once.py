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
"""
Compile the kernels in a process of their own before the first of them is used.

A process that compiles a parallel kernel does not run the very code that it stores: numba
optimises the stored one once more, and rounding may differ. All processes that load the stored
code agree to the last bit, so every process loads it, the first one too. Only the kernels of
the preset in use are compiled; what settings beyond it need is compiled where it is used.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
from pathlib import Path
import subprocess
import sys
import time

from graph_depth_refiner.config import nearest_preset, RefinerConfig
from graph_depth_refiner.core.jit import cache

_LOG = logging.getLogger(__name__)
_COMPILING = 'GRAPH_DEPTH_REFINER_COMPILES'  # set in the process that does
_REPORT = 5.0  # seconds between two lines that say how far it is


def warm_up_arguments(config: RefinerConfig) -> tuple[str, ...]:
    """Return the arguments with which the command warm-up compiles what a configuration uses."""
    return ('--preset', nearest_preset(config), '--set', f'solver.method={config.solver.method}')


@functools.cache
def compile_once(arguments: tuple[str, ...]) -> None:
    """See to it that kernels are stored; if that cannot be, they are compiled here."""
    marker = _marker(arguments)
    if marker.exists() or os.environ.get(_COMPILING):
        return
    _LOG.info('compiling the kernels of preset %s, once, for half a minute or more', arguments[1])
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        reason = _compile(arguments, marker.parent)
        if not reason:
            marker.touch()
            return
    except OSError as error:
        reason = str(error)
    _LOG.warning('kernels: expected to store them, got %r; compiled again in each process',
                 reason)


def _compile(arguments: tuple[str, ...], folder: Path) -> str:
    """Run the command warm-up; return what it complains of if it fails, else nothing."""
    # the same package from the same place, whatever lies in the present folder
    environment = {**os.environ, _COMPILING: '1',
                   'PYTHONPATH': os.pathsep.join(map(os.path.abspath, sys.path))}
    start, before = time.monotonic(), _stored(folder)
    running = subprocess.Popen(
        [sys.executable, '-m', cache.PACKAGE.name, 'warm-up', '--device', 'cpu', *arguments],
        env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE)
    while True:
        try:
            complaint = running.communicate(timeout=_REPORT)[1].decode(errors='replace').strip()
            break
        except subprocess.TimeoutExpired:
            _LOG.info('compiling: %d kernels after %.0f s', _stored(folder) - before,
                      time.monotonic() - start)
    if running.returncode:
        return complaint.rpartition('\n')[2] or f'exit code {running.returncode}'
    _LOG.info('%d kernels compiled in %.0f s', _stored(folder) - before,
              time.monotonic() - start)
    return ''


def _stored(folder: Path) -> int:
    """Return how many kernels are stored."""
    return sum(1 for _ in folder.rglob('*.nbi'))


def _marker(arguments: tuple[str, ...]) -> Path:
    """Return the file that tells that these kernels are stored, as numba tells them apart."""
    from llvmlite import binding
    import numba

    of = (str(cache.PACKAGE), sys.version, numba.__version__, binding.get_host_cpu_name(),
          arguments)
    name = hashlib.sha256(repr(of).encode()).hexdigest()[:16]
    return Path(os.environ[cache.VARIABLE]) / f'complete-{name}'
