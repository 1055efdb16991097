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
"""The names that the package offers, and the example of the README."""

from pathlib import Path
import re
import subprocess
import sys

import numpy as np
import pytest

import graph_depth_refiner

ROOT = Path(__file__).parent.parent
HEAVY = ('torch', 'numba', 'rclpy')


def heavy_after(code):
    """Return which heavy modules a fresh process has imported after this code."""
    report = f'; import sys; print([name for name in {HEAVY!r} if name in sys.modules])'
    done = subprocess.run(
        [sys.executable, '-c', code + report], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize('code', [
    'import graph_depth_refiner',
    'from graph_depth_refiner import DepthRefiner, Frame',
    'from graph_depth_refiner import *; DepthRefiner(preset("stereo"))',
])
def test_importing_is_cheap(code):
    assert heavy_after(code) == '[]'


def test_names_are_listed_and_there():
    assert set(graph_depth_refiner.__all__) <= set(dir(graph_depth_refiner))
    for name in graph_depth_refiner.__all__:
        value = getattr(graph_depth_refiner, name)
        assert value.__name__ == name
        assert value.__module__.startswith('graph_depth_refiner.')


def test_type_checkers_see_the_names():
    text = Path(graph_depth_refiner.__file__).read_text()
    block = re.search(r'if TYPE_CHECKING:\n((?:    .*\n)+)', text)[1]
    named = {name for line in re.findall(r'import (.*)', block) for name in line.split(', ')}
    assert named == set(graph_depth_refiner.__all__)
    assert (Path(graph_depth_refiner.__file__).parent / 'py.typed').is_file()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'graph_depth_refiner' has no attribute 'nothing'"):
        getattr(graph_depth_refiner, 'nothing')  # noqa: B009


def test_the_example_of_the_readme_runs(capsys):
    example, = re.findall(r'```python\n(.*?)```', (ROOT / 'README.md').read_text(), re.DOTALL)
    names = {}
    exec(example, names)
    depth, normals = names['refined'].depth, names['refined'].normals
    assert 'Status.REFINED' in capsys.readouterr().out
    # a wall 2 m ahead: no holes are left, less than half of the noise of 2 cm, normals towards
    # the camera
    assert np.abs(depth - 2).mean() < np.nanmean(np.abs(names['depth'] - 2)) / 2
    assert np.median(normals[..., 2]) < -0.95
