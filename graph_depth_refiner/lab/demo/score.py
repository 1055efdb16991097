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
"""What the demo says: a table, a panel, and whether refining was worth it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from graph_depth_refiner.cli.table import format_table
from graph_depth_refiner.files.pictures import depth_colors, depth_range, panel, Picture, png
from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.evaluation.depth_normals import fitted_normals
from graph_depth_refiner.lab.evaluation.filters import fill_nearest
from graph_depth_refiner.lab.synthetic.regions import find_regions
from graph_depth_refiner.messages.outgoing import normal_colors

INPUT, REALSENSE, REFINED = 'input', 'RealSense-style', 'refined'
INVENTED_LIMIT = 1.0  # percent of the pixels without a surface that may have a value
WORST = 0.05  # relative depth error that takes the end of the colour scale
WIDTH = 8  # characters of a column of the table, at least
TILE = 240  # px, width of each picture of the panel
MAX_BYTES = 480_000  # of the panel as a file
COLUMNS = (
    ('depth error %', 'depth_error_percent', 3), ('plane %', 'plane_error_percent', 3),
    ('curved %', 'curved_error_percent', 3), ('normal error deg', 'normal_error_deg', 2),
    ('holes %', 'holes_percent', 1), ('invented %', 'invented_percent', 1),
    ('ms/frame', 'ms_per_frame', 1), ('latency ms', 'latency_ms', 1), ('drops', 'drops', 0))

Stamp = tuple[int, int]  # seconds, nanoseconds


@dataclass(frozen=True, eq=False)
class Observation:
    """One frame as it came, as it is, and as it was made."""

    image: np.ndarray  # H W 3 uint8
    intrinsics: Intrinsics
    true_depth: np.ndarray  # H W metres, NaN where unknown or nothing is
    true_normals: np.ndarray  # H W 3, NaN likewise
    depths: dict[str, np.ndarray]  # by method, H W metres
    normals: dict[str, np.ndarray]  # by method, H W 3; those missing are fitted


def normals_of(seen: Observation, method: str) -> np.ndarray:
    """Return the normals of a method: its own, or fitted to its depth where it has none."""
    if method in seen.normals:
        return seen.normals[method]
    return fitted_normals(filled(seen.depths[method]), seen.intrinsics)


def filled(depth: np.ndarray) -> np.ndarray:
    """Close the gaps with the nearest value, which costs nothing and is better than nothing."""
    return fill_nearest(np.where(depth > 0, depth, np.nan).astype(np.float32))


def depth_error(seen: Observation, method: str) -> np.ndarray:
    """Return the relative error, gaps closed, H W; NaN where the truth is unknown."""
    return np.abs(filled(seen.depths[method]) - seen.true_depth) / seen.true_depth


def is_exact(seen: Observation) -> bool:
    """Say whether the truth is known exactly, or only by measurements that were withheld."""
    return bool(np.isfinite(seen.true_normals).any())


def typical_error(seen: Observation, method: str) -> float | None:
    """Return the error of a frame in percent: the mean, or the median where truth is measured."""
    error = depth_error(seen, method)
    if not np.isfinite(error).any():
        return None
    # withheld measurements have flying pixels of their own, which a mean would be made of
    return float(100 * (np.nanmean(error) if is_exact(seen) else np.nanmedian(error)))


def score(observations: Sequence[Observation], method: str) -> dict[str, float | None]:
    """
    Return the mean errors of a method over all frames; None where there is no truth.

    With exact truth, errors on planes and on what is neither plane nor depth edge are told apart,
    holes count where there is a surface, and a value where there is none is invented.
    """
    frames = [_frame_scores(seen, method) for seen in observations]
    found = {key: [frame[key] for frame in frames if frame[key] is not None] for key in frames[0]}
    return {key: float(np.mean(values)) if values else None for key, values in found.items()}


def _frame_scores(seen: Observation, method: str) -> dict[str, float | None]:
    estimated = seen.depths[method] > 0
    scores = dict.fromkeys(
        ('plane_error_percent', 'curved_error_percent', 'normal_error_deg', 'invented_percent'))
    scores['depth_error_percent'] = typical_error(seen, method)
    if not is_exact(seen):
        return {**scores, 'holes_percent': _percent(~estimated)}
    exists = np.isfinite(seen.true_depth)
    error = 100 * depth_error(seen, method)
    regions = find_regions(seen.true_depth, seen.true_normals)
    for name in ('plane', 'curved'):
        if regions[name].any():
            scores[f'{name}_error_percent'] = float(np.nanmean(error[regions[name]]))
    known = np.isfinite(seen.true_normals[..., 0])
    cosine = (np.nan_to_num(normals_of(seen, method)) * seen.true_normals).sum(-1)[known]
    scores['normal_error_deg'] = float(np.degrees(np.arccos(np.clip(cosine, -1, 1))).mean())
    if not exists.all():
        scores['invented_percent'] = _percent(estimated[~exists])
    return {**scores, 'holes_percent': _percent(~estimated[exists])}


def _percent(mask: np.ndarray) -> float:
    return float(100 * mask.mean())


def is_better(rows: dict[str, dict[str, float | None]]) -> bool:
    """
    Say whether the refined depth is better than the input in depth, normals and holes.

    Holes that are filled where there is nothing to see do not count as better.
    """
    before, after = rows[INPUT], rows[REFINED]
    judged = [k for k in ('depth_error_percent', 'normal_error_deg') if before[k] is not None]
    return (
        bool(judged)
        and all(after[key] is not None and after[key] < before[key] for key in judged)
        and after['holes_percent'] <= before['holes_percent']
        and (after['invented_percent'] or 0) <= INVENTED_LIMIT)


def dropped(came: Mapping[Stamp, float], refined: Collection[Stamp], since: float,
            until: float) -> int:
    """Count depth images that came between two times, and of which nothing came back."""
    return sum(since <= at <= until and stamp not in refined for stamp, at in came.items())


def median(values: Sequence[float]) -> float | None:
    """Return the median; None of nothing."""
    return float(np.median(values)) if values else None


def format_rows(rows: dict[str, dict[str, float | None]]) -> str:
    """Return the table for a terminal."""
    return format_table(
        ['', *(title for title, _, _ in COLUMNS)],
        [[method, *(_cell(row.get(key), digits) for _, key, digits in COLUMNS)]
         for method, row in rows.items()])


def panel_file(seen: Observation) -> bytes:
    """Return the panel as a PNG small enough for a README."""
    for width in range(TILE, 0, -TILE // 10):
        data = png(draw(seen, width))
        if len(data) <= MAX_BYTES:
            break
    return data


def draw(seen: Observation, width: int = TILE) -> np.ndarray:
    """Return the panel of a frame: image and truth on the left, then one column per method."""
    span = depth_range(seen.depths[REFINED])
    rows = [
        [Picture('image', seen.image)],
        [Picture('true depth', depth_colors(seen.true_depth, span))],
        [Picture('true normals', normal_colors(seen.true_normals))]]
    for method, depth in seen.depths.items():
        rows[0].append(Picture(f'{method}: depth', depth_colors(depth, span)))
        rows[1].append(Picture(
            f'{method}: error {_cell(typical_error(seen, method), 2)} %',
            _error_colors(depth_error(seen, method))))
        normals = normals_of(seen, method)
        normals = np.where((depth > 0)[..., None], normals, np.float32(np.nan))
        rows[2].append(Picture(f'{method}: normals', normal_colors(normals)))
    return panel(rows, width)


def _error_colors(error: np.ndarray) -> np.ndarray:
    level = np.rint(np.clip(np.nan_to_num(error) / WORST, 0, 1) * 255).astype(np.uint8)
    colors = cv2.cvtColor(cv2.applyColorMap(level, cv2.COLORMAP_INFERNO), cv2.COLOR_BGR2RGB)
    colors[~np.isfinite(error)] = 128
    return colors  # H W 3


def _cell(value: float | None, digits: int) -> str:
    return '-' if value is None else f'{value:.{digits}f}'
