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
"""A node with tunables as parameters, run by test_parameters; says its changes on stdout."""

from contextlib import suppress
from dataclasses import dataclass
import sys

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node

from graph_depth_refiner.config import preset, RefinerConfig, tunable, Tunables
from graph_depth_refiner.ros.logs import forward_to
from graph_depth_refiner.ros.parameters import Parameters


@dataclass(frozen=True)
class Start(Tunables):
    """What a node reads at start."""

    start_preset: str = tunable('paper', 'Values to start from', fixed=True)
    start_share: float = tunable(0.25, 'A share', unit='m', low=0.0, high=1.0)


def main():
    """Run until interrupted."""
    rclpy.init()
    node = Node('tuned')
    forward_to(node)
    parameters = Parameters(node, on_change=lambda names: report(sorted(names)))

    def report(names):
        config = parameters.values(RefinerConfig)
        print('changed', names, config.energy.reg_lambda, config.solver.iterations, flush=True)

    try:
        start = parameters.declare(Start())
        parameters.declare(preset(start.start_preset))
    except ValueError as error:
        sys.exit(f'refused {error}')
    print('ready', parameters.values(RefinerConfig).graph.window, start.start_share, flush=True)
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(node)


if __name__ == '__main__':
    main()
