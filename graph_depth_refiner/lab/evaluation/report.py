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
"""The evaluation as one HTML page that needs nothing else."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path

import cv2
import numpy as np

from graph_depth_refiner.files.pictures import (
    depth_colors,
    depth_range,
    error_mask,
    fitted,
    image_colors,
    jpeg,
)
from graph_depth_refiner.lab.evaluation.baselines import absent, OURS
from graph_depth_refiner.lab.evaluation.cases import Case
from graph_depth_refiner.lab.evaluation.evaluate import (
    average,
    best,
    coverage,
    format_value,
    losses,
    measures,
    Record,
    Result,
)
from graph_depth_refiner.messages.outgoing import normal_colors

WIDTH = 360  # px, of each picture
STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 1200px; color: #222 }
table { border-collapse: collapse; margin: 1em 0 }
th, td { padding: 2px 8px; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left }
td.best { font-weight: bold } tr.ours { background: #eef6ee }
.panel { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 6px }
figure { margin: 0 } figure img { width: 100%; display: block; image-rendering: auto }
figcaption { font-size: 12px; color: #555 } .lost { color: #8a1c1c }
"""


class Report:
    """Collects scenes and writes the page."""

    def __init__(self, folder: Path, title: str) -> None:
        """Make the folder, so that a wrong path is known before hours of work."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._title = folder, title
        self._sections: list[str] = []

    def add(self, case: Case, results: list[Result], lost: str) -> None:
        """Add the panel of one scene: image and truth, then every method."""
        span = depth_range(case.truth)
        figures = [
            _figure('image', image_colors(case.task.frame.image)),
            _figure('ground truth', depth_colors(case.truth, span)),
            _figure('normals of the ground truth', normal_colors(
                case.true_normals().astype(np.float32)))]
        for result in results:
            bad, judged = case.bad(result.estimate)
            share = 100 * bad.sum() / max(1, judged.sum())
            figures += [
                _figure(f'{result.method}: {share:.1f} % off by more than '
                        f'{case.limit:g} {case.unit}', error_mask(bad, judged)),
                _figure(f'{result.method}: depth', depth_colors(result.estimate.depth, span)),
                _figure(f'{result.method}: normals',
                        normal_colors(case.normals(result.estimate).astype(np.float32)))]
        records = [result.record for result in results]
        self._sections.append(
            f'<h2>{escape(case.scene)}, input {escape(case.source)}</h2>'
            f'<p>{escape(case.note)}</p>{_table(records)}<p class="lost">{escape(lost)}</p>'
            f'<div class="panel">{"".join(figures)}</div>')

    def write(self, records: list[Record]) -> Path:
        """Write the page, with the averages of the records, and return its path."""
        summary = []
        for name in dict.fromkeys(record['input'] for record in records):
            counted = [record for record in records if record['input'] == name]
            table = average(counted)
            summary.append(
                f'<h2>Average, input {escape(name)}</h2>{_table(table)}'
                f'<p>{escape(coverage(counted))}</p>'
                f'<p class="lost">{escape(losses(table))}</p>')
        gone = ''.join(
            f'<p>{escape(name)}: absent, {escape(reason)}</p>'
            for name, reason in absent().items())
        page = (
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
            f'<title>{escape(self._title)}</title><link rel="icon" href="data:,">'
            f'<style>{STYLE}</style></head><body><h1>{escape(self._title)}</h1>'
            '<p>Bad pixels and missing pixels in percent, normals in degrees; every pixel with '
            'ground truth counts, a missing one as an error. Milliseconds are those of the depth '
            f'alone, for {OURS} and the other solvers with normals.</p>'
            f'{"".join(summary)}{gone}{"".join(self._sections)}</body></html>')
        path = self._folder / 'index.html'
        path.write_text(page, encoding='utf-8')
        return path


def _figure(title: str, pixels: np.ndarray) -> str:
    small = cv2.resize(pixels, fitted(pixels, WIDTH), interpolation=cv2.INTER_AREA)
    data = base64.b64encode(jpeg(small)).decode('ascii')
    return (
        f'<figure><img src="data:image/jpeg;base64,{data}" alt="{escape(title)}">'
        f'<figcaption>{escape(title)}</figcaption></figure>')


def _table(records: list[Record]) -> str:
    keys = [*measures(records[0]), 'ms']
    head = ''.join(f'<th>{escape(key)}</th>' for key in ('', *keys))
    rows = []
    for record in records:
        cells = ''.join(
            f'<td{" class=best" if key != "ms" and record[key] == best(records, key) else ""}>'
            f'{format_value(record[key])}</td>' for key in keys)
        mark = ' class=ours' if record['method'].startswith(OURS) else ''
        rows.append(f'<tr{mark}><td>{escape(record["method"])}</td>{cells}</tr>')
    return f'<table><tr>{head}</tr>{"".join(rows)}</table>'
