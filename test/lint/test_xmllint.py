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
"""XML files are well formed, by xmllint where it is installed."""

from pathlib import Path
import shutil
import subprocess
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
FILES = [ROOT / 'package.xml', *sorted((ROOT / 'config').rglob('*.xml'))]


@pytest.mark.linter
@pytest.mark.xmllint
@pytest.mark.parametrize('path', FILES, ids=lambda path: path.name)
def test_xmllint(path):
    if not shutil.which('xmllint'):
        ElementTree.parse(path)  # raises where it is not well formed
        return
    done = subprocess.run(['xmllint', '--noout', path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
