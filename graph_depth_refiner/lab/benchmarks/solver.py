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
"""Time graph and step of every backend against a plain autograd implementation."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from importlib.util import find_spec
import itertools
import json
from pathlib import Path
import platform
import statistics
import time
from typing import Any

import numpy as np

from graph_depth_refiner.cli.table import format_table
from graph_depth_refiner.config import preset, RefinerConfig
from graph_depth_refiner.core import kernels
from graph_depth_refiner.core.types import Terms

SIZES = ('224x172', '320x240', '640x480', '848x480', '1280x720')
PRESETS = ('paper', 'realtime')
RATE, SLOPE_SHARE = 0.1, 0.05  # noise units; the time of a step does not depend on them
STEPS = 10  # of a frame in real time, which the fused backend takes at once
SLOW_ROUNDS = 3  # of which one times also what is slow, all but the fused backend
STREAM_BYTES = 1 << 28
COLUMNS = (
    'size', 'backend', 'preset', 'step_ms', 'graph_ms', 'autograd_step_ms', 'plain_graph_ms',
    'bytes_per_pixel', 'gb_per_s', 'stream_gb_per_s')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `benchmark solver`."""
    parser.add_argument(
        '--sizes', nargs='+', default=SIZES, metavar='WxH', help='default: ' + ' '.join(SIZES))
    parser.add_argument(
        '--backends', nargs='+', choices=('fused', 'torch', 'triton'), metavar='NAME',
        help='default: all that run here')
    parser.add_argument(
        '--presets', nargs='+', default=PRESETS, choices=PRESETS, metavar='NAME',
        help='default: ' + ' '.join(PRESETS))
    parser.add_argument('--repeat', type=int, default=9, help='rounds over all sizes (default: 9)')
    parser.add_argument('--device', default='auto', help='auto, cpu, cuda or cuda:N')
    parser.add_argument('--seed', type=int, default=0, help='of the image')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the records here')


def run(args: argparse.Namespace) -> int:
    """Measure every size, preset and backend; print a table."""
    if args.repeat < 1:
        raise ValueError(f'repeat: expected at least 1, got {args.repeat}')
    stream = stream_copy()
    print(f'{platform.processor() or platform.machine()}, STREAM copy {stream:.1f} GB/s')
    records = []
    for name in args.presets:
        for record in compare(name, args):
            record |= {'preset': name, 'stream_gb_per_s': stream}
            records.append({column: record[column] for column in COLUMNS})
    print(format_table(COLUMNS, [map(_text, record.values()) for record in records]))
    for line in growth(records):
        print(line)
    if args.json:
        args.json.write_text(json.dumps(records, indent=1) + '\n')
    return 0


