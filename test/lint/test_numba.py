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
"""Kernels are written so that numba 0.55 compiles them too."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / 'graph_depth_refiner'


def parallel(path):
    """Return the functions of a file that numba makes parallel."""
    return [
        node for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and any('parallel=True' in ast.unparse(one) for one in node.decorator_list)]


@pytest.mark.linter
@pytest.mark.parametrize(
    'path', sorted(PACKAGE.rglob('*_numba.py')), ids=lambda path: path.stem)
def test_parallel_kernels_assign_float_constants_one_by_one(path):
    """`a, b = 0.0, 0.0` ends in `ShapeEquivSet does not support 0.0`; `a = b = 0.0` does not."""
    together = [
        f'{path.name}:{node.lineno}' for kernel in parallel(path) for node in ast.walk(kernel)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
        and any(isinstance(getattr(one, 'value', None), float) for one in node.value.elts)]
    assert not together


def test_parallel_kernels_are_found():
    assert sum(len(parallel(path)) for path in PACKAGE.rglob('*_numba.py')) > 20
