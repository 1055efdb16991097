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
"""
The command `benchmark gpu`: a frame on a GPU, stage by stage; or, without one, what it would ask.

With a GPU every stage is compared with its reference, plain torch on the CPU, while frames of a
synthetic stream are refined, and timed; whole frames are compared with the fused kernels of the
CPU. With `--dry-run` launches, copies and waits are counted and all kernels compiled for the GPUs
of `gpu_compile.TARGETS`; times are then estimates.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
import json
from pathlib import Path
import statistics
import time
from typing import Any

import numpy as np

from graph_depth_refiner.cli.main import add_config_arguments, config_from
from graph_depth_refiner.cli.table import format_table
from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.lab.benchmarks.solver import _sides

MOST_LAUNCHES, MOST_UPLOADS, MOST_WAITS = 400, 3, 2  # of a frame
WINDOWS = (5, 9)  # of the graph, for which kernels are compiled besides that of the preset
COMPARED = 8  # frames that are compared with those of the CPU: the last ones are replayed
TOLERANCE = 1e-3  # of the largest value of a result
FLIPPED = 0.01  # share of values that may differ by more: choices between equals fall either way


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `benchmark gpu`."""
    add_config_arguments(parser)
    parser.add_argument('--size', default='640x480', metavar='WxH', help='default: %(default)s')
    parser.add_argument(
        '--dry-run', action='store_true',
        help='no GPU is needed: count launches, copies and waits, compile, and estimate')
    parser.add_argument('--frames', type=int, default=20, help='that are timed (default: 20)')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the numbers here')


def run(args: argparse.Namespace) -> int:
    """Count or measure; return 1 where limits are passed or a stage disagrees."""
    for module in ('torch', 'triton'):
        if not find_spec(module):
            raise ValueError(f'{module}: expected to be installed, got no such module')
    config, size = config_from(args), _sides(args.size)
    record = dry_run(config, size) if args.dry_run else measure(
        config, size, args.device, args.frames)
    if args.json:
        args.json.write_text(json.dumps(record, indent=1) + '\n')
    return 0 if record['good'] else 1


def dry_run(config: RefinerConfig, size: tuple[int, int]) -> dict[str, Any]:
    """Count what frames ask of a GPU, compile the kernels, and estimate times."""
    from graph_depth_refiner.lab.benchmarks import gpu_compile, gpu_plan
    plans = gpu_plan.plan_frames(config, size)
    print(format_table(
        ('frame', 'launches', 'Triton', 'as graphs', 'uploads', 'downloads', 'waits', 'MB up',
         'MB down'),
        [(plan.frame, plan.launches, len(plan.kernels),
          f'{plan.graphs} + {plan.beside_graphs}' if plan.graphs else '-', plan.uploads,
          plan.downloads, plan.waits,
          f'{plan.bytes_up / 1e6:.2f}', f'{plan.bytes_down / 1e6:.2f}') for plan in plans]))
    kernels = [one for plan in plans for one in plan.kernels]
    for window in WINDOWS:
        wider = config.with_values(**{'graph.window': window})
        kernels += gpu_plan.plan_frames(wider, size)[0].kernels
    compiled = gpu_compile.compile_all(gpu_compile.distinct(kernels))
    usual = max(plans[2::3], key=lambda plan: plan.launches)
    record = {
        'size': f'{size[0]}x{size[1]}', 'frame': usual.frame, 'launches': usual.launches,
        'uploads': usual.uploads, 'downloads': usual.downloads, 'waits': usual.waits,
        'bytes_up': usual.bytes_up, 'bytes_down': usual.bytes_down,
        'bytes_moved': usual.bytes_moved, 'graph_launches': usual.graphs,
        'launches_beside_graphs': usual.beside_graphs, 'kernels_compiled': len(compiled),
        'spills': gpu_compile.spills(compiled),
        'targets': [f'sm_{target}' for target in gpu_compile.TARGETS],
        'registers': max(one['registers'] for one in compiled),
        'estimated_ms': {device.name: round(device.milliseconds(usual), 2)
                         for device in gpu_plan.DEVICES}}
    record['good'] = (
        usual.launches <= MOST_LAUNCHES and usual.uploads <= MOST_UPLOADS
        and usual.waits <= MOST_WAITS and not record['spills'])
    print(f'{record["kernels_compiled"]} kernels compiled for {", ".join(record["targets"])}: '
          f'{record["spills"]} spill, at most {record["registers"]} registers')
    for one in compiled:
        if gpu_compile.spills([one]):
            print(f'  {one["kernel"]} {one["constants"]} for sm_{one["target"]}: {one["stack"]} '
                  f'bytes of stack, {one["local"]} of local memory')
    for name, milliseconds in record['estimated_ms'].items():
        print(f'estimate, not measured: {milliseconds} ms a frame on a {name}')
    return record


