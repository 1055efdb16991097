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
"""The key of the kernel cache: another one whenever something that is compiled in changes."""

from __future__ import annotations

import ast
from pathlib import Path
import shutil

import pytest

from graph_depth_refiner.core.jit import cache

NAME = cache.PACKAGE.name


@pytest.fixture
def package(tmp_path):
    """Return a copy of the package's sources."""
    return Path(shutil.copytree(
        cache.PACKAGE, tmp_path / NAME, ignore=shutil.ignore_patterns('__pycache__')))


def test_a_copy_has_the_same_key(package):
    assert cache.key(package) == cache.key(cache.PACKAGE)


@pytest.mark.parametrize('file, before, after', [
    ('core/patch_graph.py', '\nBAND = 16', '\nBAND = 8'),
    ('core/jit/options.py', '\nU = np.uint64', '\nU = np.uint32'),
    ('frame.py', 'CORRECTED = 2', 'CORRECTED = 4')])
def test_what_is_compiled_in_is_part_of_the_key(package, file, before, after):
    text = (package / file).read_text()
    assert text.count(before) == 1
    (package / file).write_text(text.replace(before, after))
    assert cache.key(package) != cache.key(cache.PACKAGE)


def test_a_new_stage_is_part_of_the_key(package):
    (package / 'core' / 'another_numba.py').write_text('')
    assert cache.key(package) != cache.key(cache.PACKAGE)


def test_ros_is_no_part_of_the_key(package):
    for path in (package / 'ros').glob('*.py'):
        path.write_text('')
    assert cache.key(package) == cache.key(cache.PACKAGE)


@pytest.mark.parametrize('numba, apart', [('0.55.2', True), ('0.56.4', False), (None, False)])
def test_numbers_of_threads_have_their_own_kernels_in_numba_055(monkeypatch, numba, apart):
    def version(_):
        if numba is None:
            raise cache.metadata.PackageNotFoundError
        return numba

    monkeypatch.setattr(cache.metadata, 'version', version)
    names = []
    for threads in ('2', '3'):
        monkeypatch.setenv('NUMBA_NUM_THREADS', threads)
        monkeypatch.setenv(cache.VARIABLE, 'kernels')
        cache.settle()
        names.append(cache.os.environ[cache.VARIABLE])
    assert (names[0] != names[1]) == apart


def imported(path: Path) -> set[str]:
    """Return the modules and names of this package that a file imports, dotted."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or '').startswith(NAME):
            found |= {f'{node.module}.{name.name}' for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names if name.name.startswith(NAME)}
    return found


@pytest.mark.parametrize(
    'path', sorted(cache.PACKAGE.rglob('*_numba.py')), ids=lambda path: path.stem)
def test_kernels_import_only_what_the_key_covers(path):
    """
    The configuration is read in Python only, where numbers are handed to kernels.

    A file that imports nothing of the package needs no key: numba looks at the file itself.
    """
    covered = {file for pattern in cache.COMPILED_IN for file in cache.PACKAGE.glob(pattern)}
    assert path in covered or not imported(path)
    for name in imported(path) - {f'{NAME}.config.RefinerConfig'}:
        parts = name.split('.')[1:]
        files = {cache.PACKAGE.joinpath(*parts[:end]).with_suffix('.py')
                 for end in (len(parts) - 1, len(parts)) if end}
        assert files & covered, name
