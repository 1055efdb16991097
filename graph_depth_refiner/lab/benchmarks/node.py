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
"""Measure the real node over DDS: a camera, the node and a listener, each its own process."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, ExitStack
import json
import os
from pathlib import Path
import random
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from graph_depth_refiner.cli.table import format_figures
from graph_depth_refiner.lab.benchmarks.listener import Listener
from graph_depth_refiner.messages.assembly import output_topics
from graph_depth_refiner.ros.memory import cpu_seconds, keep_freed_memory, resident_megabytes

FRAMES = 45  # rendered beforehand, played there and back
WARM_UP = 10.0  # seconds of refined frames before anything counts
PATIENCE = 240.0  # seconds for rendering and, the first time ever, for compiling
RECOVERY = 30.0  # seconds that the node has to take up all work again once the hogs have ended
PROFILE = 'fastdds_large_messages.xml'
HOG = 'while True: pass'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `benchmark node`."""
    parser.add_argument(
        '--size', default='640x480', help='width and height (default: %(default)s)')
    parser.add_argument(
        '--hz', type=float, default=15.0, help='frames a second (default: %(default)g)')
    parser.add_argument(
        '--seconds', type=float, default=60.0, help='time measured (default: %(default)g)')
    parser.add_argument('--seed', type=int, default=0, help='of the synthetic scene')
    parser.add_argument(
        '--dds', choices=('large', 'default'), default='large',
        help='Fast DDS with the profile for large messages or as it comes')
    parser.add_argument(
        '--hogs', type=int, default=0, metavar='N',
        help='processes that keep a core busy meanwhile; after that, how long the node takes to '
        'do all work again')
    parser.add_argument(
        '--outputs', nargs='+', metavar='TOPIC', default=output_topics(disparity=False),
        help='outputs that are listened to (default: all)')
    parser.add_argument(
        '--set', metavar='NAME=VALUE', action='append', default=[],
        help='parameter of the node, may be repeated')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the figures here')


def run(args: argparse.Namespace) -> int:
    """Measure, print, and return 0 if the node kept up."""
    width, height = size(args.size)
    if args.hogs < 0:
        raise ValueError(f'hogs: expected at least 0, got {args.hogs}')
    environment(args.dds)
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as running:
        sent_file = Path(folder) / 'sent.json'
        feeder = [
            sys.executable, '-m', 'graph_depth_refiner.lab.benchmarks.feeder',
            '--size', str(width), str(height), '--hz', str(args.hz), '--seed', str(args.seed),
            '--frames', str(FRAMES), '--sent', str(sent_file)]
        node = [sys.executable, '-m', 'graph_depth_refiner.ros.refiner_node', '--ros-args']
        for setting in args.set:
            node += ['-p', setting.replace('=', ':=', 1)]
        with process(feeder), Listener(args.outputs) as listener:
            listener.wait_for_camera(PATIENCE)
            started = time.time()
            refiner = running.enter_context(process(node))
            listener.wait_for_frames(PATIENCE)
            with hogs(args.hogs):
                listener.listen(WARM_UP)
                figures = measure(listener, refiner.pid, args.seconds)
            if args.hogs:
                figures['recovery_seconds'] = recovery(listener)
            figures['first_frame_seconds'] = listener.first_arrival() - started
        sent = np.array(json.loads(sent_file.read_text()))
    figures = summary(figures, sent, args)
    print(format_figures(figures))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + '\n')
    return 0 if figures['refined'] >= 0.98 * figures['sent'] else 1


def size(text: str) -> tuple[int, int]:
    """Read WIDTHxHEIGHT."""
    parts = text.split('x')
    if len(parts) != 2 or not all(part.isdigit() and int(part) for part in parts):
        raise ValueError(f'size: expected WIDTHxHEIGHT, got {text!r}')
    return int(parts[0]), int(parts[1])


def environment(dds: str) -> None:
    """Take a ROS domain of its own on this machine, and the DDS profile asked for."""
    os.environ['ROS_DOMAIN_ID'] = str(random.SystemRandom().randint(1, 100))
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    for name in ('FASTRTPS_DEFAULT_PROFILES_FILE', 'FASTDDS_DEFAULT_PROFILES_FILE'):
        os.environ.pop(name, None)
        if dds == 'large':
            os.environ[name] = str(profile())


