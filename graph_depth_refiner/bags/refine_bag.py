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
"""Command `refine-bag`: add refined topics to recordings, every frame, in order."""

from __future__ import annotations

import argparse
from dataclasses import replace
import glob
from pathlib import Path
import sys

from graph_depth_refiner.bags.bags import is_bag, ROS1_SUFFIX, STORAGES, SUFFIXES
from graph_depth_refiner.bags.cameras import camera_names, configs, read_camera
from graph_depth_refiner.bags.refinement import BagJob, refine_bag, Summary
from graph_depth_refiner.cli.batch import (
    add_cluster_argument,
    asked_to_stop,
    ENDED,
    GO_ON,
    run_shown,
    wanted,
)
from graph_depth_refiner.cli.main import add_config_arguments
from graph_depth_refiner.cli.progress import Progress
from graph_depth_refiner.messages.assembly import output_topics, OUTPUTS

LARGE = ('points',)  # only where asked for
SLOP = 0.1  # seconds
PART_MEGABYTES = 64
NOTHING = 3  # exit code where no frame was refined


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        'source', nargs='+', help='recording, or a folder or pattern of several')
    parser.add_argument('target', type=Path, help='new folder for the recording, or for several')
    parser.add_argument(
        '--camera', default='', metavar='PRESET',
        help='topics and settings of a camera, as the node has them: '
        f'{", ".join(camera_names())}, or a YAML file of parameters')
    for name in ('depth', 'image', 'camera-info', 'confidence'):
        parser.add_argument(
            f'--{name}', default='', metavar='TOPIC', help='instead of guessing this topic')
    parser.add_argument(
        '--outputs', metavar='TOPICS',
        default=','.join(o for o in output_topics(disparity=False) if o not in LARGE),
        help='refined topics to add, separated by commas (default: %(default)s)')
    parser.add_argument(
        '--points', action='store_true', help='add the point cloud too, 10 MB for 640x480')
    parser.add_argument(
        '--namespace', default=None, help='of the refined topics (default: that of the camera)')
    parser.add_argument(
        '--storage', choices=tuple(STORAGES), default='', help='format (default: as it came)')
    parser.add_argument(
        '--slop', type=float, default=SLOP, metavar='SECONDS',
        help='largest difference between the stamps of depth and image (default: %(default)s)')
    parser.add_argument(
        '--split', type=int, default=PART_MEGABYTES, metavar='MB',
        help='begin a new file after this many megabytes, as ros2 bag record does; an '
        'interrupted run goes on after the last whole file; 0 never splits '
        '(default: %(default)s)')
    parser.add_argument(
        '--input', dest='inputs', action='append', default=[], metavar='NAME=VALUE',
        help='how messages are read, as a parameter of the node: confidence_preset, distortion, '
        'baseline, max_pixels, depth_scale, fixed_frame, odometry_topic, camera_pose_topic, '
        'depth_in_image, check_frames; may be repeated')
    add_cluster_argument(parser)
    add_config_arguments(parser, None)


def run(args: argparse.Namespace) -> int:
    """Refine one recording here, or several on all cores or a cluster."""
    jobs = plan(args)
    if len(jobs) == 1 and not args.cluster:
        return _run_one(jobs[0])
    outcomes = run_shown('recordings', _refine_wanted, jobs, args.cluster)
    codes = []
    for outcome in outcomes:
        if outcome.error:
            print(f'{outcome.item.source}: failed after {outcome.attempts} attempts: '
                  f'{outcome.error}', file=sys.stderr)
        codes.append(1 if outcome.error else report(outcome.result))
    print(f'{codes.count(0)} of {len(codes)} recordings complete')
    return max(codes)


