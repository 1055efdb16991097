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
"""What was found about recordings, as text and as a folder with a page and panels."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

import cv2
import numpy as np

from graph_depth_refiner.cli.table import format_table
from graph_depth_refiner.files.pictures import (
    depth_colors,
    depth_range,
    fitted,
    panel,
    Picture,
    png,
    UNJUDGED,
)
from graph_depth_refiner.lab.evaluation.baselines import OURS
from graph_depth_refiner.lab.evaluation.depth_normals import fitted_normals
from graph_depth_refiner.lab.evaluation.evaluate import format_value
from graph_depth_refiner.lab.evaluation.recording.judging import JudgedFrame, Verdict
from graph_depth_refiner.lab.evaluation.recording.methods import Output
from graph_depth_refiner.lab.evaluation.recording.scores import (
    filled_depth,
    FIT_RADII,
    Measure,
    MEASURES,
    relative_error,
)
from graph_depth_refiner.lab.evaluation.recording.sources import Recording
from graph_depth_refiner.lab.evaluation.report import STYLE

BEST = 1.005  # times the best value is as good as it
NOTHING = '-'
WIDTH = 400  # px, of each picture
FULL_ERROR = 2.0  # percent that takes the end of the colour scale
LIGHT = np.array([-0.45, -0.6, -0.66])  # unit, from where shaded normals are lit
ABSOLUTE = ('invented', 'history', 'ms')  # are not taken relative to the input
Table = dict[str, dict[str, float]]  # by method and measure


def headline(verdict: Verdict) -> str:
    """Return what was judged in one line."""
    return (
        f'{verdict.recording}: sensor {verdict.sensor} ({verdict.sensor_reason}), camera '
        f'{"at rest" if verdict.at_rest else "in motion"}, frames '
        f'{", ".join(map(str, verdict.frames))}')


def columns(table: Table) -> list[Measure]:
    """Return the measures that any method has."""
    return [m for key, m in MEASURES.items() if any(key in row for row in table.values())]


def format_scores(table: Table) -> str:
    """Return a table for a terminal, the best of each column marked."""
    shown = columns(table)
    return format_table(
        ['', *(f'{m.title} ' for m in shown)],
        [[method, *(f'{_cell(row, m)}{"*" if is_best(table, method, m) else " "}' for m in shown)]
         for method, row in table.items()])


def is_best(table: Table, method: str, measure: Measure) -> bool:
    """Say whether no method is clearly better."""
    values = [row[measure.key] for row in table.values() if measure.key in row]
    return (measure.ranked and measure.key in table[method]
            and table[method][measure.key] <= BEST * min(values))


def overall(tables: Iterable[Table]) -> Table:
    """Return geometric means over recordings, relative to the input, so that none outweighs."""
    tables = [table for table in tables if 'input' in table]
    means: Table = {}
    for method in tables[0] if tables else ():
        rows = [(table[method], table['input']) for table in tables if method in table]
        means[method] = {}
        for key in MEASURES:
            if key in ABSOLUTE:
                values = [row[key] for row, _ in rows if key in row]
                mean = np.mean(values) if values else np.nan
            else:
                ratios = [np.log(max(row[key], 1e-6) / max(base[key], 1e-6))
                          for row, base in rows if key in row and key in base]
                mean = np.exp(np.mean(ratios)) if ratios else np.nan
            if np.isfinite(mean):
                means[method][key] = float(mean)
    return means


def _cell(row: dict[str, float], measure: Measure) -> str:
    return format_value(row[measure.key]) if measure.key in row else NOTHING


# pictures

class Panels:
    """Collects the pictures of the judged frames of one recording."""

    def __init__(self, recording: Recording) -> None:
        """Start without pictures."""
        self._recording = recording
        self._rows: dict[int, list[list[Picture]]] = {}

    def add(self, frame: JudgedFrame, method: str, output: Output) -> None:
        """Add depth, error and shaded normals of one method."""
        number, regions = frame.number, frame.regions
        span = depth_range(frame.reference.depth)
        if number not in self._rows:
            self._rows[number] = [[
                _picture('image', self._recording.frame(number).image),
                _picture('reference', depth_colors(frame.reference.depth, span)),
                _picture('normals of the reference', shaded(frame.reference.normals))]]
        estimate = output.estimate
        normals = estimate.normals
        if normals is None:
            normals = fitted_normals(
                filled_depth(estimate.depth), self._recording.camera, FIT_RADII[0])
            normals[~np.isfinite(estimate.depth)] = np.nan  # of what was filled in to be judged
        error = relative_error(estimate.depth, regions)
        self._rows[number].append([
            _picture(f'{method}: depth', depth_colors(estimate.depth, span)),
            _picture(f'{method}: error, +-{FULL_ERROR:g} %', error_colors(error)),
            _picture(f'{method}: normals', shaded(normals))])

    def write(self, folder: Path) -> list[Path]:
        """Write one picture a frame and return the files."""
        files = []
        for number, rows in self._rows.items():
            path = folder / f'{self._recording.name}_{number:05d}.png'
            path.write_bytes(png(panel(rows, WIDTH)))
            files.append(path)
        return files


def error_colors(error: np.ndarray) -> np.ndarray:
    """Show signed errors (H W, percent): red is too far, blue too near, grey is not judged."""
    level = np.clip(np.nan_to_num(error) / FULL_ERROR, -1, 1)[..., None]
    far, near = np.array([178, 24, 43]), np.array([33, 102, 172])
    colors = 255 + np.where(level > 0, level * (far - 255), -level * (near - 255))
    colors = np.rint(colors).astype(np.uint8)
    colors[~np.isfinite(error)] = UNJUDGED
    return colors  # H W 3


def shaded(normals: np.ndarray) -> np.ndarray:
    """Show normals as a grey surface under one lamp; black is unknown."""
    known = np.isfinite(normals).all(-1)
    light = np.clip(0.15 + 0.85 * np.nan_to_num(normals) @ LIGHT, 0, 1) * known
    return cv2.cvtColor(np.rint(255 * light).astype(np.uint8), cv2.COLOR_GRAY2RGB)


def _picture(title: str, pixels: np.ndarray) -> Picture:
    """Return a picture that is no larger than it is shown."""
    if pixels.shape[1] > WIDTH:
        pixels = cv2.resize(pixels, fitted(pixels, WIDTH), interpolation=cv2.INTER_AREA)
    return Picture(title, pixels)


# the page

def write_page(folder: Path, verdicts: list[Verdict], panels: dict[str, list[Path]]) -> Path:
    """Write index.html beside the panels and return its path."""
    meanings = ''.join(
        f'<li>{escape(m.title)}: {escape(m.meaning)}</li>' for m in MEASURES.values())
    body = [f'<h1>Judged by later frames</h1><ul>{meanings}</ul>']
    if len(verdicts) > 1:
        means = overall(verdict.table() for verdict in verdicts)
        body.append(f'<h2>All recordings, relative to the input</h2>{_html(means)}')
    for verdict in verdicts:
        notes = ''.join(f'<li>{escape(note)}</li>' for note in verdict.notes)
        images = ''.join(
            f'<p><img src="{escape(path.name)}" alt="{escape(path.stem)}"></p>'
            for path in panels[verdict.recording])
        body.append(f'<h2>{escape(headline(verdict))}</h2>{_html(verdict.table())}'
                    f'<ul>{notes}</ul>{images}')
    path = folder / 'index.html'
    path.write_text(
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Recordings</title>'
        f'<link rel="icon" href="data:,"><style>{STYLE}</style></head><body>{"".join(body)}'
        '</body></html>', encoding='utf-8')
    return path


def _html(table: Table) -> str:
    shown = columns(table)
    head = ''.join(f'<th>{escape(title)}</th>' for title in ('', *(m.title for m in shown)))
    rows = []
    for method, row in table.items():
        cells = ''.join(
            f'<td{" class=best" if is_best(table, method, m) else ""}>{_cell(row, m)}</td>'
            for m in shown)
        mark = ' class=ours' if method.startswith(OURS) else ''
        rows.append(f'<tr{mark}><td>{escape(method)}</td>{cells}</tr>')
    return f'<table><tr>{head}</tr>{"".join(rows)}</table>'
