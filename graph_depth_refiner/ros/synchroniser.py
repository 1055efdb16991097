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
Brings the messages of one moment together, by `message_filters`.

Around it stands what that library lacks: a stamp that jumps back empties the queues
(they would delete every new message instead, for good), stamps it cannot represent are
refused (it would never release its lock), no stamps match that are nearer to those of the
next frame (after a lost message every frame would get its neighbour's image, for good), and
it can be asked what waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from message_filters import ApproximateTimeSynchronizer, SimpleFilter, TimeSynchronizer
from rclpy.duration import Duration

from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.messages.conversions import seconds

PERIODS = 8  # of a topic that are remembered; a quarter of them may be shorter than usual


class Synchroniser:
    """Hands over one message of each topic whenever their stamps match."""

    def __init__(self, on_set: Callable[[dict[str, Any]], None],
                 on_jump: Callable[[str, float], None]) -> None:
        """Start waiting for nothing."""
        self._on_set, self._on_jump = on_set, on_jump
        self.matched = 0
        self._periods: dict[str, deque[float]] = {}  # seconds between stamps, the last ones
        self.use((), NodeConfig())

    def use(self, topics: tuple[str, ...], config: NodeConfig) -> None:
        """Wait for these topics from now on; what waits is dropped."""
        self.topics, self._config = topics, config
        self._filters = {topic: SimpleFilter() for topic in topics}
        inputs = list(self._filters.values())
        if config.approximate_sync:
            self._sync = ApproximateTimeSynchronizer(
                inputs, config.queue_size, config.approximate_sync_tolerance_seconds)
        else:
            self._sync = TimeSynchronizer(inputs, config.queue_size)
        self._sync.registerCallback(self._matched)
        self._newest: dict[str, float] = {}

    def follow(self, topics: tuple[str, ...], config: NodeConfig) -> None:
        """Start anew with other topics or settings only where they are others."""
        def relevant(of: NodeConfig) -> tuple:
            return of.approximate_sync, of.queue_size, of.approximate_sync_tolerance_seconds

        if topics != self.topics or relevant(config) != relevant(self._config):
            self.use(topics, config)
        self._config = config

    def reset(self) -> None:
        """Drop what waits."""
        self.use(self.topics, self._config)

    def add(self, topic: str, message: Any) -> None:
        """Take in a message; raise ValueError where its stamp is none."""
        stamp = message.header.stamp
        if stamp.sec < 0 or stamp.nanosec >= 10 ** 9:
            raise ValueError(
                f'{topic}.header.stamp: expected sec of at least 0 and nanosec below 1e9, got '
                f'{stamp.sec} and {stamp.nanosec}')
        if topic not in self._filters:
            return
        now = seconds(stamp)
        newest = self._newest.get(topic, now)
        if newest - now > self._config.jump_back:
            self._on_jump(topic, newest - now)
            self.reset()
        newest = self._newest.get(topic, now)
        if now > newest:
            self._periods.setdefault(topic, deque(maxlen=PERIODS)).append(now - newest)
        self._newest[topic] = max(now, newest)
        self._sync.slop = Duration(seconds=self.slop)  # which exact matching does not ask for
        self._filters[topic].signalMessage(message)

    @property
    def slop(self) -> float:
        """Return by how much stamps may differ: never by more than half a frame, in seconds."""
        # depth and image only: a camera_info may come more often without being another one
        known = (sorted(self._periods[t]) for t in self.topics[:2] if t in self._periods)
        return min([self._config.approximate_sync_tolerance_seconds,
                    *(0.5 * periods[len(periods) // 4] for periods in known)])

    def waiting(self, topic: str) -> int:
        """Return how many messages of a topic wait for the others."""
        return len(self._sync.queues[self.topics.index(topic)])

    def _matched(self, *messages: Any) -> None:
        self.matched += 1
        self._on_set(dict(zip(self.topics, messages, strict=True)))
