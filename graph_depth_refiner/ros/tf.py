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
Transforms of /tf and /tf_static by tf2_ros, where that is installed.

tf2 interpolates, never extrapolates, and `lookup_transform` waits for the given time at most.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from graph_depth_refiner.messages.transforms import matrix_of, transform_row


def is_installed() -> bool:
    """Say whether there is a tf2_ros."""
    return find_spec('tf2_ros') is not None


class Tf:
    """A buffer of tf2 that listens on the executor of a node."""

    def __init__(self, node: Any) -> None:
        """Listen."""
        from rclpy.duration import Duration
        from rclpy.time import Time
        from tf2_ros import Buffer, TransformException, TransformListener
        self._duration, self._time, self._error = Duration, Time, TransformException
        self._buffer = Buffer()
        self._listener = TransformListener(self._buffer, node)

    def lookup(self, target: str, source: str, stamp: Any, timeout: float) -> np.ndarray | None:
        """Return the matrix (4 4) from `source` to `target` at a stamp, None where unknown."""
        try:
            found = self._buffer.lookup_transform(
                target, source, self._time.from_msg(stamp), self._duration(seconds=timeout))
        except self._error:
            return None
        return matrix_of(transform_row(f'tf {target} to {source}', found.transform))

    def clear(self) -> None:
        """Forget what came, as the stream starts anew; static transforms stay."""
        self._buffer.clear()

    def destroy(self) -> None:
        """Stop listening."""
        self._listener.unregister()
