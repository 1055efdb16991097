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

tf2 interpolates and never extrapolates. Its own way of waiting looks every 20 ms; here what comes
wakes who waits.
"""

from __future__ import annotations

from importlib.util import find_spec
import threading
from typing import Any

import numpy as np

from graph_depth_refiner.messages.conversions import seconds
from graph_depth_refiner.messages.transforms import bare, LONGEST_GAP, matrix_of, transform_row


def is_installed() -> bool:
    """Say whether there is a tf2_ros."""
    return find_spec('tf2_ros') is not None


class Tf:
    """A buffer of tf2 that listens on the executor of a node."""

    def __init__(self, node: Any) -> None:
        """Listen."""
        from rclpy.time import Time
        from tf2_ros import Buffer, TransformException, TransformListener
        self._time, self._error = Time, TransformException
        self._news = news = threading.Condition()

        class HeardBuffer(Buffer):
            """A buffer that wakes who waits for a transform."""

            def set_transform(self, transform: Any, authority: str) -> None:
                super().set_transform(transform, authority)
                with news:
                    news.notify_all()

            def set_transform_static(self, transform: Any, authority: str) -> None:
                super().set_transform_static(transform, authority)
                with news:
                    news.notify_all()

        self._buffer = HeardBuffer()
        self._listener = TransformListener(self._buffer, node)

    def lookup(self, target: str, source: str, stamp: Any, timeout: float) -> np.ndarray | None:
        """
        Return the matrix (4 4) from `source` to `target` at a stamp, None where unknown.

        Waits until it is known, for `timeout` seconds at most.
        """
        asked = bare(target), bare(source), self._time.from_msg(stamp)
        with self._news:
            self._news.wait_for(lambda: self._buffer.can_transform_core(*asked)[0], timeout)
        try:
            found = self._buffer.lookup_transform_core(*asked)
        except self._error:
            return None
        return matrix_of(transform_row(f'tf {target} to {source}', found.transform))

    def is_current(self, target: str, source: str, stamp: Any) -> bool:
        """Say whether a transform was known shortly before a stamp, so that more will come."""
        try:
            newest = self._buffer.get_latest_common_time(bare(target), bare(source))
        except self._error:
            return False
        # of static transforms the time is 0, and they need no waiting
        return newest.nanoseconds * 1e-9 > seconds(stamp) - LONGEST_GAP

    def clear(self) -> None:
        """Forget what came, as the stream starts anew; static transforms stay."""
        self._buffer.clear()

    def destroy(self) -> None:
        """Stop listening."""
        self._listener.unregister()
