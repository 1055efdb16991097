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
"""What people read about the tunables is what the code says."""

from pathlib import Path

import pytest

from graph_depth_refiner.cli import tables
from graph_depth_refiner.config import RefinerConfig

ROOT = Path(__file__).parents[2]


def test_the_page_of_parameters_is_up_to_date():
    text = (ROOT / tables.PAGE).read_text(encoding='utf-8')
    hint = f'run: scripts/run python -m graph_depth_refiner config --write {tables.PAGE}'
    assert tables.renewed(text) == text, hint


def test_every_tunable_has_its_row():
    rows = [line for line in tables.markdown().splitlines() if line.startswith('| `')]
    names = [name for kind in tables.sets() for name in kind.tunables()]
    assert [row.split('`')[1] for row in rows] == names
    one = RefinerConfig.tunables()['graph.window']
    row = next(row for row in rows if '`graph.window`' in row)
    assert row == (f'| `graph.window` | `{one.default}` | {one.bounds} | {one.unit} '
                   f'| {one.meaning} |')


def test_only_the_marked_part_is_renewed():
    text = f'before\n{tables.BEGIN}\nstale row\n{tables.END}\nafter\n'
    got = tables.renewed(text)
    assert got.startswith(f'before\n{tables.BEGIN}\n')
    assert got.endswith(f'{tables.END}\nafter\n')
    assert 'stale row' not in got
    assert tables.renewed(got) == got


def test_text_without_marks_is_refused():
    with pytest.raises(ValueError, match='^text: expected the marks'):
        tables.renewed('nothing here')
