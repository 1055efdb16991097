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
"""Tells whether what a node counted can have come of what was sent to it; knows no ROS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, combinations, islice

DONE = frozenset({'refined', 'passed'})
# What may become of a frame that is in order: newest wins, so that an older one gives way.
GOOD = frozenset({'refined', 'superseded'})
MALFORMED = frozenset({'malformed', 'superseded'})
LONE = frozenset({'unsynchronised'})  # its companions were not sent


@dataclass
class Sent:
    """One depth message on its way: when it left, and what may become of it."""

    time: float  # steady clock, seconds
    fates: frozenset[str]


class Ledger:
    """Every depth message that was sent, by its stamp."""

    def __init__(self) -> None:
        """Start with nothing sent."""
        self.sent: dict[int, Sent] = {}  # by stamp, ns
        self.heard: dict[int, float] = {}  # seconds from sending to the refined image
        self.disturbed: Counter[str] = Counter()  # frames by what excuses their loss
        self.unknown = 0  # refined images of stamps that were never sent

    def send(self, stamp: int, time: float, fates: frozenset[str]) -> None:
        """Note a message that leaves."""
        self.sent[stamp] = Sent(time, fates)

    def hear(self, stamp: int, time: float) -> None:
        """Note a refined image."""
        if stamp in self.sent:
            self.heard[stamp] = time - self.sent[stamp].time
        else:
            self.unknown += 1

    def excuse(self, stamp: int, fates: frozenset[str], reason: str) -> None:
        """Let more become of a message, since something else was done around its time."""
        one = self.sent[stamp]
        if not fates <= one.fates:
            self.disturbed[reason] += 1
        one.fates |= fates

    def until(self, number: int) -> Ledger:
        """Return the books of the first messages sent."""
        part = Ledger()
        part.sent = dict(islice(self.sent.items(), number))
        part.heard = {stamp: t for stamp, t in self.heard.items() if stamp in part.sent}
        part.unknown = self.unknown
        return part

    def contradictions(self, counted: Mapping[str, int]) -> list[str]:
        """Return all that cannot be: counts of the node against what was sent and heard."""
        found = []
        if self.unknown:
            found.append(f'{self.unknown} refined images have stamps that were never sent')
        done = sum(counted.get(fate, 0) for fate in DONE)
        if done != len(self.heard):
            found.append(
                f'the node counts {done} frames refined or passed, {len(self.heard)} came')
        wrong = sum(not self.sent[stamp].fates & DONE for stamp in self.heard)
        if wrong:
            found.append(f'{wrong} frames were refined that should have been refused')
        lost = {fate: number for fate, number in counted.items() if fate not in DONE}
        kinds = Counter(
            one.fates - DONE for stamp, one in self.sent.items() if stamp not in self.heard)
        return found + infeasible(lost, kinds)


def infeasible(counted: Mapping[str, int], kinds: Mapping[frozenset[str], int]) -> list[str]:
    """
    Return why the counts cannot be, nothing if each frame can be given one of its fates.

    By Hall's theorem that is so if the totals agree and no set of fates is counted more
    often than there are frames that may end by one of them.
    """
    found = []
    total, frames = sum(counted.values()), sum(kinds.values())
    if total != frames:
        found.append(f'{frames} frames did not come back, {total} losses are counted')
    causes = sorted(fate for fate, number in counted.items() if number)
    for group in chain.from_iterable(combinations(causes, n + 1) for n in range(len(causes))):
        number = sum(counted[fate] for fate in group)
        able = sum(count for fates, count in kinds.items() if fates & set(group))
        if number > able:
            found.append(
                f'{" and ".join(group)}: {number} counted, {able} can have ended that way')
            break  # larger sets say the same again
    return found
