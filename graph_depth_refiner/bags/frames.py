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
"""Which messages of a recording make up its frames."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
import math
from typing import Any

from graph_depth_refiner.bags.bags import Bag, Message
from graph_depth_refiner.bags.topics import (
    CAMERA_INFO,
    COMPRESSED,
    DISPARITY,
    FLAT,
    guess,
    IMAGE,
    of_camera,
    Seen,
    Topics,
)
from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.messages.assembly import Inputs
from graph_depth_refiner.messages.camera_info import is_pinhole

PARTS = ('depth', 'image', 'camera_info', 'confidence', 'image_info')
# what tells the topics of a type apart, by type
FORMS: dict[str, Callable[[Any], str]] = {
    IMAGE: lambda message: message.encoding,
    COMPRESSED: lambda message: message.format,
    CAMERA_INFO: lambda message: (
        '' if any(message.d) or not is_pinhole(message.distortion_model) else FLAT),
    DISPARITY: lambda message: '',
}


@dataclass(frozen=True)
class FrameSet:
    """One depth image with what belongs to it, each as the number of a message, -1 for none."""

    depth: int
    image: int
    camera_info: int
    confidence: int
    image_info: int
    complete: int  # the message after which the frame can be refined

    @property
    def members(self) -> tuple[int, ...]:
        """Return the numbers of the messages there are, each once."""
        numbers = dict.fromkeys(getattr(self, part) for part in PARTS)
        return tuple(number for number in numbers if number >= 0)

    def decoded(self, messages: dict[int, Message]) -> Inputs:
        """Return the decoded messages, taken from those that were read."""
        def one(number: int) -> Any:
            return messages[number].decoded() if number >= 0 else None

        image_info = None
        with suppress(ValueError):  # which only an image of another camera needs
            image_info = one(self.image_info)
        return Inputs(
            one(self.image), one(self.depth), one(self.camera_info), one(self.confidence),
            image_info=image_info)


@dataclass(frozen=True)
class Plan:
    """All frames of a recording in their order."""

    topics: Topics
    depth_kind: str  # message type
    frames: tuple[FrameSet, ...]
    unmatched: int  # depth images without an image near enough in time
    damaged: int  # messages of these topics without a readable stamp
    messages: int

    def configured(self, config: NodeConfig) -> NodeConfig:
        """Return the settings, with the meaning of the confidence where the topics tell it."""
        if not self.topics.meaning:
            return config
        return config.with_values(**{'confidence.preset': self.topics.meaning})


def plan_frames(bag: Bag, slop: float, camera: NodeConfig | None = None, **wanted: str) -> Plan:
    """
    Read a recording once, to its end, and find its frames.

    `wanted` names topics; those that it does not name are of the preset of a camera, or guessed.
    """
    seen: dict[str, Seen] = {}
    unread: dict[str, Seen] = {}  # topics of which no message could be decoded yet
    stamps: dict[str, list[tuple[float, int]]] = {}  # by topic: stamp and number of message
    damaged: Counter[str] = Counter()
    kinds = {topic.name: topic.kind for topic in bag.topics()}
    number = -1
    for number, message in enumerate(bag.messages()):
        if message.topic not in seen:
            _look(message, seen, unread)
        if not _has_header(message):
            continue
        try:
            stamps.setdefault(message.topic, []).append((message.stamp(), number))
        except ValueError:
            damaged[message.topic] += 1
    known = (unread | seen).values()
    if camera and not {'depth', 'image', 'camera_info'} <= set(wanted):
        wanted = of_camera(known, camera, **wanted)
    topics = guess(known, **wanted)
    frames, unmatched = _matched(stamps, topics, slop)
    lost = sum(damaged[name] for name in topics.names)
    return Plan(topics, kinds[topics.depth], tuple(frames), unmatched, lost, number + 1)


def read_inputs(bag: Bag, frames: Sequence[FrameSet]) -> Iterator[Inputs]:
    """Yield the decoded messages of each frame, but for frames with a damaged one."""
    uses, kept, done = last_uses(frames), {}, 0
    for number, message in enumerate(bag.messages()):
        if number in uses:
            kept[number] = message
        while done < len(frames) and frames[done].complete <= number:
            with suppress(ValueError):
                yield frames[done].decoded(kept)
            kept = {n: m for n, m in kept.items() if uses[n] > done}
            done += 1
        if done == len(frames):
            return


def _look(message: Message, seen: dict[str, Seen], unread: dict[str, Seen]) -> None:
    """Learn what a topic is from a message of it, unless that is damaged."""
    try:
        decoded = message.decoded() if message.kind in FORMS else None
    except ValueError:
        unread[message.topic] = Seen(message.topic, message.kind)
        return
    form, frame = '', ''
    if decoded is not None:
        form, frame = FORMS[message.kind](decoded), decoded.header.frame_id
    seen[message.topic] = Seen(message.topic, message.kind, form, frame)


def _has_header(message: Message) -> bool:
    return message.kind in FORMS


def _matched(
        stamps: dict[str, list[tuple[float, int]]], topics: Topics,
        slop: float) -> tuple[list[FrameSet], int]:
    """Give every depth image the image and confidence nearest in time, within `slop`."""
    images, infos, confidences, image_infos = (
        sorted(stamps.get(name, [])) for name in (
            topics.image, topics.camera_info, topics.confidence, topics.image_info))
    frames: list[FrameSet] = []
    unmatched = complete = 0
    for stamp, number in stamps.get(topics.depth, []):
        image = _nearest(images, stamp, slop)
        info = _nearest(infos, stamp, math.inf)  # some drivers send it once only
        confidence = _nearest(confidences, stamp, slop)
        image_info = _nearest(image_infos, stamp, math.inf)
        if image < 0 or info < 0:
            unmatched += 1
            continue
        # in order, also where a later depth image is complete before an earlier one
        complete = max(complete, number, image, info, confidence, image_info)
        frames.append(FrameSet(number, image, info, confidence, image_info, complete))
    return frames, unmatched


def _nearest(candidates: list[tuple[float, int]], stamp: float, slop: float) -> int:
    """Return the number of the message nearest in time, -1 if none is near enough."""
    at = bisect_left(candidates, (stamp, -1))
    near = candidates[max(0, at - 1):at + 1]
    if not near:
        return -1
    found, number = min(near, key=lambda one: abs(one[0] - stamp))
    return number if abs(found - stamp) <= slop else -1


def last_uses(frames: Iterable[FrameSet]) -> dict[int, int]:
    """Return for every message that a frame needs the last frame that needs it."""
    uses: dict[int, int] = {}
    for index, frame in enumerate(frames):
        for number in frame.members:
            uses[number] = index
    return uses
