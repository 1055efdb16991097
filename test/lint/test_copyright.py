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
"""Every source file carries the licence header, word for word the same."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ('graph_depth_refiner', 'launch', 'scripts', 'test', '.ci')
HEADER = (ROOT / 'graph_depth_refiner' / '__init__.py').read_text().partition('"""')[0]


def sources():
    """List the Python files and the scripts."""
    found = [ROOT / 'setup.py']
    for folder in FOLDERS:
        files = (path for path in (ROOT / folder).rglob('*') if path.is_file())
        found += [path for path in files if path.suffix == '.py' or _is_script(path)]
    return found


def _is_script(path):
    return path.read_bytes()[:2] == b'#!'


@pytest.mark.copyright
@pytest.mark.linter
@pytest.mark.parametrize('path', sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_copyright(path):
    lines = path.read_text().splitlines(keepends=True)
    if lines[0].startswith('#!'):
        del lines[0]
    assert ''.join(lines).startswith(HEADER)
