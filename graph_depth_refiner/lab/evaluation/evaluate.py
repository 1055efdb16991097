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
"""Command `evaluate`: every method on the same input, with the paper's measures."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
import json
import math
from pathlib import Path
import sys
import time

import numpy as np

from graph_depth_refiner.cli.main import add_config_arguments, config_from
from graph_depth_refiner.cli.table import format_table
from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.files.exports import check_place
from graph_depth_refiner.lab.evaluation.baselines import (
    absent,
    Estimate,
    Method,
    methods,
    OURS,
    Task,
)
from graph_depth_refiner.lab.evaluation.cases import Case, cases, MASK_LIMITS

HIGHER_IS_BETTER = ('normal_below11.25',)
NOT_A_RESULT = ('scene', 'input', 'method', 'ms')
REPEATED = 0.3  # seconds; what is faster is timed as the median of three

Record = dict


@dataclass(frozen=True, eq=False)
class Result:
    """What one method made of one case."""

    case: Case
    method: str
    estimate: Estimate
    record: Record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument('folder', type=Path, help='folder of the data set')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write one record per result')
    parser.add_argument(
        '--report', type=Path, metavar='DIR', help='write index.html with all the pictures')
    parser.add_argument(
        '--markdown', type=Path, metavar='FILE',
        help='write the averages between the lines <!-- evaluate --> and <!-- /evaluate -->')
    parser.add_argument(
        '--methods', default='', metavar='NAMES', help='only these, separated by commas')
    parser.add_argument(
        '--frames', type=int, default=0, metavar='N',
        help='at most N scenes, spread over the folder; 0 is all, of a video ten')
    parser.add_argument(
        '--seed', type=int, default=0, help='of added noise and withheld spots (default: 0)')
    add_config_arguments(parser)
    parser.set_defaults(preset='', kind=parser.prog.split()[-1])


def run(args: argparse.Namespace) -> int:
    """Evaluate, print the tables and write what was asked for."""
    from graph_depth_refiner.lab.evaluation import markdown  # both need what is defined here
    from graph_depth_refiner.lab.evaluation.report import Report

    config = evaluation_config(args)
    chosen = choose(config, args.methods)
    if args.json:
        check_place('json', args.json)
    if args.markdown:
        markdown.split(args.markdown)
    report = Report(args.report, f'{args.kind} {args.folder.name}') if args.report else None
    frames = args.frames or (10 if args.kind == 'tum' else 0)
    records: list[Record] = []
    for case in cases(args.kind, args.folder, frames, args.seed):
        results = list(evaluate(case, chosen, not records))
        table = [result.record for result in results]
        records += table
        print(f'\n{case.scene}, input {case.source}' + (f' ({case.note})' if case.note else ''))
        print(format_records(table))
        print(losses(table), flush=True)
        if report:
            report.add(case, results, losses(table))
    averages = average(records)
    for name in dict.fromkeys(record['input'] for record in averages):
        table = [record for record in averages if record['input'] == name]
        counted = [record for record in records if record['input'] == name]
        print(f'\naverage of {len(scenes(counted))} scenes, input {name}')
        print(format_records(table))
        print('\n'.join(filter(None, (coverage(counted), losses(table)))), flush=True)
    for name, reason in absent().items():
        print(f'{name}: absent, {reason}')
    if args.markdown:
        markdown.write(args.markdown, records, command(args))
    if args.json:
        args.json.write_text(json.dumps(
            [finite(record) for record in records], indent=1, allow_nan=False) + '\n')
    if report:
        print(f'report: {report.write(records)}')
    return 0


def command(args: argparse.Namespace) -> str:
    """Return what to type for the same table."""
    settings = ''.join(f' --set {setting}' for setting in args.set)
    run_it = 'scripts/run python -m graph_depth_refiner evaluate'
    only = f' --methods {args.methods}' if args.methods else ''
    return f'{run_it} {args.kind} {args.folder.name}{only}{settings}'


def evaluation_config(args: argparse.Namespace) -> RefinerConfig:
    """Return the settings of `ours`: the preset for what is evaluated unless one is named."""
    args.preset = args.preset or ('stereo' if args.kind in MASK_LIMITS else 'realtime')
    return config_from(args)


def choose(config: RefinerConfig, names: str) -> dict[str, Method]:
    """Return the methods asked for."""
    known = methods(config)
    wanted = names.split(',') if names else list(known)
    for name in wanted:
        if name not in known:
            raise ValueError(f'methods: expected some of {", ".join(known)}, got {name!r}')
    return {name: known[name] for name in known if name in wanted}


def evaluate(case: Case, chosen: dict[str, Method], cold: bool) -> Iterator[Result]:
    """Run and judge every method on a case; `cold` if none has run before."""
    for name, method in chosen.items():
        if sys.stderr.isatty():
            print(f'\r{case.scene} {case.source} {name} \x1b[K', end='', file=sys.stderr)
        if cold:
            method(case.task)  # loads and compiles what the timed run is not to wait for
        estimate, milliseconds = timed(method, case.task)
        record = {
            'scene': case.scene, 'input': case.source, 'method': name, **case.judge(estimate),
            'ms': milliseconds}
        yield Result(case, name, estimate, record)
    if sys.stderr.isatty():
        print('\r\x1b[K', end='', file=sys.stderr)


def timed(method: Method, task: Task) -> tuple[Estimate, float]:
    """Return what a method makes of a task, and the milliseconds it took."""
    taken = []
    while len(taken) < 3 and (not taken or max(taken) < REPEATED):
        start = time.perf_counter()
        estimate = method(task)
        taken.append(time.perf_counter() - start)
    return estimate, 1e3 * float(np.median(taken))


def average(records: Iterable[Record]) -> list[Record]:
    """Return the mean of every number over the scenes that have it, by input and method."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record['input'], record['method']), []).append(record)
    return [
        {'scene': 'average', 'input': name, 'method': method, **{
            key: float(np.mean([record[key] for record in group if key in record]))
            for key in (*measures(*group), 'ms')}}
        for (name, method), group in groups.items()]


