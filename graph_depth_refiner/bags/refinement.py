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
"""Refine one recording into another, so that it can be interrupted at any moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
import errno
import hashlib
from pathlib import Path
import pickle
import shutil
import sqlite3
from typing import Any

from graph_depth_refiner.bags.bags import (
    Bag,
    BagWriter,
    Message,
    message_bytes,
    METADATA,
    origin_of,
    reading,
    replace_file,
    Topic,
)
from graph_depth_refiner.bags.frames import FrameSet, last_uses, Plan, plan_frames
from graph_depth_refiner.bags.places import BagPlaces
from graph_depth_refiner.bags.topics import DISPARITY
from graph_depth_refiner.config import NodeConfig, RefinerConfig
from graph_depth_refiner.frame import Refined
from graph_depth_refiner.messages.assembly import Assembled, Assembler, OUTPUTS
from graph_depth_refiner.messages.placement import placed
from graph_depth_refiner.refiner import DepthRefiner

RESUME = 'resume.pickle'
RESERVE = 32 * 2 ** 20  # bytes of disk that closing a part may need
FULL_DISK = 'the disk is full'
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Stopped(Exception):
    """The run has to end early; says why."""


@dataclass(frozen=True)
class BagJob:
    """All that decides what comes out; travels to other processes."""

    source: Path
    target: Path
    storage: str  # empty: as the source
    topics: dict[str, str]  # those the user named
    outputs: tuple[str, ...]
    namespace: str | None  # of the refined topics; None: that of depth and image
    slop: float  # seconds
    part_bytes: int  # a new part begins after this many; 0 is one part
    config: RefinerConfig
    node_config: NodeConfig
    device: str = 'auto'
    camera: bool = False  # the topics of node_config are of the preset of a camera
    guess_confidence: bool = True  # what it means, where its topic tells


@dataclass
class Position:
    """Where a run stands: enough to go on as if it had never stopped."""

    message: int = 0
    frame: int = 0
    parts: list[dict[str, Any]] = field(default_factory=list)
    skipped: Counter = field(default_factory=Counter)  # frames by reason
    poses: Counter = field(default_factory=Counter)  # frames with one: known, corrected
    state: Any = None  # of the refiner; None at the beginning


@dataclass(frozen=True)
class Summary:
    """How a run ended."""

    target: Path
    frames: int  # refined, earlier runs included
    total: int
    unmatched: int
    damaged: int  # messages too damaged to belong to a frame
    skipped: dict[str, int]
    stopped: str = ''  # why it is not complete
    readable: bool = True  # there is a recording, if not a complete one
    already: bool = False  # it was complete before
    # frames with a pose, known and corrected; None where none were asked for, or nobody knows
    poses: dict[str, int] | None = None
    left_out: tuple[str, ...] = ()  # topics of the source that are not read
    doubts: tuple[str, ...] = ()  # what looked wrong but was used


def refine_bag(
        job: BagJob, started: Callable[[int, int], None] = lambda total, done: None,
        advanced: Callable[[], None] = lambda: None,
        wanted: Callable[[], bool] = lambda: True) -> Summary:
    """
    Refine every frame of a recording, going on where an earlier run stopped.

    `started` hears how many frames there are and how many are done, `advanced` of each
    frame; the run stops between two messages when `wanted` says no.
    """
    # no clock decides
    job = replace(job, config=job.config.with_values(**{'solver.time_budget_ms': 0.0}))
    with reading(job.source) as bag:
        plan = plan_frames(
            bag, job.slop, job.node_config if job.camera else None, **job.topics)
        if job.guess_confidence and not job.camera:
            job = replace(job, node_config=plan.configured(job.node_config))
        names = _output_names(job, plan, bag)
        if is_complete(job, bag):
            started(len(plan.frames), len(plan.frames))
            return _complete(job, plan, names)
        position = _position(job, bag)
        started(len(plan.frames), position.frame)
        run = _Run(job, bag, plan, names, position, advanced, wanted)
        with _stopping(run):
            run.run()
        return Summary(
            job.target, run.done - run.skipped.total(), len(plan.frames), plan.unmatched,
            plan.damaged, dict(run.skipped), run.stopped, (job.target / METADATA).exists(),
            poses=dict(run.poses) if run.places.wanted else None, left_out=tuple(bag.left_out),
            doubts=tuple(run.doubts))


class _Run:
    """One pass over the recording."""

    def __init__(self, job: BagJob, bag: Bag, plan: Plan, names: dict[str, str],
                 position: Position, advanced: Callable[[], None],
                 wanted: Callable[[], bool]) -> None:
        self.job, self.bag, self.plan, self.names = job, bag, plan, names
        self.first = self.saved = position
        self.done = position.frame
        self.skipped, self.poses = Counter(position.skipped), Counter(position.poses)
        self.places = BagPlaces(bag, job.node_config)
        self.doubts: dict[str, None] = {}  # each once, in their order
        self.stopped = ''
        self.writer = BagWriter(
            job.target, job.storage or bag.storage, _all_topics(bag, names), position.parts,
            identity(job, bag))
        self._advanced, self._wanted = advanced, wanted
        self._refiner = DepthRefiner(job.config, job.device)
        if position.state is not None:
            self._refiner.state = position.state
        self._assembler = Assembler()
        self._kept: dict[int, Message] = {}  # read, and still needed by a frame

    def run(self) -> None:
        """Copy every message and put each refined frame after the message that completes it."""
        uses = last_uses(self.plan.frames)
        for number, message in enumerate(self.bag.messages()):
            if uses.get(number, -1) >= self.done:
                self._kept[number] = message
            if number < self.first.message:
                continue
            if not self._wanted():
                raise Stopped('interrupted')
            self._write([message])
            while self._is_complete(number):
                self._refine(self.plan.frames[self.done], message.time, uses)
            if 0 < self.job.part_bytes <= self.writer.bytes:
                self._finish_part(number + 1)
        self.writer.finish()
        (self.job.target / RESUME).unlink()

    def _is_complete(self, number: int) -> bool:
        frames = self.plan.frames
        return self.done < len(frames) and frames[self.done].complete <= number

    def _refine(self, members: FrameSet, time: int, uses: dict[int, int]) -> None:
        try:
            inputs = members.decoded(self._kept)
            if self.job.node_config.check_frames:
                self.doubts.update(dict.fromkeys(inputs.doubts()))
            inputs = placed(inputs, self.job.node_config, self.places)
            assembled = self._assembler.assemble(inputs, self.job.node_config)
            refined = self._refiner.refine(assembled.frame)
        except ValueError as error:
            self.skipped[str(error)] += 1
        else:
            self.poses['known'] += inputs.pose is not None
            self.poses['corrected'] += refined.pose == 'corrected'
            self._write(list(_messages(assembled, refined, self.names, time)))
        for number in members.members:
            if uses[number] <= self.done:
                del self._kept[number]
        self.done += 1
        self._advanced()

    def _write(self, messages: list[Message]) -> None:
        """Write all the messages, or none and stop."""
        needed = RESERVE + sum(len(message.data) for message in messages)
        if shutil.disk_usage(self.job.target).free < needed:
            raise Stopped(FULL_DISK)
        for message in messages:
            self.writer.write(message)

    def _finish_part(self, next_message: int) -> None:
        self.writer.finish()
        self.saved = Position(
            next_message, self.done, list(self.writer.parts), Counter(self.skipped),
            Counter(self.poses), self._refiner.state)
        _save(self.job, self.bag, self.saved)

    def stop(self, why: str, finish: bool) -> None:
        """Leave a whole bag: with the unfinished part if it can still be closed."""
        self.stopped = why
        if finish:
            try:
                return self.writer.finish()
            except (OSError, sqlite3.Error):
                pass  # not even that had space; the parts finished before are whole
        self.writer.discard()
        self.done, self.skipped = self.saved.frame, Counter(self.saved.skipped)


@contextmanager
def _stopping(run: _Run) -> Iterator[None]:
    """Leave a whole bag of what is done when the run has to end early."""
    try:
        yield
    except Stopped as why:
        run.stop(str(why), finish=True)
    except (OSError, sqlite3.Error) as error:
        why = _lack_of_space(error)
        if not why:
            raise
        run.stop(why, finish=False)


def _lack_of_space(error: Exception) -> str:
    """Say which end of the disk an error means; nothing if another."""
    if isinstance(error, sqlite3.Error):
        if 'disk I/O' in str(error):  # sqlite hides the cause
            return 'the disk is full, over quota or failing'
        return FULL_DISK if 'full' in str(error) else ''
    return FULL_DISK if getattr(error, 'errno', None) in FULL else ''


def _messages(
        assembled: Assembled, refined: Refined, names: dict[str, str],
        time: int) -> Iterator[Message]:
    """Yield the refined messages of a frame, with the header of its depth."""
    header = assembled.inputs.depth.header
    for output, name in names.items():
        kind = _kind(output)
        fields = OUTPUTS[output].fields(assembled, refined)
        yield Message(name, kind, time, message_bytes(kind, header, fields))


def _kind(output: str) -> str:
    return f'{OUTPUTS[output].package}/msg/{OUTPUTS[output].type_name}'


def _output_names(job: BagJob, plan: Plan, bag: Bag) -> dict[str, str]:
    """Return the full name of every refined topic; refuse what would mix with the input."""
    if 'disparity_refined' in job.outputs and plan.depth_kind != DISPARITY:
        raise ValueError(
            f'outputs: expected disparity_refined for a {DISPARITY} only, got {plan.depth_kind}')
    namespace = plan.topics.namespace if job.namespace is None else job.namespace.rstrip('/')
    names = {output: f'{namespace}/{output}' for output in job.outputs}
    taken = {topic.name for topic in bag.topics()} & set(names.values())
    if taken:
        raise ValueError(
            f'{job.source}: expected a recording without refined topics, got '
            f'{", ".join(sorted(taken))}; choose another --namespace')
    return names


def _all_topics(bag: Bag, names: dict[str, str]) -> list[Topic]:
    return bag.topics() + [Topic(name, _kind(output)) for output, name in names.items()]


def identity(job: BagJob, bag: Bag) -> str:
    """Return a digest of everything that decides what comes out."""
    everything = (bag.fingerprint, replace(job, source=Path(), target=Path(), device=''))
    return hashlib.sha256(repr(everything).encode()).hexdigest()


def is_complete(job: BagJob, bag: Bag) -> bool:
    """Say whether an earlier run has finished this very job."""
    return not (job.target / RESUME).exists() and origin_of(job.target) == identity(job, bag)


def _complete(job: BagJob, plan: Plan, names: dict[str, str]) -> Summary:
    with reading(job.target) as made:
        frames = made.count(next(iter(names.values()))) if names else 0
    return Summary(
        job.target, frames, len(plan.frames), plan.unmatched, plan.damaged, {},
        already=True)


def _position(job: BagJob, bag: Bag) -> Position:
    """Return where an earlier run of the same job stopped, or the beginning."""
    path = job.target / RESUME
    if not path.exists() and job.target.exists() and any(job.target.iterdir()):
        raise ValueError(
            f'{job.target}: expected a new folder or what an earlier run of this job left, '
            'got something else')
    if not path.exists() or not (job.target / METADATA).exists():  # nothing worth keeping yet
        job.target.mkdir(parents=True, exist_ok=True)
        _save(job, bag, Position())
    try:
        known, position = pickle.loads(path.read_bytes())
        if not isinstance(position, Position):
            raise TypeError(type(position))
    except Exception:  # damaged bytes can ask a pickle for anything
        raise ValueError(f'{path}: expected the state of an earlier run, got a damaged file; '
                         f'remove {job.target} to start anew') from None
    if known != identity(job, bag):
        raise ValueError(
            f'{job.target}: expected the rest of the same job, got one begun from another '
            'recording or with other settings; remove it to start anew')
    return position


def _save(job: BagJob, bag: Bag, position: Position) -> None:
    replace_file(job.target / RESUME, pickle.dumps((identity(job, bag), position), protocol=5))
