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
"""Subscribes to all outputs of the node and notes when each message came."""

from __future__ import annotations

from collections.abc import Sequence
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions

from graph_depth_refiner.lab.benchmarks.feeder import STAMP
from graph_depth_refiner.messages.assembly import OUTPUTS
from graph_depth_refiner.ros.messages import message_type

FATES = ('received', 'refined', 'passed', 'waiting', 'in work')  # besides what is dropped


class Listener:
    """Takes messages as bytes: what it costs to unpack them is the reader's affair."""

    def __init__(self, topics: Sequence[str]) -> None:
        """Subscribe to some outputs."""
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node('listener')
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self.arrivals: dict[str, dict[float, float]] = {}  # by topic: stamp -> time
        self.accounts: dict[str, int] = {}
        self.shedding_stage = 0
        self.threads = 0
        self.reports = 0  # on /diagnostics so far
        for topic in topics:
            if topic not in OUTPUTS:
                raise ValueError(
                    f'outputs: expected some of {", ".join(OUTPUTS)}, got {topic!r}')
            self._subscribe(topic)
        self._node.create_subscription(DiagnosticArray, '/diagnostics', self._diagnosed, 10)

    def __enter__(self) -> Listener:
        """Return itself."""
        return self

    def __exit__(self, *_: Any) -> None:
        """Leave the ROS graph."""
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown()

    def listen(self, seconds: float) -> None:
        """Take in messages for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._executor.spin_once(max(0.0, end - time.monotonic()))

    def wait_for_camera(self, seconds: float) -> None:
        """Wait until somebody publishes depth."""
        end = time.monotonic() + seconds
        while not self._node.count_publishers('depth'):
            if time.monotonic() > end:
                raise ValueError(f'camera: expected one within {seconds:g} s, got none')
            self._executor.spin_once(0.1)

    def first_arrival(self) -> float:
        """Return when the first message came, in seconds of the system's clock."""
        return min(min(times.values()) for times in self.arrivals.values())

    def wait_for_frames(self, seconds: float) -> None:
        """Wait until refined frames come on every topic."""
        end = time.monotonic() + seconds
        while not all(self.arrivals.values()):
            if time.monotonic() > end:
                silent = [topic for topic, times in self.arrivals.items() if not times]
                raise ValueError(
                    f'node: expected frames on all topics within {seconds:g} s, got none on '
                    f'{", ".join(silent)}')
            self._executor.spin_once(0.1)

    def unexplained(self) -> int:
        """Return how many depth messages came to the node of which it does not tell the fate."""
        return 2 * self.accounts.get('received', 0) - sum(self.accounts.values())

    def _subscribe(self, topic: str) -> None:
        times = self.arrivals[topic] = {}

        def note(data: bytes) -> None:
            seconds, nanoseconds = STAMP.unpack_from(data, 4)
            times[round(seconds + nanoseconds * 1e-9, 6)] = time.time()

        output = OUTPUTS[topic]
        self._node.create_subscription(
            message_type(output.package, output.type_name), topic, note, QoSProfile(depth=5),
            raw=True)

    def _diagnosed(self, array: DiagnosticArray) -> None:
        for status in array.status:
            if not status.name.endswith('Refinement'):
                continue
            self.reports += 1
            for pair in status.values:
                if pair.key in FATES or pair.key.startswith('dropped: '):
                    self.accounts[pair.key] = int(pair.value)
                elif pair.key == 'shedding stage':
                    self.shedding_stage = int(pair.value)
                elif pair.key == 'threads':
                    self.threads = int(pair.value)