def plan(args: argparse.Namespace) -> list[BagJob]:
    """Return one job for each recording."""
    if not args.slop >= 0:
        raise ValueError(f'slop: expected at least 0 seconds, got {args.slop}')
    if args.split < 0:
        raise ValueError(f'split: expected at least 0 MB, got {args.split}')
    outputs = tuple(filter(None, args.outputs.split(',')))
    for output in outputs:
        if output not in OUTPUTS:
            raise ValueError(f'outputs: expected some of {", ".join(OUTPUTS)}, got {output!r}')
    if args.points and 'points' not in outputs:
        outputs += ('points',)
    topics = {
        name: value for name in ('depth', 'image', 'camera_info', 'confidence')
        if (value := getattr(args, name))}
    values = read_camera(args.camera) if args.camera else {}
    node, refiner = configs(values, args.inputs, args.preset, args.set)
    one = BagJob(
        Path(args.source[0]), args.target.absolute(), args.storage, topics, outputs,
        args.namespace, args.slop, args.split * 2 ** 20, refiner, node, args.device,
        bool(args.camera), not any(text.startswith('confidence') for text in args.inputs))
    sources, several = recordings(args.source)
    if not several:
        return [replace(one, source=sources[0])]
    return [replace(one, source=s, target=one.target / _name(s)) for s in sources]


def recordings(texts: list[str]) -> tuple[list[Path], bool]:
    """
    Return the recordings that paths, folders and patterns stand for; whether several may.

    The paths are absolute: a worker of a cluster may run elsewhere.
    """
    if len(texts) == 1 and Path(texts[0]).exists() and not _bags_in(Path(texts[0])):
        return [Path(texts[0]).absolute()], False
    found: list[Path] = []
    for text in texts:
        paths = [Path(text)] if Path(text).exists() else map(Path, sorted(glob.glob(text)))
        for path in paths:
            found += _bags_in(path.absolute()) or [path.absolute()]
    if not found:
        raise ValueError(f'source: expected a recording at {" ".join(texts)}, got nothing there')
    names = [_name(path) for path in found]
    if len(set(names)) < len(names):
        raise ValueError('source: expected recordings of different names, got some of the same')
    return found, True


def report(summary: Summary) -> int:
    """Say how a recording ended; return its exit code."""
    lost = ''.join(f'; {count} skipped: {why}' for why, count in summary.skipped.items())
    if summary.unmatched:
        lost += f'; {summary.unmatched} depth images have no image near enough in time'
    if summary.damaged:
        lost += f'; {summary.damaged} messages are too damaged to belong to a frame'
    if summary.left_out:
        lost += f'; topics of types that are not read: {", ".join(summary.left_out)}'
    for doubt in summary.doubts:
        print(f'{summary.target}: warning: {doubt}', file=sys.stderr)
    poses = '' if summary.poses is None else (
        f', {summary.poses.get("known", 0)} with a pose, of which the frames corrected '
        f'{summary.poses.get("corrected", 0)}')
    counts = f'{summary.frames} of {summary.total} frames refined{poses}{lost}'
    if summary.stopped:
        left = f'closed as a readable recording with {counts}' if summary.readable else (
            'nothing readable was written yet')
        print(f'{summary.target}: {summary.stopped}: {left}; {GO_ON}', file=sys.stderr)
        return 1
    before = 'complete already: ' if summary.already else ''
    print(f'{summary.target}: {before}{counts}')
    return 0 if summary.frames else NOTHING


def _bags_in(path: Path) -> list[Path]:
    """Return the recordings in a folder that is none itself."""
    if not path.is_dir() or is_bag(path):
        return []
    found = sorted(filter(is_bag, path.iterdir()))
    # one file on its own is a recording whose metadata was never written
    return [] if len(found) == 1 and found[0].is_file() else found


def _name(path: Path) -> str:
    return path.stem if path.suffix in (*SUFFIXES, ROS1_SUFFIX) else path.name


def _refine_wanted(job: BagJob) -> Summary:
    """Refine a recording in a worker, and close it when the worker has to end."""
    return refine_bag(job, wanted=wanted)


def _run_one(job: BagJob) -> int:
    bar: list[Progress] = []
    with asked_to_stop() as asked:
        summary = refine_bag(
            job, lambda total, done: bar.append(Progress('frames', total, done)),
            lambda: bar[0].advance(), lambda: not asked)
    bar[0].close()
    code = report(summary)
    return ENDED + asked[0] if asked and summary.stopped else code