def measure(config: RefinerConfig, size: tuple[int, int], device: str, frames: int
            ) -> dict[str, Any]:
    """Compare every stage with its reference, and the frame with the fused kernels; time both."""
    from graph_depth_refiner.core import kernels
    from graph_depth_refiner.lab.benchmarks.gpu_check import checked
    from graph_depth_refiner.lab.synthetic.stream import SyntheticStream
    from graph_depth_refiner.refiner import DepthRefiner
    choice = kernels.choose('cuda' if device == 'auto' else device, 'auto')
    if choice.device == 'cpu':
        raise ValueError('device: expected a CUDA device (--dry-run needs none), got cpu')
    config = config.with_values(backend='auto')
    stream = SyntheticStream(0, size)
    views = [replace(stream.view(number).frame, pose=None) for number in range(frames)]
    stages, k = checked(kernels.make(choice), kernels.torch_kernels('cpu'))
    slow = DepthRefiner(config, choice.device)
    slow.kernels = k
    for view in views[:4]:
        slow.refine(view)
    fast, fused = DepthRefiner(config, choice.device), DepthRefiner(config, 'cpu')
    off = max(_difference(fast.refine(view).depth, fused.refine(view).depth)
              for view in views[:COMPARED])
    before = fast.graphs.launches if fast.graphs else 0
    device_ms, cpu_ms = (_median_ms(one.refine, views) for one in (fast, fused))
    rows = [(name, f'{one.milliseconds:.3f}', f'{one.gb_per_s:.1f}', one.launches, one.calls,
             f'{one.off:.1e}', 'yes' if one.agrees else 'NO') for name, one in stages.items()]
    print(format_table(('stage', 'ms', 'GB/s', 'launches', 'calls', 'difference', 'agrees'), rows))
    print(f'whole frame: {device_ms:.2f} ms on {choice.device} ({choice.backend}), {cpu_ms:.2f} '
          f'ms with the fused kernels of the CPU: {"the GPU" if device_ms < cpu_ms else "the CPU"}'
          f' wins; share of pixels that differ: {off:.4f}')
    graphs = (fast.graphs.launches - before) / len(views) if fast.graphs else 0.0
    print(f'CUDA graphs: {graphs:.1f} started a frame'
          + ('; a capture failed' if fast.graphs and fast.graphs.failures else ''))
    good = all(one.agrees for one in stages.values()) and off <= FLIPPED
    return {'size': f'{size[0]}x{size[1]}', 'device': choice.device, 'backend': choice.backend,
            'device_ms': device_ms, 'cpu_ms': cpu_ms, 'different_pixels': off, 'good': good,
            'launches': sum(one.launches for one in stages.values()) / 4, 'waits': MOST_WAITS,
            'graph_launches': graphs,
            'capture_failures': fast.graphs.failures if fast.graphs else 0,
            'stages': {name: {'ms': one.milliseconds, 'gb_per_s': one.gb_per_s,
                              'agrees': one.agrees} for name, one in stages.items()}}


def _difference(one: np.ndarray, other: np.ndarray) -> float:
    """Return the share of pixels whose depth differs by more than the tolerance."""
    with np.errstate(invalid='ignore'):
        same = (np.abs(one / other - 1) <= TOLERANCE) | (np.isnan(one) & np.isnan(other))
    return float(1 - same.mean())


def _median_ms(refine: Callable, views: list) -> float:
    """Return the time of a frame; it ends when the results are on the host."""
    times = []
    for view in views:
        start = time.perf_counter()
        refine(view)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[len(times) // 4:])