def profile() -> Path:
    """Return the installed profile for large messages, or that of the source tree."""
    try:
        from ament_index_python.packages import get_package_share_directory
        return Path(get_package_share_directory('graph_depth_refiner')) / 'config' / PROFILE
    except (LookupError, OSError):  # not installed, or no ROS environment sourced
        return Path(__file__).parents[3] / 'config' / PROFILE


@contextmanager
def process(command: list[str]) -> Iterator[subprocess.Popen]:
    """Run a process; end it by SIGTERM, and if need be by force."""
    running = subprocess.Popen(command)
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(10)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


@contextmanager
def hogs(number: int) -> Iterator[None]:
    """Keep so many cores busy."""
    with ExitStack() as running:
        for _ in range(number):
            running.enter_context(process([sys.executable, '-c', HOG]))
        yield


def recovery(listener: Listener) -> float | None:
    """Return the seconds until the node sheds nothing, None where it does not come to that."""
    start = time.monotonic()
    while time.monotonic() < start + RECOVERY:
        reports = listener.reports
        while listener.reports == reports:  # what was said before says nothing
            listener.listen(0.1)
        if listener.shedding_stage == 0:
            return round(time.monotonic() - start, 1)
    return None


def measure(listener: Listener, pid: int, seconds: float) -> dict[str, Any]:
    """Listen for a while; return what was seen, and the memory of the node."""
    before = dict(listener.accounts)
    rss_start, cpu_start = resident_megabytes(pid), cpu_seconds(pid)
    start = time.time()
    listener.listen(seconds)
    end, cpu = time.time(), cpu_seconds(pid) - cpu_start
    listener.listen(1.5)  # frames on their way, and the accounts of the last second
    return {
        'start': start, 'end': end, 'arrivals': listener.arrivals,
        'rss_mb_start': rss_start, 'rss_mb_end': resident_megabytes(pid),
        'drops': {
            name.removeprefix('dropped: '): count - before.get(name, 0)
            for name, count in listener.accounts.items() if name.startswith('dropped: ')},
        'received': listener.accounts.get('received', 0) - before.get('received', 0),
        'shedding_stage': listener.shedding_stage, 'threads': listener.threads, 'cpu': cpu,
        'unexplained': listener.unexplained(),
    }


def summary(seen: dict[str, Any], sent: np.ndarray, args: argparse.Namespace) -> dict[str, Any]:
    """Turn arrivals into figures."""
    counted = sent[(sent >= seen['start']) & (sent < seen['end'])]
    depth = latencies(counted, seen['arrivals']['depth_refined/image'])
    last = np.max([latencies(counted, times) for times in seen['arrivals'].values()], axis=0)
    period = 1e3 / args.hz
    figures = {
        'size': args.size, 'hz': args.hz, 'seconds': args.seconds, 'dds': args.dds,
        'hogs': args.hogs,
        # from the start of the node: kernels are loaded, or compiled where they never were
        'first_frame_seconds': round(seen['first_frame_seconds'], 1),
        'sent': len(counted),
        'received': seen['received'],  # by the node, over the whole seconds of its reports
        'refined': int(np.isfinite(depth).sum()),
        'refined_all_outputs': int(np.isfinite(last).sum()),
        'drops': seen['drops'],
        'unexplained': seen['unexplained'],
        'shedding_stage': seen['shedding_stage'],
        'threads': seen['threads'],  # of the last frame
        'cpu_ms_per_frame': round(1e3 * seen['cpu'] / max(1, np.isfinite(depth).sum()), 1),
        'rss_mb_start': round(seen['rss_mb_start'], 1),
        'rss_mb_end': round(seen['rss_mb_end'], 1),
        'period_ms': round(period, 1),
    }
    for name, values in (('latency_ms', depth), ('latency_all_outputs_ms', last)):
        values = values[np.isfinite(values)]
        for percent in (50, 95, 99):
            value = float(np.percentile(values, percent)) if values.size else None
            figures[f'{name}_p{percent}'] = None if value is None else round(value, 1)
    if 'recovery_seconds' in seen:
        figures['recovery_seconds'] = seen['recovery_seconds']
    return figures


def latencies(sent: np.ndarray, arrivals: dict[float, float]) -> np.ndarray:
    """Return milliseconds from stamp to arrival, infinite for what did not arrive."""
    return np.array([1e3 * (arrivals.get(round(s, 6), np.inf) - s) for s in sent.tolist()])