def scenes(records: Iterable[Record]) -> list[str]:
    """Return the names of the scenes, each once."""
    return list(dict.fromkeys(record['scene'] for record in records))


def coverage(records: list[Record]) -> str:
    """Say which measures not every scene of an input has; empty if there are none."""
    having = {key: len(scenes(r for r in records if key in r)) for key in measures(*records)}
    total = len(scenes(records))
    return '; '.join(
        f'{", ".join(key for key in having if having[key] == count)}: '
        f'average of {count} of {total} scenes'
        for count in sorted(set(having.values()) - {total}))


def losses(table: list[Record]) -> str:
    """Say where another method is better than ours; our own variants apart from the others."""
    ours = next((record for record in table if record['method'] == OURS), None)
    if ours is None or len(table) == 1:
        return ''
    variants = [r for r in table if r['method'].startswith(OURS) and r is not ours]
    others = [r for r in table if not r['method'].startswith(OURS)]
    lost = [
        f'{key} {format_value(ours[key])} against {format_value(rival[key])} of {rival["method"]}'
        for key in measures(ours) if (rival := _ahead(ours, others, key))]
    ahead = {
        variant['method']: ', '.join(keys) for variant in variants
        if (keys := [key for key in measures(ours) if _ahead(ours, [variant], key)])}
    said = [f'{OURS} loses in {"; ".join(lost)}' if lost else f'{OURS} is best in every measure'
            + (f' of all methods but {" and ".join(ahead)}' if ahead else '')]
    return '; '.join([*said, *(f'{name} is better in {keys}' for name, keys in ahead.items())])


def _ahead(ours: Record, rivals: list[Record], key: str) -> Record | None:
    """Return the best of the rivals if it is better than ours."""
    sign = -1 if key in HIGHER_IS_BETTER else 1
    rival = min(rivals, key=lambda record: sign * record[key], default=None)
    return rival if rival is not None and sign * rival[key] < sign * ours[key] else None


def measures(*records: Record) -> list[str]:
    """Return the names of the measures that any of the records has."""
    keys = dict.fromkeys(key for record in records for key in record)
    return [key for key in keys if key not in NOT_A_RESULT]


def finite(record: Record) -> Record:
    """Return a record that JSON can hold: None for what is not finite."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in record.items()}


def best(table: list[Record], key: str) -> float:
    """Return the best value of a measure."""
    return (max if key in HIGHER_IS_BETTER else min)(record[key] for record in table)


def format_records(table: list[Record]) -> str:
    """Return records as a table for a terminal."""
    keys = (*measures(table[0]), 'ms')
    return format_table(['', *keys], [
        [record['method'], *(format_value(record[key]) for key in keys)] for record in table])


def format_value(value: float) -> str:
    """Return a number with three digits that say something."""
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 100 else 0
    return f'{value:.{digits}f}'
