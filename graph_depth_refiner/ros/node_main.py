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
Starts a node and ends it cleanly on SIGINT and SIGTERM, even while it is still loading.

Only the standard library is imported here, so that the signals are taken care of from the
first moment on.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
import os
import signal
import sys

from graph_depth_refiner.ros.memory import keep_freed_memory

EXIT_TIMEOUT = 0.5  # seconds the worker has to finish its frame


def run(module: str, kind: str, args: list[str] | None = None) -> int:
    """Spin a node of the package until it is told to end; return the exit code."""
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        # no KeyboardInterrupt from just anywhere: rclpy's own handlers come on top of these
        signal.signal(number, lambda got, _: signals.append(got))
    keep_freed_memory()
    try:
        _live(module, kind, args, signals)
    except ValueError as error:
        print(f'{module}: {error}', file=sys.stderr)
        return 2
    except Exception:  # of whatever kind rclpy has for what is ended while it begins
        if not signals:
            raise
    sys.stdout.flush()
    sys.stderr.flush()
    # neither a long solve nor taking apart the interpreter holds up the shutdown of a robot
    os._exit(0)


def _live(module: str, kind: str, args: list[str] | None, signals: list[int]) -> None:
    """Make the node, spin it and take it down."""
    make_node = getattr(import_module(f'graph_depth_refiner.ros.{module}'), kind)
    import rclpy
    from rclpy.executors import ExternalShutdownException
    rclpy.init(args=args)
    try:
        if signals:
            return
        node = make_node()
        with suppress(ExternalShutdownException):
            rclpy.spin(node)
        node.pipeline.stop(EXIT_TIMEOUT)
        node.destroy_node()
    finally:
        rclpy.try_shutdown()
