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
Where compiled kernels are kept: one folder for one state of the sources.

That is next to the sources, or, where that folder is read-only as in a system-wide
installation, in the user's cache, or in a private temporary folder for a user without a home.
Numba looks at a kernel's own file only to see whether it is still valid, but kernels take in
functions and constants of other files; so the folder is named after the contents of all files
that a kernel may import. This has to be settled before the first kernel is made.
"""

from __future__ import annotations

import hashlib
from importlib import metadata
import os
from pathlib import Path
import sys
import tempfile

VARIABLE = 'NUMBA_CACHE_DIR'
PACKAGE = Path(__file__).resolve().parents[2]
# A test holds kernels to importing nothing else of the package.
COMPILED_IN = ('core/**/*.py', 'frame.py', 'messages/*_num*.py', 'lab/**/*_numba.py')


def settle() -> None:
    """Tell numba, loaded or not, to keep kernels in the folder of the present sources."""
    folder, name = _folder(), key(PACKAGE) + _threads()
    if folder.name != name:  # else a parent process has settled it
        folder /= name
    os.environ[VARIABLE] = str(folder)
    numba = sys.modules.get('numba')
    if numba is not None:
        numba.core.config.CACHE_DIR = os.environ[VARIABLE]


def key(package: Path) -> str:
    """Return a name for the present contents of all files that kernels are made of."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in COMPILED_IN for path in package.glob(pattern)):
        digest.update(path.relative_to(package).as_posix().encode() + b'\0' + path.read_bytes())
    return digest.hexdigest()[:16]


def _threads() -> str:
    """Return what tells numbers of threads apart in numba 0.55, where more than compiled crash."""
    try:
        if not metadata.version('numba').startswith('0.55.'):
            return ''
    except metadata.PackageNotFoundError:
        return ''
    return '-' + (os.environ.get('NUMBA_NUM_THREADS') or str(len(os.sched_getaffinity(0))))


def _folder() -> Path:
    """Return the first folder that can hold the kernels."""
    asked = os.environ.get(VARIABLE)
    if asked:
        return Path(asked)
    beside = PACKAGE / 'core' / '__pycache__'
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
