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
"""Docstrings keep PEP 257 as ament reads it."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.linter
@pytest.mark.pep257
def test_pep257():
    main = pytest.importorskip('ament_pep257.main').main
    paths = [str(ROOT / name) for name in ('graph_depth_refiner', 'launch', 'scripts', 'test')]
    assert main(argv=paths) == 0
