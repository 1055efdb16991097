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
"""The end of every node: a signal shuts ROS down while something of it still waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import rclpy
from rclpy.executors import Executor, ExternalShutdownException

# Asked for when an executor is deleted, also one whose making a shutdown cut short.
if not hasattr(Executor, '_sigint_gc'):
    Executor._sigint_gc = None


@contextmanager
def until_shutdown() -> Iterator[None]:
    """Leave the block quietly when ROS is shut down in the midst of it."""
    try:
        yield
    except ExternalShutdownException:
        pass
    except RuntimeError:  # of rcl, where the shutdown came between two of its calls
        if rclpy.ok():
            raise
