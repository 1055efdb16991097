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
Fused kernels for a CPU: the numba twins of the plain torch modules, without torch.

Compiled kernels are kept on disk: next to the sources, or, where that folder is read-only as
in a system-wide installation, in the user's cache, or in a private temporary folder for a
user without a home. Numba looks at a kernel's own file only to see whether it is still
valid, but kernels take in functions and constants of other files; so the folder is named
after the contents of all of them. This has to be settled before the first kernel is made.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
import sys
import tempfile

# Numba tells kernels apart by the path of their file, and colcon links to the sources: they
# have one path, however the package is reached, or they would be compiled once for each.
__path__ = [str(Path(__file__).resolve().parent)]
_VARIABLE = 'NUMBA_CACHE_DIR'


def _writable(folder: Path) -> bool:
    """Tell whether files can be made in the folder, which is made if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _private(folder: Path) -> bool:
    """Tell whether the folder is ours alone: code is loaded from it."""
    status = folder.stat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _digest() -> str:
    """Return a name for the present contents of the kernels and their constants."""
    here = Path(__path__[0])
    files = (*here.glob('*.py'), *here.parent.glob('*_rules.py'), here.parent / 'problem.py')
    text = b''.join(path.read_bytes() for path in sorted(files))
    return hashlib.sha256(text).hexdigest()[:16]


def _cache_folder() -> Path:
    """Return the first folder that can hold the kernels."""
    asked = os.environ.get(_VARIABLE)
    if asked:
        return Path(asked)
    beside = Path(__path__[0]) / '__pycache__'
    if _writable(beside):
        return beside
    cache = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    folders = (
        Path(cache) / 'graph_depth_refiner',
        Path(tempfile.gettempdir()) / f'graph_depth_refiner_{os.getuid()}')
    for folder in folders:
        if folder.is_absolute() and _writable(folder) and _private(folder):
            return folder
    return Path(tempfile.mkdtemp(prefix='graph_depth_refiner_'))


def _settle_cache() -> None:
    folder, digest = _cache_folder(), _digest()
    if folder.name != digest:  # else a parent process has settled it
        folder /= digest
    os.environ[_VARIABLE] = str(folder)
    if 'numba' in sys.modules:
        sys.modules['numba'].core.config.CACHE_DIR = os.environ[_VARIABLE]


# Threads that wait for the next kernel sleep: OpenMP's default is to spin for ever. But waking
# one takes 0.1 ms, as long as some kernels do, so it first spins for some 0.3 ms, which is more
# than the time from one kernel of a frame to the next. The node asks for less.
os.environ.setdefault('OMP_WAIT_POLICY', 'passive')
os.environ.setdefault('GOMP_SPINCOUNT', '15000')
_settle_cache()
