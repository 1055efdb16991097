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
"""The averages of an evaluation as part of a Markdown file."""

from __future__ import annotations

from pathlib import Path

from graph_depth_refiner.files.reading import read_text
from graph_depth_refiner.lab.evaluation.evaluate import (
    average,
    best,
    coverage,
    format_value,
    losses,
    measures,
    Record,
    scenes,
)

BEGIN, END = '<!-- evaluate -->', '<!-- /evaluate -->'
LEFT_OUT = ('bad3', 'missing', 'normal_below11.25')  # the table is wide enough


def write(path: Path, records: list[Record], command: str) -> None:
    """Put tables and losses between the marks of a file."""
    before, after = split(path)
    path.write_text(f'{before}{BEGIN}\n{render(records, command)}\n{END}{after}')


def split(path: Path) -> tuple[str, str]:
    """Return what stands before and after the marks of a file."""
    before, begin, rest = read_text(path).partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f'{path}: expected the lines {BEGIN} and {END}, got a file without them')
    return before, after


def render(records: list[Record], command: str) -> str:
    """Return the tables of averages, best values bold, and where ours loses in single scenes."""
    names = scenes(records)
    parts = [f'Averages of {len(names)} scenes ({", ".join(names)}), made by', '',
             f'```bash\n{command}\n```', '']
    averages = average(records)
    for name in dict.fromkeys(record['input'] for record in records):
        table = [record for record in averages if record['input'] == name]
        counted = [record for record in records if record['input'] == name]
        parts += [_table(name, table), '']
        parts += [f'{said}.\n' for said in (coverage(counted), losses(table)) if said]
    return '\n'.join([*parts, *_single_scenes(records)])


def _table(name: str, records: list[Record]) -> str:
    keys = [key for key in measures(records[0]) if key not in LEFT_OUT]
    lines = [f'| input {name} | ' + ' | '.join([*keys, 'ms']) + ' |',
             '| --- |' + ' ---: |' * (len(keys) + 1)]
    for record in records:
        cells = [
            f'**{format_value(record[key])}**' if record[key] == best(records, key)
            else format_value(record[key]) for key in keys]
        lines.append(
            f'| {record["method"]} | ' + ' | '.join([*cells, format_value(record['ms'])]) + ' |')
    return '\n'.join(lines)


def _single_scenes(records: list[Record]) -> list[str]:
    lost = []
    for scene, name in dict.fromkeys((r['scene'], r['input']) for r in records):
        table = [r for r in records if (r['scene'], r['input']) == (scene, name)]
        if 'loses' in losses(table):
            lost.append(f'- {scene}, {name}: {losses(table)}')
    return ['In single scenes:', '', *lost] if lost else []
