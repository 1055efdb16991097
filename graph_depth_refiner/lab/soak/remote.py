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
"""The node from outside: its parameters, its services, and what it says of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_srvs.srv import SetBool, Trigger

from graph_depth_refiner.config import NodeConfig, RefinerConfig

PATIENCE = 20.0  # seconds for an answer
MOST_CALLS = 50  # under way; what storms beyond is not sent
# values that change what is done but not which frames can be refined
VALUES: dict[str, list[Any]] = {
    'solver.iterations': [0, 1, 5, 10, 15], 'energy.reg_lambda': [0.0, 1.0, 7.5, 30.0],
    'energy.reg_alpha': [0.0, 1.0, 5.5], 'graph.window': [3, 5, 7], 'graph.patch': [1, 3, 5],
    'graph.neighbours': [0, 8, 20], 'graph.color': [False, True],
    'graph.normalise': [False, True], 'graph.sigma_intensity': [0.01, 0.07, 1.0],
    'energy.regulariser': ['planar', 'nltgv', 'neighbourhood'],
    'solver.learning_rate': [0.1, 1.0, 100.0],
    'solver.rate_decay': [0.05, 1.0], 'solver.time_budget_ms': [0.0, 3.0, 50.0],
    'solver.scale': [0, 1, 2],
    'depth.max': [3.0, 1e5], 'shed_load': [False, True],
    'confidence.preset': ['unit', 'percent', 'none'], 'confidence.threshold': [-1.0, 0.0, 0.5],
}


def good_setting(rng: Random) -> dict[str, Any]:
    """Draw one or two values that the node must take."""
    known = [name for name in VALUES if name in DEFAULTS]
    return {name: rng.choice(VALUES[name]) for name in rng.sample(known, rng.randint(1, 2))}


def bad_setting(rng: Random) -> dict[str, Any]:
    """Draw a value that the node must refuse."""
    return rng.choice([
        {'solver.iterations': -1}, {'solver.iterations': 'ten'}, {'solver.iterations': 10 ** 12},
        {'graph.window': 4},
        {'graph.window': 17}, {'energy.reg_lambda': float('nan')},
        {'energy.reg_lambda': float('inf')},
        {'energy.reg_lambda': -1.0}, {'energy.regulariser': 'none'}, {'graph.color': 'yes'},
        {'max_pixels': 0}, {'solver.time_budget_ms': -1.0}, {'depth_topic': 'elsewhere'},
        {'no_such_parameter': 1}, {'energy.reg_lambda': 3.0, 'energy.reg_alpha': -3.0}])


DEFAULTS: dict[str, Any] = {
    one.name: one.default for kind in (RefinerConfig, NodeConfig)
    for one in kind.tunables().values() if not one.fixed}


class Remote:
    """Clients of the node under test; answers come while the camera's node spins."""

    def __init__(self, node: Node, target: str) -> None:
        """Connect to the services and the diagnostics."""
        self._node, self._target = node, target
        self._parameters = node.create_client(
            SetParametersAtomically, f'/{target}/set_parameters_atomically')
        self._reset = node.create_client(Trigger, f'/{target}/reset')
        self._enable = node.create_client(SetBool, f'/{target}/enable')
        node.create_subscription(DiagnosticArray, '/diagnostics', self._diagnosed, 10)
        self.reports: dict[str, dict[str, str]] = {}  # by task: values by name
        self.number = 0  # of reports
        self.memory: list[float] = []  # MB in use, by report
        self.calls: Counter[str] = Counter()
        self.wrong: list[str] = []  # answers that should have been others
        self._open = 0

    def set(self, values: dict[str, Any], good: bool) -> None:
        """Ask for a change that must be taken, or refused."""
        if self._open >= MOST_CALLS:
            return
        parameters = [
            Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
        self._open += 1
        self.calls['sent'] += 1
        future = self._parameters.call_async(
            SetParametersAtomically.Request(parameters=parameters))
        future.add_done_callback(lambda f: self._answered(values, good, f.result().result))

    def restore(self, spin: Callable[[float], None]) -> None:
        """Set every parameter to its default again and wait until that is so."""
        self._wait(spin)
        self.set({n: v for n, v in DEFAULTS.items() if n in VALUES or n == 'max_age'}, True)
        self._wait(spin)

    def _wait(self, spin: Callable[[float], None]) -> None:
        end = time.monotonic() + PATIENCE
        while self._open and time.monotonic() < end:
            spin(0.02)
        if self._open:
            self.wrong.append(f'{self._open} calls were not answered within {PATIENCE:g} s')
            self._open = 0

    def reset(self) -> None:
        """Call ~/reset."""
        self._reset.call_async(Trigger.Request())

    def enable(self, on: bool) -> None:
        """Call ~/enable."""
        self._enable.call_async(SetBool.Request(data=on))

    @property
    def received(self) -> dict[str, int]:
        """Return the messages the node has received, by topic."""
        return _counts(self.reports.get('Inputs', {}), ' received')

    @property
    def accounts(self) -> dict[str, int]:
        """Return what the node says became of every depth message."""
        report = self.reports.get('Refinement', {})
        found = {name: int(report.get(name, 0)) for name in ('refined', 'passed', 'in work')}
        found.update(
            (name.removeprefix('dropped: '), int(value)) for name, value in report.items()
            if name.startswith('dropped: '))
        found['unsynchronised'] = found.get('unsynchronised', 0) + int(report.get('waiting', 0))
        return found

    def value(self, name: str) -> str:
        """Return one value of the newest report on the refinement."""
        return self.reports.get('Refinement', {}).get(name, 'none')

    def statuses(self) -> dict[str, int]:
        """Return how many frames ended with each status, where the node tells."""
        report = self.reports.get('Refinement', {})
        return {name.removeprefix('status '): int(value) for name, value in report.items()
                if name.startswith('status ') and value.isdigit()}

    def _answered(self, values: dict[str, Any], good: bool, result: Any) -> None:
        self._open -= 1
        self.calls['taken' if result.successful else 'refused'] += 1
        if result.successful != good or not (result.successful or result.reason):
            self.wrong.append(f'{values}: {result.successful} {result.reason!r}')

    def _diagnosed(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if self._target not in status.name:
                continue
            task = status.name.rpartition(': ')[2]
            self.reports[task] = {pair.key: pair.value for pair in status.values}
            if task == 'Refinement':
                self.number += 1
                self._weigh()

    def _weigh(self) -> None:
        held, free = self.value('memory (MB)'), self.value('memory kept free (MB)')
        if 'none' not in (held, free):  # before the kernels are loaded
            self.memory.append(float(held) - float(free))


def _counts(report: dict[str, str], ending: str) -> dict[str, int]:
    return {name.removesuffix(ending): int(value) for name, value in report.items()
            if name.endswith(ending)}
