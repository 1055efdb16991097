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
code agree to the last bit, so every process loads it, the first one too.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
from pathlib import Path
import subprocess
import sys

from graph_depth_refiner.core.jit import cache

_LOG = logging.getLogger(__name__)
_COMPILING = 'GRAPH_DEPTH_REFINER_COMPILES'  # set in the process that does


@functools.cache
def compile_once() -> None:
    """See to it that the kernels are stored; if that cannot be, they are compiled here."""
    if _marker().exists() or os.environ.get(_COMPILING):
        return
    _LOG.info('compiling the kernels, once, for a minute or two')
    # the same package from the same place, whatever lies in the present folder
    environment = {**os.environ, _COMPILING: '1',
                   'PYTHONPATH': os.pathsep.join(map(os.path.abspath, sys.path))}
    try:
        _marker().parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [sys.executable, '-m', cache.PACKAGE.name, 'warm-up', '--device', 'cpu'],
            env=environment, cwd=_marker().parent, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode == 0:
            _marker().touch()
            return
        reason = done.stderr.decode(errors='replace').strip().rpartition('\n')[2]
    except OSError as error:
        reason = str(error)
    _LOG.warning('kernels: expected to store them, got %r; compiled again in each process',
                 reason)


def _marker() -> Path:
    """Return the file that tells that all kernels are stored, as numba tells them apart."""
    from llvmlite import binding
    import numba

    of = (str(cache.PACKAGE), sys.version, numba.__version__, binding.get_host_cpu_name())
    name = hashlib.sha256(repr(of).encode()).hexdigest()[:16]
    return Path(os.environ[cache.VARIABLE]) / f'complete-{name}'
