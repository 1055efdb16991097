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

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
import os
import signal
import sys
from typing import NoReturn

from graph_depth_refiner.ros.memory import keep_freed_memory

NAME = 'refiner_node'  # of the nodes, unless remapped
EXIT_TIMEOUT = 0.5  # seconds the worker has to finish its frame


class StartError(ValueError):
    """What a user gave that a node cannot start with, in one sentence."""


@contextmanager
def naming(node: str) -> Iterator[None]:
    """Name the node in front of what it, or ROS, refuses at its start."""
    try:
        yield
    except StartError:
        raise
    except Exception as error:
        if isinstance(error, ValueError) or type(error).__module__.startswith('rclpy'):
            raise StartError(f'{node}: {one_line(error)}') from None
        raise


def one_line(error: Exception) -> str:
    """Return what an error of ROS says, without marks below a text and lines of C."""
    return str(error).partition('\n')[0].partition(', at /')[0].rstrip(':')


def run(module: str, kind: str, args: list[str] | None = None) -> NoReturn:
    """Spin a node of the package until it is told to end, and exit."""
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        # no KeyboardInterrupt from just anywhere: rclpy's own handlers come on top of these
        signal.signal(number, lambda got, _: signals.append(got))
    keep_freed_memory()
    code = 0
    try:
        _live(module, kind, args, signals)
    except Exception as error:
        if not signals:  # else rclpy's way to say that it was ended while it began
            if not isinstance(error, StartError):
                raise
            print(error, file=sys.stderr)
            code = 2
    sys.stdout.flush()
    sys.stderr.flush()
    # neither a long solve nor taking apart the interpreter holds up the shutdown of a robot
    os._exit(code)


def _live(module: str, kind: str, args: list[str] | None, signals: list[int]) -> None:
    """Make the node, spin it and take it down."""
    make_node = getattr(import_module(f'graph_depth_refiner.ros.{module}'), kind)
    import rclpy

    from graph_depth_refiner.ros.spinning import until_shutdown
    with naming(NAME):
        rclpy.init(args=args)
    try:
        if signals:
            return
        with naming(NAME):
            node = make_node()
        with until_shutdown():
            rclpy.spin(node)
        node.pipeline.stop(EXIT_TIMEOUT)
        node.destroy_node()
    finally:
        rclpy.try_shutdown()
