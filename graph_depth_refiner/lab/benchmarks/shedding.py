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
"""What less work costs in accuracy and saves in CPU time: what the stages of shedding rest on."""

from __future__ import annotations

import argparse
from dataclasses import replace
import json
from pathlib import Path
from typing import Any

import numpy as np

from graph_depth_refiner.cli.main import add_config_arguments, config_from
from graph_depth_refiner.cli.table import format_table
from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.frame import Frame
from graph_depth_refiner.lab.benchmarks.cpu_time import CpuTimes, one_thread
from graph_depth_refiner.lab.benchmarks.node import size
from graph_depth_refiner.lab.benchmarks.stream import Method, Result
from graph_depth_refiner.lab.benchmarks.stream_scores import FIRST, Scores
from graph_depth_refiner.lab.synthetic.stream import COMMAND_ROOM, SyntheticStream, View
from graph_depth_refiner.refiner import DepthRefiner
from graph_depth_refiner.ros.shedding import STAGES

# seed, motion and sensor, in rooms with clutter
STREAMS = ((0, 'moving', 'active-stereo'), (1, 'static', 'structured-light'),
           (2, 'object', 'active-stereo'), (3, 'moving', 'tof'), (4, 'moving', 'independent'))
# what might be shed, besides the stages that are
CANDIDATES: dict[str, dict[str, Any]] = {
    '7 steps': {'solver.iterations': 7}, '5 steps': {'solver.iterations': 5},
    '3 steps': {'solver.iterations': 3}, 'scale 2': {'solver.scale': 2},
    'scale 4': {'solver.scale': 4}, 'no edge gating': {'edges.passes': 0},
    'no filling': {'holes.fill': 'none'}, 'no motion': {'temporal.motion': 'none'},
    'no history': {'temporal.enabled': False}}
# errors that grow by so many percent, and shares of the pixels in percent that change
GROWING = {'depth': 'depth_error_percent', 'normals': 'normal_error_deg',
           'curved': 'curved_error_percent', 'noise': 'temporal_noise_percent'}
CHANGING = {'thin lost': 'thin_lost_percent', 'complete': 'completeness_percent'}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `benchmark shedding`."""
    parser.add_argument('--size', default='640x480', help='of the images (default: %(default)s)')
    parser.add_argument(
        '--frames', type=int, default=16, help='of a stream (default: %(default)s)')
    parser.add_argument('--repeat', type=int, default=3, help='passes, the least of which counts')
    parser.add_argument('--stages-only', action='store_true', help='leave out what is not shed')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the records here')
    add_config_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Measure every stage and candidate on all streams; print a table."""
    if args.frames < 12:
        raise ValueError(f'frames: expected at least 12, got {args.frames}')
    config, shape = config_from(args), size(args.size)
    streams = [
        list(SyntheticStream(*stream, COMMAND_ROOM).views(args.frames))
        for stream in ((seed, shape, motion, sensor) for seed, motion, sensor in STREAMS)]
    works = {f'stage {number}': stage.apply(config, shape[::-1])
             for number, stage in enumerate(STAGES)}
    if not args.stages_only:
        works |= {name: config.with_values(**values) for name, values in CANDIDATES.items()}
    with one_thread():
        records = [{'work': name, **_measured(work, streams, args.repeat)}
                   for name, work in works.items()]
    print(f'{args.size}, mean of {len(STREAMS)} streams: CPU ms of a frame on one thread, and '
          'what changes against stage 0')
    print(format_table(
        ['work', 'CPU ms', 'saved %', *(f'{name} %' for name in (*GROWING, *CHANGING))],
        [_row(record, records[0]) for record in records]))
    if args.json:
        args.json.write_text(json.dumps(records, indent=1) + '\n')
    return 0


def _measured(config: RefinerConfig, streams: list[list[View]], repeat: int
              ) -> dict[str, list[float]]:
    """Return CPU time and errors, each for every stream."""
    found = [{'cpu_ms': _cpu(config, views, repeat), **_scored(config, views)}
             for views in streams]
    return {name: [one[name] for one in found] for name in found[0]}


def _cpu(config: RefinerConfig, views: list[View], repeat: int) -> float:
    spent = CpuTimes()
    for _ in range(repeat):
        spent.follow(_method(config), views)
    return spent.frame(FIRST)


def _scored(config: RefinerConfig, views: list[View]) -> dict[str, float]:
    scores, method = Scores(), _method(config)
    for index, view in enumerate(views):
        result = method(view.frame)
        scores.add(index, view, result.depth, result.normals, 0.0, {}, 0.0)
    record = scores.record('')
    return {name: record[name] for name in (*GROWING.values(), *CHANGING.values())}


def _method(config: RefinerConfig) -> Method:
    refiner = DepthRefiner(config, 'cpu')

    def method(frame: Frame) -> Result:
        refined = refiner.refine(replace(frame, pose=None))
        return Result(refined.depth, refined.normals)
    return method


def _row(record: dict[str, Any], whole: dict[str, Any]) -> list[str]:
    def grown(name: str) -> float:
        return 100 * float(np.mean(np.divide(record[name], whole[name]) - 1))

    changed = [np.mean(np.subtract(record[name], whole[name])) for name in CHANGING.values()]
    return [record['work'], f'{np.mean(record["cpu_ms"]):.1f}', f'{-grown("cpu_ms"):.0f}',
            *(f'{value:+.1f}' for value in (*map(grown, GROWING.values()), *changed))]
