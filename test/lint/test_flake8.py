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
"""The code keeps ament's flake8 rules."""

from pathlib import Path
import subprocess

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.flake8
@pytest.mark.linter
def test_flake8(monkeypatch):
    main = pytest.importorskip('ament_flake8.main')
    monkeypatch.chdir(ROOT)
    count, errors = main.main_with_errors(argv=['--config', '.flake8'])
    assert count == 0, f'{count} errors:\n' + '\n'.join(errors)


@pytest.mark.linter
def test_ruff():
    ruff = pytest.importorskip('ruff')
    done = subprocess.run(
        [ruff.find_ruff_bin(), 'check', '--no-cache', '--output-format', 'concise', '.'],
        cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
