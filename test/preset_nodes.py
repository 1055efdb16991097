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
"""Refiners in one process, each with a preset of a camera in a namespace of its own."""

import signal
import sys

import rclpy
from rclpy.executors import SingleThreadedExecutor

from graph_depth_refiner.ros.nodes import RefinerNode
from graph_depth_refiner.ros.spinning import until_shutdown


def main():
    """Start one node for each `namespace=arguments…` until SIGINT."""
    # no KeyboardInterrupt from just anywhere: rclpy's own handler comes on top of this
    signal.signal(signal.SIGINT, lambda *_: None)
    rclpy.init()
    executor = SingleThreadedExecutor()
    for text in sys.argv[1:]:
        namespace, _, arguments = text.partition('=')
        executor.add_node(RefinerNode(
            namespace=namespace, cli_args=['--ros-args', *arguments.split('|')]))
    with until_shutdown():
        executor.spin()
    for node in executor.get_nodes():
        node.pipeline.stop()
    rclpy.try_shutdown()


if __name__ == '__main__':
    main()
