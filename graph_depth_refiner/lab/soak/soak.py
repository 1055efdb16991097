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
"""Command `soak`: the real node against a camera that misbehaves, with every loss explained."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
import json
import os
from pathlib import Path
from random import Random, SystemRandom
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
import rclpy
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import Image

from graph_depth_refiner.cli.table import format_figures
from graph_depth_refiner.lab.benchmarks.feeder import STAMP
from graph_depth_refiner.lab.benchmarks.node import environment, resident_megabytes
from graph_depth_refiner.lab.soak.camera import (
    Camera,
    KINDS,
    QUEUE,
    SIZES,
    topic_name,
    TRANSPORT_PARAMETERS,
    TRANSPORTS,
)
from graph_depth_refiner.lab.soak.faults import calm, Fault, FAULTS, FLOOD, MAIN_OUTPUT, SWITCH
from graph_depth_refiner.lab.soak.growth import Levels
from graph_depth_refiner.lab.soak.ledger import GOOD, Ledger, LONE
from graph_depth_refiner.lab.soak.remote import Remote, VALUES

NODE = 'refiner_node'
EPISODE = (3.0, 7.0)  # seconds, shortest and longest
START = 180.0  # seconds for the first refined frame: kernels may have to be compiled
MOST_MEMORY = 1.0  # MB a minute that the node may grow by
SETTLED = 2.5  # seconds of frames before memory in use is read, and while it is
SHUTDOWN = 2.0  # seconds
GROWTH = 600.0  # seconds at most: kernels of all settings may have to be compiled
SETTING = 0.3  # seconds of frames for each value of each parameter, before memory counts
FLOODS = 3  # of the largest frames, before memory counts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        '--minutes', type=float, default=1.0, help='how long (default: %(default)g)')
    parser.add_argument(
        '--faults', action='store_true', help='inject faults; else only good frames are sent')
    parser.add_argument('--seed', type=int, help='of the faults (default: drawn, and printed)')
    parser.add_argument(
        '--hz', type=float, default=15.0, help='frames a second (default: %(default)g)')
    parser.add_argument(
        '--compressed', action='store_true', help='send JPEG images and compressedDepth')
    parser.add_argument(
        '--only', metavar='FAULT', choices=tuple(FAULTS), help='inject this fault alone')
    parser.add_argument(
        '--domain', type=int, metavar='ID',
        help='ROS domain (default: one drawn, apart from the robots of the network)')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the figures here')


def run(args: argparse.Namespace) -> int:
    """Soak, print the figures, and return 0 if nothing is unexplained."""
    if not (args.minutes > 0 and args.hz > 0):
        raise ValueError(f'minutes and hz: expected more than 0, got {args.minutes}, {args.hz}')
    seed = SystemRandom().randrange(10 ** 6) if args.seed is None else args.seed
    print(f'seed {seed}', flush=True)
    environment('large')
    if args.domain is not None:
        os.environ['ROS_DOMAIN_ID'] = str(args.domain)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    with tempfile.NamedTemporaryFile('r', suffix='.log') as log:
        soak = Soak(args, seed, log.name)
        try:
            figures = soak.run()
        finally:
            soak.close()
            rclpy.try_shutdown()
    report(figures)
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + '\n')
    return 1 if figures['unexplained'] else 0


class Soak:
    """One run: the node in a process of its own, the camera and the listener in this one."""

    def __init__(self, args: argparse.Namespace, seed: int, log: str) -> None:
        """Start the node and the camera."""
        self.args, self.seed, self.rng = args, seed, Random(seed)
        self.log = log
        self.ledger = Ledger()
        self.episodes: Counter[str] = Counter()
        self.memory: list[tuple[float, float, str]] = []  # minutes, MB, episode
        self.growth: Counter[str] = Counter()  # MB by episode
        self.levels = Levels()
        with open(log, 'w') as output:
            self.process = subprocess.Popen(
                node_command(args.compressed), stdout=output, stderr=subprocess.STDOUT)
        self.camera = Camera(args.hz, seed, self.ledger, args.compressed)
        self.remote = Remote(self.camera.node, NODE)
        self.camera.node.create_subscription(
            Image, MAIN_OUTPUT, self._heard, QoSProfile(depth=QUEUE), raw=True)

    def close(self) -> None:
        """End the node if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.camera.close()

    def run(self) -> dict[str, Any]:
        """Go through all episodes, then compare the books."""
        self._start()
        self.begin = time.monotonic()
        while all(self._episode(name, fault) for name, fault in self._pass()):
            if self.levels.due(self._minutes()):
                self.levels.add(self._minutes(), self._in_use())
        self._settle()
        return self._figures(self._shut_down())

    def _minutes(self) -> float:
        return (time.monotonic() - self.begin) / 60

    def _episode(self, name: str, fault: Fault) -> bool:
        """Let a fault go on for some seconds; return False where there is no time, or no node."""
        left = 60 * (self.args.minutes - self._minutes())
        seconds = min(self.rng.uniform(*EPISODE), left)
        if seconds <= 0 or self.process.poll() is not None:
            return False
        before = resident_megabytes(self.process.pid)
        fault(self.camera, self.remote, self.rng, seconds)
        now = resident_megabytes(self.process.pid)
        self.episodes[name] += 1
        self.growth[name] += now - before
        self.memory.append((self._minutes(), now, name))
        return True

    def _in_use(self) -> float:
        """Return the MB in use with frames of the first size, as after every other cycle."""
        self.camera.size = SIZES[0]
        self.camera.stream(SETTLED)
        reports = len(self.remote.memory)
        self.camera.stream(SETTLED)
        # the lowest: what a frame takes for a moment is none of it
        return min(self.remote.memory[reports:] or self.remote.memory[-1:])

    def _pass(self) -> Iterator[tuple[str, Fault]]:
        """Yield every fault once, in any order, and calm after each."""
        faults = dict(FAULTS) if self.args.faults else {}
        if self.args.only:
            faults = {self.args.only: FAULTS[self.args.only]}
        for name in self.rng.sample(list(faults), len(faults)):
            yield name, faults[name]
            yield 'calm', calm
        if not faults:
            yield 'calm', calm

    def _start(self) -> None:
        """Wait for the first refined frame; what is lost until then is excused."""
        self.camera.excuse('start', frozenset({'unsynchronised', 'superseded'}), 0.0, START)
        self.camera.wait_for_node()
        end = time.monotonic() + START
        while not self.ledger.heard:
            if self.process.poll() is not None or time.monotonic() > end:
                raise ValueError(
                    f'node: expected a refined frame within {START:g} s, got none; it said:\n'
                    + Path(self.log).read_text()[-2000:])
            self.camera.stream(0.5)
        self.camera.stream(SWITCH)  # by now it knows of the confidence
        if self.args.faults:
            self._grow()
        self.camera.end_excuses()

    def _grow(self) -> None:
        """
        Let the node take most of the memory that it takes once.

        That is the kernels of all settings, and the queues of its inputs, whose places keep the
        size of the largest message that ever was in them.
        """
        self.camera.excuse('start', frozenset({'unsynchronised', 'superseded'}), 0.0, GROWTH)
        self.camera.size = max(SIZES)
        for name, values in VALUES.items():
            for value in values:
                self.remote.set({name: value}, True)
                self.camera.stream(SETTING)
            self.remote.restore(self.camera.spin)
        for _ in range(FLOODS):
            for _ in range(FLOOD):
                self.camera.send(fates=GOOD | LONE)
                self.camera.jump(self.camera.period)
            self.camera.stream(1.0)
        self.camera.size = SIZES[0]

    def _settle(self) -> None:
        """Wait until the node has nothing in work and has reported that."""
        calm(self.camera, self.remote, self.rng, 2.0)
        self.camera.flush()
        seen = self.remote.number
        end = time.monotonic() + 20
        while time.monotonic() < end and self.process.poll() is None:
            self.camera.spin(0.2)
            if self.remote.number > seen + 2 and not self.remote.accounts['in work']:
                return

    def _shut_down(self) -> dict[str, Any]:
        """Interrupt the node in the middle of its work."""
        accounts, received = self.remote.accounts, self.remote.received
        sent = dict(self.camera.sent)
        alive = self.process.poll() is None
        if alive:
            self.camera.stream(1.0)
            begin = time.monotonic()
            self.process.send_signal(signal.SIGINT)
            while self.process.poll() is None and time.monotonic() < begin + 10:
                time.sleep(0.01)
            seconds = time.monotonic() - begin
        return {
            'accounts': accounts, 'received': received, 'sent': sent, 'alive': alive,
            'exit_code': self.process.poll(), 'shutdown_s': round(seconds, 2) if alive else None}

    def _heard(self, data: bytes) -> None:
        seconds, nanoseconds = STAMP.unpack_from(data, 4)
        self.ledger.hear(seconds * 10 ** 9 + nanoseconds, time.monotonic())

    def _figures(self, ended: dict[str, Any]) -> dict[str, Any]:
        growth = self.levels.growth()
        latencies = 1e3 * np.array(list(self.ledger.heard.values()) or [np.nan])
        accounts = ended['accounts']
        figures = {
            'seed': self.seed, 'minutes': self.args.minutes,
            'faults': self.args.only or self.args.faults, 'compressed': self.args.compressed,
            'episodes': dict(self.episodes),
            'sent': ended['sent'], 'received': ended['received'],
            'frames_in': ended['received'].get('depth', 0),
            'refined': accounts['refined'], 'passed': accounts['passed'],
            'dropped': {
                cause: number for cause, number in accounts.items()
                if cause not in ('refined', 'passed', 'in work')},
            'status': self.remote.statuses(),
            'excused': dict(self.ledger.disturbed),
            'latency_ms_p50': round(float(np.percentile(latencies, 50)), 1),
            'latency_ms_p99': round(float(np.percentile(latencies, 99)), 1),
            'memory_mb_start': round(self.memory[0][1], 1),
            'memory_mb_end': round(self.memory[-1][1], 1),
            'memory_mb_in_use_by_cycle': [round(mb, 1) for _, mb in self.levels.levels],
            'memory_growth_mb_per_minute': growth,
            'memory_mb_by_episode': {
                name: round(mb, 1) for name, mb in self.growth.most_common() if mb >= 0.1},
            'parameter_calls': dict(self.remote.calls),
            'exit_code': ended['exit_code'], 'shutdown_s': ended['shutdown_s'],
        }
        figures['memory_mb'] = [(round(t, 2), round(mb, 1), name) for t, mb, name in self.memory]
        figures['unexplained'] = self._unexplained(ended, growth)
        return figures

    def _unexplained(self, ended: dict[str, Any], growth: float | None) -> list[str]:
        """Return everything that is not as it must be."""
        found = list(self.remote.wrong)
        for topic in KINDS:
            sent, received = ended['sent'].get(topic, 0), ended['received'].get(topic, 0)
            if sent != received:
                found.append(f'{topic}: {sent} sent, {received} received')
        found += self.ledger_contradictions(ended)
        if not ended['alive']:
            found.append(f'the node died with exit code {ended["exit_code"]}')
        elif ended['exit_code'] != 0 or ended['shutdown_s'] > SHUTDOWN:
            found.append(
                f'shutdown: exit code {ended["exit_code"]} after {ended["shutdown_s"]} s')
        said = Path(self.log).read_text()
        if found or 'Traceback' in said:
            found.append(f'the node said: {said[-1500:] or "nothing"}')
        if growth is not None and growth > MOST_MEMORY:
            found.append(f'memory in use grows by {growth} MB a minute, cycle after cycle')
        return found

    def ledger_contradictions(self, ended: dict[str, Any]) -> list[str]:
        """Return what in the node's accounts cannot come of what was sent before the end."""
        books = self.ledger.until(ended['sent']['depth'])
        return books.contradictions(ended['accounts'])


def node_command(compressed: bool) -> list[str]:
    """Return the command of the node, with inputs on which nothing is lost on the way."""
    command = [
        sys.executable, '-m', 'graph_depth_refiner.ros.refiner_node', '--ros-args',
        '--log-level', 'error']
    for topic in KINDS:
        for policy, value in (('reliability', 'reliable'), ('depth', QUEUE)):
            name = topic_name(topic, compressed)
            command += ['-p', f'qos_overrides./{name}.subscription.{policy}:={value}']
        if compressed and topic in TRANSPORTS:
            command += ['-p', f'{TRANSPORT_PARAMETERS[topic]}:={TRANSPORTS[topic]}']
    return command


def report(figures: dict[str, Any]) -> None:
    """Print the figures."""
    shown = {name: value for name, value in figures.items() if name != 'memory_mb'}
    print(format_figures(shown | {'unexplained': len(figures['unexplained']) or 'nothing'}))
    for one in figures['unexplained']:
        print(f'  {one}')
