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
"""Compare methods on a synthetic stream with exact depth and normals."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
import json
from pathlib import Path
import time
from typing import Any

import numpy as np

from graph_depth_refiner.cli.main import add_config_arguments, config_from
from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import camera, kernels
from graph_depth_refiner.core.minimise import minimise
from graph_depth_refiner.core.observation import measure
from graph_depth_refiner.core.types import Problem
from graph_depth_refiner.frame import Frame
from graph_depth_refiner.lab.benchmarks.stream_scores import (
    CAP,
    plane_fit_normals,
    REGIONS,
    Scores,
)
from graph_depth_refiner.lab.evaluation.realsense import RealsenseFilter
from graph_depth_refiner.lab.synthetic.scene import ROOMS
from graph_depth_refiner.lab.synthetic.sensors import SENSORS
from graph_depth_refiner.lab.synthetic.stream import (
    COMMAND_ROOM,
    COMMAND_SENSOR,
    MOTIONS,
    SyntheticStream,
    View,
)
from graph_depth_refiner.refiner import DepthRefiner

STEPS = (5, 10, 20)
COLUMNS = {
    'method': '', 'depth_error_percent': 'depth %', 'depth_rms_percent': 'rms %',
    'normal_error_deg': 'normal deg', 'normal_median_deg': 'median deg',
    'completeness_percent': 'complete %', 'temporal_noise_percent': 'noise %',
    'ghosting_ratio': 'ghosting', 'thin_lost_percent': 'thin lost %',
    'curved_error_percent': 'curved %', 'invented_percent': 'invented %', 'ms_per_frame': 'ms',
    'graph_hit_rate': 'graph hits'}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `benchmark stream`."""
    parser.add_argument('--seed', type=int, default=0, help='of room, path and noise')
    parser.add_argument('--size', default='320x240', metavar='WxH', help='of the images')
    parser.add_argument('--frames', type=int, default=30, help='length of the stream')
    parser.add_argument('--motion', default='moving', choices=MOTIONS, help='what moves')
    parser.add_argument('--sensor', default=COMMAND_SENSOR, choices=SENSORS,
                        help='that measures the room (default: %(default)s)')
    parser.add_argument('--room', default=COMMAND_ROOM, choices=ROOMS,
                        help='what is in it (default: %(default)s)')
    parser.add_argument('--methods', nargs='+', metavar='NAME', help='default: all')
    parser.add_argument(
        '--no-reference', action='store_true', help='do not time the plain autograd step')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the records here')
    add_config_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run every method over the stream; print a table."""
    config = config_from(args)
    names = args.methods or list(METHODS)
    for name in names:
        if name not in METHODS:
            raise ValueError(f'methods: expected some of {", ".join(METHODS)}, got {name!r}')
    if args.frames < 6:
        raise ValueError(f'frames: expected at least 6, got {args.frames}')
    stream = SyntheticStream(args.seed, _size(args.size), args.motion, args.sensor, args.room)
    views = list(stream.views(args.frames))
    print(f'seed {args.seed}, {args.size}, {args.frames} frames, {args.motion}, '
          f'{args.sensor}, {args.room} room')
    print(f'{"method":18}' + ''.join(f'{text:>12}' for text in COLUMNS.values() if text))
    scores: dict[str, Scores] = {}
    records, reference = [], None if args.no_reference else _reference(args.size)
    for name in names:
        if reference:
            reference()
        records.append({**_evaluated(name, views, config, scores), 'sensor': args.sensor,
                        'room': args.room})
        print(f'{name:18}' + ''.join(f'{_text(records[-1][key]):>12}'
                                     for key, text in COLUMNS.items() if text))
    print_regions(records)
    print_stages(records)
    if reference:
        print_reference(records, args.size, reference())
    if args.json:
        args.json.write_text(json.dumps(records, indent=1) + '\n')
    return 0


def _evaluated(name: str, views: list[View], config: RefinerConfig,
               scores: dict[str, Scores]) -> dict[str, Any]:
    make, without_past = METHODS[name]
    for needed in (name, without_past):
        if needed and needed not in scores:
            scores[needed] = _follow(METHODS[needed][0](config), views)
    return scores[name].record(name, scores.get(without_past))


def _follow(method: Callable[[Frame], tuple], views: list[View]) -> Scores:
    """Let a method see the stream, frame after frame as from a camera, and score it then."""
    results = []
    for view in views:
        start = time.perf_counter()
        result = method(view.frame)
        results.append((1e3 * (time.perf_counter() - start), *result))
    scores = Scores()
    for index, (view, (spent, depth, normals, stages, hits)) in enumerate(
            zip(views, results, strict=True)):
        if normals is None:  # not part of the method, and not of its time
            normals = plane_fit_normals(depth, view.frame.intrinsics)
        scores.add(index, view, depth, normals, spent, stages, hits)
    return scores


def _as_it_is(config: RefinerConfig) -> Callable:
    return lambda frame: (frame.depth, None, {}, 0.0)


def _realsense(config: RefinerConfig) -> Callable:
    camera_filter = RealsenseFilter()
    return lambda frame: (camera_filter.filter(frame.depth), None, {}, 0.0)


def _ours(odometry: bool, **values: Any) -> Callable:
    def make(config: RefinerConfig) -> Callable:
        refiner = DepthRefiner(config.with_values(**values))

        def method(frame: Frame) -> tuple:
            refined = refiner.refine(frame if odometry else replace(frame, pose=None))
            return (refined.depth, refined.normals, refined.milliseconds,
                    refined.graph_hit_rate)
        return method
    return make


def _unwarped(steps: int) -> Callable:
    """Start each frame where the last one ended, as if nothing had moved."""
    def make(config: RefinerConfig) -> Callable:
        config = config.with_values(**{'solver.iterations': steps, 'solver.mode': 'realtime'})
        backend, last = kernels.select('cpu', config.backend), {}

        def method(frame: Frame) -> tuple:
            measured = measure(frame, config)
            guide, d = backend.array(measured.guide), backend.array(measured.d)
            if not last:
                first = DepthRefiner(
                    config.with_values(**{'temporal.enabled': False, 'solver.scale': 1}))
                last['planes'] = video_planes(first, frame)
            solution = minimise(backend, Problem(
                backend.array(last['planes']), backend.build_graph(guide, config), d,
                backend.array(measured.m), measured.unit, memory=last.get('memory')), config)
            last['planes'], last['memory'] = backend.numpy(solution.x), solution.memory
            planes = last['planes']
            known = planes[0] > 0
            depth = np.where(known, 1 / np.where(known, planes[0], 1), np.nan)
            return depth, camera.normals(planes, frame.intrinsics), {}, 0.0
        return method
    return make


def video_planes(refiner: DepthRefiner, frame: Frame) -> np.ndarray:
    """Return the planes, 3 H W, that a refiner ends with."""
    refiner.refine(frame)
    return refiner._kernels.numpy(refiner.state.planes)


# name: (maker, what it is compared with in the bands: a refinement without temporal part)
METHODS: dict[str, tuple[Callable, str]] = {
    'input': (_as_it_is, 'cold-10'), 'realsense': (_realsense, 'cold-10'),
    'cold-10': (_ours(True, **{'temporal.enabled': False, 'solver.iterations': 10}), 'cold-10'),
    'unwarped-10': (_unwarped(10), 'cold-10')}
for n in STEPS:
    METHODS[f'ours-{n}'] = (_ours(False, **{'solver.iterations': n}), 'cold-10')
for n in STEPS:
    METHODS[f'ours-{n}-odometry'] = (_ours(True, **{'solver.iterations': n}), 'cold-10')
# one frame on its own, until the energy settles: the paper's model from the measurement, and
# from the elected planes and with the depth-aware graph of ours
ALONE = {'temporal.enabled': False, 'solver.mode': 'converged', 'solver.scale': 1}
METHODS['converged'] = (_ours(True, **ALONE, **{'planes.start': False, 'edges.passes': 0}),
                        'cold-10')
METHODS['converged-planes'] = (_ours(True, **ALONE), 'cold-10')


def print_regions(records: list[dict[str, Any]]) -> None:
    """Print depth and normal errors by region."""
    shares = records[0]['regions']
    print(f'\nby region: depth error % (single errors count up to {CAP:g} %), normal error deg')
    print(f'{"method":18}' + ''.join(f'{name + " %":>12}{"deg":>8}' for name in REGIONS))
    print(f'{"share of image":18}' + ''.join(
        f'{_text(shares[name]["share_percent"]):>12}{"":8}' for name in REGIONS))
    for record in records:
        cells = (record['regions'][name] for name in REGIONS)
        print(f'{record["method"]:18}' + ''.join(
            f'{_text(one["depth_error_percent"]):>12}{_text(one["normal_error_deg"], 2):>8}'
            for one in cells))


def print_stages(records: list[dict[str, Any]]) -> None:
    """Print the milliseconds of a frame by stage."""
    print('\nmilliseconds by stage')
    for record in records:
        if record['stages_ms']:
            print(f'{record["method"]:18}' + ', '.join(
                f'{name} {value:.1f}' for name, value in record['stages_ms'].items()))


def _reference(size: str) -> Callable[[], float]:
    """
    Return a call that takes one ADAM step of the paper by autograd with index lists.

    It returns the median milliseconds of all its steps so far. Spread over the run they meet
    the same neighbours on the machine as the methods do.
    """
    from graph_depth_refiner.config import preset
    from graph_depth_refiner.lab.benchmarks.solver import plain_solver, Scene
    solver = plain_solver(Scene(size, preset('paper'), 0))
    solver.step()  # the first is slower
    times: list[float] = []

    def step() -> float:
        start = time.perf_counter()
        solver.step()
        times.append(1e3 * (time.perf_counter() - start))
        return float(np.median(times))
    return step


def print_reference(records: list[dict[str, Any]], size: str, step: float) -> None:
    """Compare whole frames with the milliseconds of one plain step."""
    print(f'\none plain autograd step with index lists at {size}: {step:.0f} ms')
    for record in records:
        record['autograd_step_ms'] = step
        if record['method'].startswith('ours'):
            print(f'{record["method"]:18} whole frame {record["ms_per_frame"]:.1f} ms = '
                  f'1/{step / record["ms_per_frame"]:.1f} of it')


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition('x')
    if not (width.isdigit() and height.isdigit()):
        raise ValueError(f'size: expected WxH such as 320x240, got {text!r}')
    return int(width), int(height)


def _text(value: float | None, digits: int = 3) -> str:
    return '-' if value is None else f'{value:.{digits}f}'
