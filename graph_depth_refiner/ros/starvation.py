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
"""Finds out what keeps messages from coming together."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # nothing here needs ROS
    from graph_depth_refiner.ros.topics import InputTopic

LEAST_MESSAGES = 3  # of each topic, before it is said that their stamps do not match


class Starvation:
    """Remembers from report to report whether stamps match."""

    def __init__(self) -> None:
        """Start in good hope."""
        self._received: dict[str, int] = {}
        self._matched = 0
        self._matches = True

    def problems(self, inputs: dict[str, InputTopic], needed: Collection[str], matched: int,
                 now: float) -> list[str]:
        """Say which of the needed topics starve the synchroniser, and why."""
        self._judge({role: inputs[role].watch.received for role in needed}, matched)
        silent = [
            starvation(role, topic) for role, topic in inputs.items()
            if role in needed and topic.watch.is_silent(now)]
        if silent or self._matches:
            return silent
        return ['all inputs come in but their stamps do not match: see the stamp offsets, and '
                'slop or exact_sync']

    def _judge(self, received: dict[str, int], matched: int) -> None:
        """Look whether any of the newest messages found its partners."""
        fresh = min(number - self._received.get(role, 0) for role, number in received.items())
        if matched == self._matched and 0 <= fresh < LEAST_MESSAGES:
            return  # too few to tell
        self._matches = matched != self._matched or fresh < 0  # counted anew after a restart
        self._received, self._matched = received, matched


def starvation(role: str, topic: InputTopic) -> str:
    """Say in words why nothing comes on a topic."""
    if topic.incompatible:
        why = (f'a publisher on {topic.name} offers incompatible {topic.incompatible}; '
               f'{topic.remedy()}')
    elif topic.publishers:
        why = f'{topic.counted()}, but nothing comes'
    else:
        why = f'nobody publishes {topic.name}'
    return f'{role} starves the synchroniser: {why}'
