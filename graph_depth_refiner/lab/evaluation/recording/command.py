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
"""Command `evaluate recording`: judge methods on a recording, without ground truth."""

from __future__ import annotations

import argparse
from dataclasses import asdict
import json
from pathlib import Path

from graph_depth_refiner.cli.main import add_config_arguments, config_from
from graph_depth_refiner.files.exports import check_place
from graph_depth_refiner.lab.evaluation.recording import report
from graph_depth_refiner.lab.evaluation.recording.alignment import is_at_rest
from graph_depth_refiner.lab.evaluation.recording.judging import judge, Schedule, Verdict
from graph_depth_refiner.lab.evaluation.recording.methods import (
    check_methods,
    DEFAULT,
    METHODS,
    Setting,
)
from graph_depth_refiner.lab.evaluation.recording.reference import cache_folder, ReferenceCache
from graph_depth_refiner.lab.evaluation.recording.sensors import choose_sensor, SENSORS
from graph_depth_refiner.lab.evaluation.recording.sources import Choice, open_recording

TOPICS = ('depth', 'image', 'camera_info', 'confidence')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        'recording', nargs='+', type=Path,
        help='bag of ROS 2 or ROS 1, TUM folder, or folder with color, depth and camera.json')
    parser.add_argument(
        '--sensor', choices=tuple(SENSORS), default='', help='kind of sensor (default: guessed)')
    parser.add_argument(
        '--methods', default=','.join(DEFAULT), metavar='NAMES',
        help=f'some of {", ".join(METHODS)}, or ours:NAME=VALUE+NAME=VALUE (default: %(default)s)')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write all that was found')
    parser.add_argument(
        '--report', type=Path, metavar='DIR', help='write index.html and panels of pictures')
    parser.add_argument(
        '--no-cache', action='store_true', help='make references anew and keep none')
    _add_schedule(parser.add_argument_group('judged frames'))
    _add_choice(parser.add_argument_group('recording'))
    add_config_arguments(parser)


def _add_schedule(group: argparse._ArgumentGroup) -> None:
    default = Schedule()
    for name, text in (
            ('first', 'first judged frame; those before are history'),
            ('every', 'judge every N-th frame from there on'),
            ('frames', 'judge at most N frames'),
            ('ahead', 'later frames that make a reference; 0: as many as the sensor needs')):
        group.add_argument(f'--{name}', type=int, metavar='N', default=getattr(default, name),
                           help=f'{text} (default: %(default)s)')


def _add_choice(group: argparse._ArgumentGroup) -> None:
    group.add_argument('--start', type=int, default=Choice().start, metavar='N',
                       help='frames to leave out at the beginning (default: %(default)s)')
    for name in TOPICS:
        group.add_argument(f'--{name.replace("_", "-")}', default='', metavar='TOPIC',
                           help='of a bag, instead of guessing this topic')
    group.add_argument('--camera', default='', metavar='FX,FY,CX,CY',
                       help='pixels, of a folder without camera.json')
    group.add_argument('--depth-scale', type=float, default=0.0, metavar='N',
                       help='counts per metre of the depth files of a folder')


def run(args: argparse.Namespace) -> int:
    """Judge every recording, print the tables and write what was asked for."""
    config, methods = config_from(args), args.methods.split(',')
    check_methods(methods, config)
    if args.json:
        check_place('json', args.json)
    if args.report:
        args.report.mkdir(parents=True, exist_ok=True)
    schedule = Schedule(**{name: _whole(args, name, least) for name, least in (
        ('first', 1), ('every', 1), ('frames', 1), ('ahead', 0))})
    choice = Choice(_whole(args, 'start', 0), {n: getattr(args, n) for n in TOPICS},
                    _camera(args.camera), args.depth_scale)
    cache = ReferenceCache(None if args.no_cache else cache_folder())
    verdicts: list[Verdict] = []
    files: dict[str, list[Path]] = {}
    for path in args.recording:
        recording = open_recording(path, choice)
        sensor, reason = choose_sensor(recording, args.sensor)
        used = max(later.stop for later in schedule.judged(recording, sensor).values())
        setting = Setting(recording, sensor, is_at_rest(recording, used), config, args.device)
        panels = report.Panels(recording)
        seen = {'seen': panels.add} if args.report else {}
        verdict = judge(setting, reason, schedule, cache, methods, **seen)
        verdicts.append(verdict)
        print('\n'.join(('', report.headline(verdict), report.format_scores(verdict.table()),
                         *verdict.notes)), flush=True)
        if args.report:
            files[verdict.recording] = panels.write(args.report)
    if len(verdicts) > 1:
        means = report.overall(verdict.table() for verdict in verdicts)
        if means:
            print('\ngeometric means over the recordings, relative to the input (invented, '
                  f'history and ms as they are)\n{report.format_scores(means)}')
    if args.json:
        found = [{**asdict(verdict), 'table': verdict.table()} for verdict in verdicts]
        args.json.write_text(json.dumps(found, indent=1, allow_nan=False) + '\n')
    if args.report:
        print(f'report: {report.write_page(args.report, verdicts, files)}')
    return 0


def _whole(args: argparse.Namespace, name: str, least: int) -> int:
    value = getattr(args, name)
    if value < least:
        raise ValueError(f'{name}: expected at least {least}, got {value}')
    return value


def _camera(text: str) -> tuple[float, ...]:
    if not text:
        return ()
    try:
        fx, fy, cx, cy = map(float, text.split(','))
    except ValueError:
        raise ValueError(f'camera: expected four numbers FX,FY,CX,CY, got {text!r}') from None
    return fx, fy, cx, cy
