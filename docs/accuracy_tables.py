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
Write the tables of accuracy in README.md and docs/accuracy.md from what the evaluations found.

scripts/run python -m graph_depth_refiner evaluate recording RECORDING... --json recordings.json
scripts/run python -m graph_depth_refiner evaluate middlebury FOLDER --json middlebury.json
scripts/run python docs/accuracy_tables.py recordings.json middlebury.json
"""

from __future__ import annotations

import json
from pathlib import Path
import sys

from graph_depth_refiner.lab.evaluation import markdown
from graph_depth_refiner.lab.evaluation.baselines import OURS
from graph_depth_refiner.lab.evaluation.evaluate import average, format_value
from graph_depth_refiner.lab.evaluation.recording.report import columns, is_best

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / 'docs' / 'accuracy.md'
TITLES = {
    'cup_d400_static': 'RealSense D400, at rest', 'kitchen_kinect': 'Kinect v1, hand-held',
    'lab_d400_handheld': 'RealSense D400, hand-held', 'hololens_tof': 'HoloLens ToF, head-worn'}
METHODS = {
    'bilateral': 'bilateral filter', 'realsense': 'RealSense-style filter',
    'running-average': 'running average', 'weighted-median': 'weighted median'}
STEREO = {'SGBM': 'Middlebury v3, OpenCV SGBM', 'BM': 'Middlebury v3, OpenCV BM'}
# of a recording and of Middlebury: the measure of depth and that of normals
CAMERA_MEASURES, STEREO_MEASURES = ('plane', 'plane_normals'), ('bad1', 'normal_mean')

Table = dict[str, dict[str, float]]  # by method and measure


def main() -> None:
    """Renew all tables."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    recordings, stereo = (json.loads(Path(path).read_text()) for path in sys.argv[1:])
    renew(ROOT / 'README.md', 'accuracy', short_table(recordings, stereo))
    renew(PAGE, 'recordings', '\n\n'.join(map(recording_table, recordings)))
    methods = ','.join(dict.fromkeys(record['method'] for record in stereo))
    markdown.write(PAGE, stereo, 'scripts/run python -m graph_depth_refiner evaluate middlebury '
                   f'middlebury_v3_Q --methods {methods}')


def renew(path: Path, name: str, text: str) -> None:
    """Put a text between the marks of this name in a file."""
    begin, end = f'<!-- {name} -->', f'<!-- /{name} -->'
    before, found, rest = path.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f'{path}: expected the lines {begin} and {end}, got a file without them')
    path.write_text(f'{before}{begin}\n{text}\n{end}{after}')


def short_table(recordings: list[dict], stereo: list[dict]) -> str:
    """Return the six rows of the README."""
    lines = ['| | depth: input | best other | ours | normals: input | best other | ours |',
             '| --- |' + ' ---: |' * 6]
    for verdict in recordings:
        lines.append(_row(title(verdict), verdict['table'], 'input', CAMERA_MEASURES))
    for name, words in STEREO.items():
        table = {record['method']: record for record in average(stereo)
                 if record['input'] == name}
        lines.append(_row(words, table, 'raw', STEREO_MEASURES))
    return '\n'.join(lines)


def _row(words: str, table: Table, came: str, measures: tuple[str, str]) -> str:
    cells = [words]
    for measure in measures:
        others = {method: row[measure] for method, row in table.items()
                  if method not in (came, OURS)}
        best = min(others, key=others.__getitem__)
        ours = table[OURS][measure]
        cells += [format_value(table[came][measure]),
                  f'{_marked(others[best], ours)} ({METHODS.get(best, best)})',
                  _marked(ours, others[best])]
    return '| ' + ' | '.join(cells) + ' |'


def _marked(value: float, rival: float) -> str:
    return f'**{format_value(value)}**' if value <= rival else format_value(value)


def recording_table(verdict: dict) -> str:
    """Return all measures of one recording."""
    table = verdict['table']
    shown = [measure for measure in columns(table) if measure.key != 'history']
    lines = [f'| {title(verdict)} | ' + ' | '.join(m.title for m in shown) + ' |',
             '| --- |' + ' ---: |' * len(shown)]
    for method, row in table.items():
        cells = ['-' if m.key not in row else f'**{format_value(row[m.key])}**'
                 if m.key != 'ms' and is_best(table, method, m) else format_value(row[m.key])
                 for m in shown]
        lines.append(f'| {METHODS.get(method, method)} | ' + ' | '.join(cells) + ' |')
    return '\n'.join(lines)


def title(verdict: dict) -> str:
    """Return what the table calls a recording."""
    return TITLES.get(verdict['recording'], verdict['recording'])


if __name__ == '__main__':
    main()
