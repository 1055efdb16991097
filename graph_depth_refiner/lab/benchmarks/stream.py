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
from typing import Any, NamedTuple

import cv2
import numpy as np

from graph_depth_refiner.cli.main import add_config_arguments, config_from
from graph_depth_refiner.cli.table import format_table
from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import camera, kernels
from graph_depth_refiner.core.downsampling import downsample, downsample_image
from graph_depth_refiner.core.history import start_noise
from graph_depth_refiner.core.minimise import data_weight, minimise
from graph_depth_refiner.core.observation import observe
from graph_depth_refiner.core.types import Problem
from graph_depth_refiner.frame import Frame
from graph_depth_refiner.lab.benchmarks.cpu_time import CpuTimes, one_thread
from graph_depth_refiner.lab.benchmarks.stream_scores import (
    CAP,
    FIRST,
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
BILATERAL_SIDE = 9  # pixels, of the window of the filter that a frame is compared with
COLUMNS = {
    'method': 'method', 'depth_error_percent': 'depth %', 'depth_rms_percent': 'rms %',
    'normal_error_deg': 'normal deg', 'normal_median_deg': 'median deg',
    'completeness_percent': 'complete %', 'temporal_noise_percent': 'noise %',
    'ghosting_ratio': 'ghosting', 'thin_lost_percent': 'thin lost %',
    'curved_error_percent': 'curved %', 'flying_percent': 'flying %',
    'invented_percent': 'invented %', 'ms_per_frame': 'ms',
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
        '--cpu-repeat', type=int, default=3, metavar='N',
        help='times the stream is refined once more on one thread, for its CPU time '
        '(default: %(default)s)')
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
    stream = SyntheticStream(args.seed, image_size(args.size), args.motion, args.sensor, args.room)
    views = list(stream.views(args.frames))
    print(f'seed {args.seed}, {args.size}, {args.frames} frames, {args.motion}, '
          f'{args.sensor}, {args.room} room')
    scores: dict[str, Scores] = {}
    records, reference = [], None if args.no_reference else _reference(args.size)
    for name in names:
        if reference:
            reference()
        records.append({**_evaluated(name, views, config, scores), 'sensor': args.sensor,
                        'room': args.room})
    print(format_table(
        COLUMNS.values(), [[record['method'], *(_text(record[key]) for key in list(COLUMNS)[1:])]
                           for record in records]))
    print_regions(records)
    print_stages(records)
    print_cpu(records, views, config, args.cpu_repeat)
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


class Result(NamedTuple):
    """What a method makes of a frame; normals of None are fitted to the depth."""

    depth: np.ndarray
    normals: np.ndarray | None = None
    stages: dict[str, float] = {}
    cpu_stages: dict[str, float] = {}
    hit_rate: float = 0.0


Method = Callable[[Frame], Result]


def _follow(method: Method, views: list[View]) -> Scores:
    """Let a method see the stream, frame after frame as from a camera, and score it then."""
    results = []
    for view in views:
        start = time.perf_counter()
        result = method(view.frame)
        results.append((1e3 * (time.perf_counter() - start), result))
    scores = Scores()
    for index, (view, (spent, result)) in enumerate(zip(views, results, strict=True)):
        normals = result.normals
        if normals is None:  # not part of the method, and not of its time
            normals = plane_fit_normals(result.depth, view.frame.intrinsics)
        scores.add(index, view, result.depth, normals, spent, result.stages, result.hit_rate)
    return scores


def _as_it_is(config: RefinerConfig) -> Callable:
    return lambda frame: Result(frame.depth)


def _realsense(config: RefinerConfig) -> Callable:
    camera_filter = RealsenseFilter()
    return lambda frame: Result(camera_filter.filter(frame.depth))


def _ours(odometry: bool, **values: Any) -> Callable:
    def make(config: RefinerConfig) -> Callable:
        refiner = DepthRefiner(config.with_values(**values))

        def method(frame: Frame) -> Result:
            refined = refiner.refine(frame if odometry else replace(frame, pose=None))
            return Result(refined.depth, refined.normals, refined.milliseconds,
                          refined.cpu_milliseconds, refined.graph_hit_rate)
        return method
    return make


def _unwarped(steps: int) -> Callable:
    """Start each frame where the last one ended, as if nothing had moved."""
    def make(config: RefinerConfig) -> Callable:
        config = config.with_values(**{
            'solver.iterations': steps, 'solver.mode': 'realtime', 'solver.scale': 1})
        k, last = kernels.select('cpu', config.backend), {}

        def method(frame: Frame) -> Result:
            obs = observe(k, frame, config)
            level = downsample(k, obs.d, obs.m, start_noise(k, obs, config), 1)
            if not last:
                last['planes'] = solved_planes(config, frame)
            graph = k.build_graph(downsample_image(k, obs, config).guide, config)
            solution = minimise(k, Problem(
                k.array(last['planes']), graph, level.d, data_weight(level), level.fused_unit,
                memory=last.get('memory')), config)
            last['planes'], last['memory'] = k.numpy(solution.x), solution.memory
            planes = last['planes']
            known = planes[0] > 0
            depth = np.where(known, 1 / np.where(known, planes[0], 1), np.nan)
            return Result(depth, camera.normals(planes, frame.intrinsics))
        return method
    return make


def solved_planes(config: RefinerConfig, frame: Frame) -> np.ndarray:
    """Return the planes, 3 H W, that a single frame is refined to, holes filled."""
    refined = DepthRefiner(config.with_values(**{'holes.fill': 'all'}), 'cpu').refine(frame)
    camera = frame.intrinsics
    d, (nx, ny, nz) = 1 / refined.depth, np.moveaxis(refined.normals, -1, 0)  # H W each
    y, x = np.mgrid[:d.shape[0], :d.shape[1]]
    facing = nx * (x - camera.cx) / camera.fx + ny * (y - camera.cy) / camera.fy + nz
    planes = np.stack([d, d * nx / (camera.fx * facing), d * ny / (camera.fy * facing)])
    return np.where(np.isfinite(planes), planes, 0).astype(np.float32)


# name: (maker, what it is compared with in the bands: a refinement without temporal part)
METHODS: dict[str, tuple[Callable, str]] = {
    'input': (_as_it_is, 'cold-10'), 'realsense': (_realsense, 'cold-10'),
    'cold-10': (_ours(True, **{'temporal.enabled': False, 'solver.iterations': 10}), 'cold-10'),
    'unwarped-10': (_unwarped(10), 'cold-10'),
    'ours': (_ours(False), 'cold-10'), 'ours-odometry': (_ours(True), 'cold-10')}
for n in STEPS:
    METHODS[f'ours-{n}'] = (_ours(False, **{'solver.iterations': n}), 'cold-10')
for n in STEPS:
    METHODS[f'ours-{n}-odometry'] = (_ours(True, **{'solver.iterations': n}), 'cold-10')
# one frame on its own, until the energy settles: the paper's model from the measurement, and
# from our fitted planes and with the depth-aware graph
ALONE = {'temporal.enabled': False, 'solver.mode': 'converged', 'solver.scale': 1}
METHODS['converged'] = (_ours(True, **ALONE, **{'planes.start': False, 'edges.passes': 0}),
                        'cold-10')
METHODS['converged-planes'] = (_ours(True, **ALONE), 'cold-10')


def print_regions(records: list[dict[str, Any]]) -> None:
    """Print depth and normal errors by region."""
    shares = records[0]['regions']
    print(f'\nby region: depth error % (single errors count up to {CAP:g} %), normal error deg')
    header, rows = ['method'], [['share of image'], *([one['method']] for one in records)]
    for name in REGIONS:
        header += [f'{name} %', 'deg']
        rows[0] += [_text(shares[name]['share_percent']), '']
        for row, record in zip(rows[1:], records):
            one = record['regions'][name]
            row += [_text(one['depth_error_percent']), _text(one['normal_error_deg'], 2)]
    print(format_table(header, rows))


def print_stages(records: list[dict[str, Any]]) -> None:
    """Print the milliseconds of a frame by stage."""
    timed = [record for record in records if record['stages_ms']]
    if not timed:
        return
    stages = dict.fromkeys(name for record in timed for name in record['stages_ms'])
    print('\nmilliseconds by stage')
    print(format_table(['method', *stages], [
        [record['method'], *(_text(record['stages_ms'].get(name), 1) for name in stages)]
        for record in timed]))


def print_cpu(records: list[dict[str, Any]], views: list[View], config: RefinerConfig,
              repeat: int) -> None:
    """Print CPU milliseconds of a frame on one thread, and in bilateral filters, by stage."""
    timed = [record for record in records if record['method'].startswith('ours')]
    if not (timed and repeat):
        return
    times = {record['method']: CpuTimes() for record in timed}
    bilateral, filled = CpuTimes(), [_without_unknown(view) for view in views]
    with one_thread():
        for _ in range(repeat):
            for name, spent in times.items():
                spent.follow(METHODS[name][0](config), views)
            bilateral.follow(_bilateral_filter, filled)
    filter_ms = bilateral.frame(FIRST)
    print(f'\nCPU milliseconds on one thread (least of {repeat}, median of the frames); '
          f'cv2.bilateralFilter (float32, d = {BILATERAL_SIDE}): {filter_ms:.2f}')
    stages = dict.fromkeys(name for spent in times.values() for name in spent.stages(FIRST))
    for record in timed:
        spent = times[record['method']]
        record |= {'cpu_ms_per_frame': spent.frame(FIRST), 'bilateral_cpu_ms': filter_ms,
                   'stages_cpu_ms': spent.stages(FIRST)}
    print(format_table(['method', 'frame', 'bilaterals', *stages], [
        [record['method'], _text(record['cpu_ms_per_frame'], 2),
         _text(record['cpu_ms_per_frame'] / filter_ms, 2),
         *(_text(record['stages_cpu_ms'].get(name), 2) for name in stages)]
        for record in timed]))


def _bilateral_filter(frame: Frame) -> Result:
    """Smooth the depth by OpenCV's bilateral filter; its time does not depend on its widths."""
    return Result(cv2.bilateralFilter(frame.depth, BILATERAL_SIDE, 0.05, 3.0))


def _without_unknown(view: View) -> View:
    """Return a view whose depth is 0 where it is unknown, which the bilateral filter needs."""
    depth = np.nan_to_num(view.frame.depth)
    return replace(view, frame=replace(view.frame, depth=depth))


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


def image_size(text: str) -> tuple[int, int]:
    width, _, height = text.partition('x')
    if not (width.isdigit() and height.isdigit()):
        raise ValueError(f'size: expected WxH such as 320x240, got {text!r}')
    return int(width), int(height)


def _text(value: float | None, digits: int = 3) -> str:
    return '-' if value is None else f'{value:.{digits}f}'