def compare(name: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    """
    Measure a preset at every size; return the median over the rounds.

    A round visits all sizes: a machine that is slower for some minutes is so for each of them.
    """
    ways = [kernels.select(args.device, way) for way in args.backends or usable()]
    seen: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for turn, size in itertools.product(range(args.repeat), args.sizes):
        scene = Scene(size, preset(name), args.seed)
        slow = turn % SLOW_ROUNDS == 0
        if slow:
            seen[size, 'plain'].append(plain_way(scene))
        for backend in ways:
            if slow or backend.name == 'fused':
                seen[size, backend.name].append(measure(scene, backend))
    return [
        {'size': size, 'backend': backend.name}
        | _medians(seen[size, backend.name]) | _medians(seen[size, 'plain'])
        for size in args.sizes for backend in ways]


class Scene:
    """A smooth random image over a noisy plane with holes."""

    def __init__(self, size: str, config: RefinerConfig, seed: int) -> None:
        """Draw it."""
        width, height = _sides(size)
        rng = np.random.default_rng(seed)
        noise = rng.standard_normal((2, height, width)).astype(np.float32)
        image = noise[0]
        for axis in (0, 1):
            image = sum(np.roll(image, k, axis) for k in range(-4, 5)) / 9
        y, x = np.mgrid[:height, :width].astype(np.float32)
        self.config = config
        self.guide = (0.5 + 0.5 * image / np.abs(image).max()).astype(np.float32)  # H W
        self.unit = 0.005
        self.m = (rng.random((height, width)) > 0.1).astype(np.float32)
        self.d = (0.5 + 1e-4 * x + 2e-4 * y + self.unit * noise[1]) * self.m  # H W
        self.x = np.stack((np.where(self.m > 0, self.d, 0.6), 0 * x, 0 * x))  # 3 H W


def measure(scene: Scene, backend: kernels.Kernels) -> dict[str, float]:
    """Time the graph and the step of a backend; count the bytes that a step has to move."""
    config = scene.config
    guide = backend.array(scene.guide)
    w = backend.build_graph(guide, config)
    x, d, m = (backend.array(values) for values in (scene.x, scene.d, scene.m))
    terms = Terms(config.energy.reg_lambda, config.energy.reg_alpha, config.energy.regulariser)

    def begin() -> Any:
        return backend.adam.init(x, w, d, m, scene.unit, terms)
    wait = _wait(backend)
    repeat, steps = (3, STEPS) if backend.name == 'fused' else (1, 1)
    graph = timed(lambda: wait(backend.build_graph(guide, config, out=w)), repeat)
    step = timed(
        lambda state: wait(backend.adam.steps(state, [RATE] * steps, SLOPE_SHARE)), repeat,
        before=begin) / steps
    pixels = scene.d.size
    graph_bytes = getattr(begin(), 'packed', None) or w
    # the graph once, planes in and out, both moments in and out, data and its weight
    per_pixel = graph_bytes.nbytes / pixels + 4 * (3 * 6 + 2)
    return {
        'step_ms': step, 'graph_ms': graph, 'bytes_per_pixel': per_pixel,
        'gb_per_s': per_pixel * pixels / step / 1e6}


def plain_way(scene: Scene) -> dict[str, float]:
    """Time graph and step of the plain autograd implementation."""
    import torch

    from graph_depth_refiner.lab.benchmarks import reference
    guide = torch.from_numpy(scene.guide)
    graph = timed(lambda: reference.Lists(guide, scene.config), 1, warm=False)
    return {
        'plain_graph_ms': graph, 'autograd_step_ms': timed(plain_solver(scene).step, 1)}


def plain_solver(scene: Scene) -> Any:
    """Return the plain autograd implementation, ready to take steps."""
    import torch

    from graph_depth_refiner.lab.benchmarks import reference
    guide, *values = (
        torch.from_numpy(one) for one in (scene.guide, scene.x, scene.d, scene.m))
    return reference.Solver(
        reference.Lists(guide, scene.config), *values, scene.unit, scene.config)


def timed(
        call: Callable[..., Any], repeat: int, warm: bool = True,
        before: Callable[[], Any] | None = None) -> float:
    """Return the median of milliseconds per call; it takes what `before` returns, untimed."""
    times = []
    for _ in range(repeat + warm):
        given = () if before is None else (before(),)
        start = time.perf_counter()
        call(*given)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[warm:])


def stream_copy() -> float:
    """Return the GB/s, read and written, of copying memory with all threads."""
    from numba import get_num_threads, njit, prange

    @njit(parallel=True)
    def copy(a, b, parts):
        for part in prange(parts):
            begin, end = a.size * part // parts, a.size * (part + 1) // parts
            b[begin:end] = a[begin:end]
    a = np.ones(STREAM_BYTES // 4, np.float32)
    b = np.zeros_like(a)
    return 2 * a.nbytes / timed(lambda: copy(a, b, get_num_threads()), 5) / 1e6


def usable() -> list[str]:
    """Return the backends that can run here; Triton needs a GPU."""
    names = [('fused', find_spec('numba')), ('torch', find_spec('torch')),
             ('triton', find_spec('triton') and kernels.choose().device != 'cpu')]
    return [name for name, there in names if there]


def growth(records: list[dict[str, Any]]) -> list[str]:
    """Fit how step and graph grow with the pixels, from 320x240 on."""
    lines = []
    for key in sorted({(record['preset'], record['backend']) for record in records}):
        some = [record for record in records if (record['preset'], record['backend']) == key
                and np.prod(_sides(record['size'])) >= 320 * 240]
        if len(some) > 1:
            pixels = np.log([np.prod(_sides(record['size'])) for record in some])
            step, graph = (
                np.polyfit(pixels, np.log([record[of] for record in some]), 1)[0]
                for of in ('step_ms', 'graph_ms'))
            lines.append(
                f'{key[0]} {key[1]}: step ~ pixels^{step:.2f}, graph ~ pixels^{graph:.2f}')
    return lines


def _medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}


def _wait(backend: kernels.Kernels) -> Callable[[Any], Any]:
    """Return what makes sure that the device is done."""
    if not backend.device.startswith('cuda'):
        return lambda done: done
    import torch
    return lambda done: torch.cuda.synchronize(backend.device)


def _sides(size: str) -> tuple[int, int]:
    width, times, height = size.partition('x')
    if not (times and width.isdigit() and height.isdigit() and int(width) and int(height)):
        raise ValueError(f'size: expected WIDTHxHEIGHT, got {size!r}')
    return int(width), int(height)


def _text(value: Any) -> str:
    return f'{value:.2f}' if isinstance(value, float) else str(value)
