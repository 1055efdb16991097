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
"""What is done with one set of messages, from decoding to publishing; knows no ROS."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
import time
from typing import Any, Protocol

import numpy as np

from graph_depth_refiner.config import NodeConfig, RefinerConfig
from graph_depth_refiner.frame import Refined, Status
from graph_depth_refiner.messages import registration
from graph_depth_refiner.messages.assembly import (
    Assembled,
    Assembler,
    decode_depth,
    Inputs,
    OUTPUTS,
    warm_up,
)
from graph_depth_refiner.messages.conversions import seconds
from graph_depth_refiner.messages.outgoing import (
    camera_info_fields,
    compressed_depth_fields,
    depth_fields,
    Room,
)
from graph_depth_refiner.messages.placement import Nowhere, placed, Places
from graph_depth_refiner.refiner import DepthRefiner
from graph_depth_refiner.ros.preparation import Preparation
from graph_depth_refiner.ros.shedding import Shedder
from graph_depth_refiner.ros.watch import Recent, STAGE
from graph_depth_refiner.ros.worker import Ledger

WARM_UP_SHAPE = (240, 320)
AS_DEPTH = {'depth_refined/image': depth_fields,
            'depth_refined/image/compressedDepth': compressed_depth_fields}
URGENT = {'depth_refined/image', 'depth_refined/camera_info', 'disparity_refined'}


@dataclass(frozen=True, eq=False)
class Job:
    """One set of messages on its way to the worker."""

    inputs: Inputs
    arrival: float  # steady clock, seconds, when the set was complete
    period: float  # seconds since the set before
    epoch: int  # how often the stream has started anew


@dataclass(frozen=True)
class Settings:
    """Everything that can change between frames, taken once per frame."""

    refiner: RefinerConfig
    node: NodeConfig
    enabled: bool = True


class Outlet(Protocol):
    """Where the results go."""

    def wanted(self) -> list[str]:
        """Return the topics somebody listens to."""

    def publish(self, topic: str, header: Any, make: Callable[[Room], dict[str, Any]]) -> None:
        """Publish a message of the fields that `make` returns."""

    def forward(self, topic: str, message: Any) -> None:
        """Publish a message as it is."""


class Outbox:
    """A thread that publishes the bulk of one frame while the next is being refined."""

    def __init__(self, doubt: Callable[[str], None]) -> None:
        """Start idle; `doubt` is told what goes wrong."""
        self._thread = ThreadPoolExecutor(1, 'outbox')
        self._doubt = doubt
        self._last: Future | None = None

    def hand_over(self, act: Callable[[], None]) -> None:
        """Let something be done after what was handed over before, waiting for that."""
        self._wait()
        self._last = self._thread.submit(act)

    def close(self) -> None:
        """End after what is being done."""
        self._thread.shutdown()
        self._wait()

    def _wait(self) -> None:
        error = self._last.exception() if self._last else None
        self._last = None
        if error:
            self._doubt(f'outputs: {type(error).__name__}: {error}')


class Processor:
    """Refines jobs one by one, in the worker's thread; sole owner of the refiner."""

    def __init__(self, settings: Callable[[], Settings], clock: Callable[[], float],
                 outlet: Outlet, doubt: Callable[[str], None],
                 places: Places | None = None) -> None:
        """Keep the ways out; `clock` tells the time of stamps, `doubt` takes a warning."""
        self._places = places or Nowhere()
        self._waited = 0.0  # seconds, for the places of the last frame
        self._settings, self._clock = settings, clock
        self._outlet, self._doubt = outlet, doubt
        self._assembler = Assembler(steady=True)
        self._outbox = Outbox(doubt)
        self._preparation = Preparation()
        self._epoch = 0
        self.refiner: DepthRefiner | None = None
        self.shedder = Shedder()
        self.ledger = Ledger()
        self.recent = Recent()
        self.statuses = Ledger()  # how the refinements ended
        self.resets = Ledger()  # why a frame had no history
        self.poses = Ledger()  # what became of poses, where some are to come
        self.last_status: Status | None = None  # of the last frame, if that was refined
        self.preparing = False

    def prepare(self) -> None:
        """Load or compile the kernels before the first frame needs them."""
        settings = self._settings()
        self.preparing = True
        try:
            self.refiner = DepthRefiner(settings.refiner, settings.node.device)
            self.refiner.warm_up(WARM_UP_SHAPE)
            warm_up()
            if settings.node.image_info_topic:
                registration.warm_up()
        finally:
            self.preparing = False

    def close(self) -> None:
        """End after what is being published."""
        self._outbox.close()

    def process(self, job: Job) -> None:
        """Bring a job to its end; ValueError is the input's fault, all else is ours."""
        started = time.perf_counter()
        settings = self._settings()
        self._follow(job)
        fate = self._fate(job, settings)
        self.ledger.count(fate)
        if not settings.node.shed_load or settings.refiner.solver.mode != 'realtime':
            self.shedder.reset()
        elif fate == 'refined':
            # waiting for a pose is no work that could be shed
            self.shedder.observe(job.period, time.perf_counter() - started - self._waited)

    def pass_on(self, job: Job) -> None:
        """Publish the depth of a job as it came, in whatever thread, while preparing."""
        wanted = self._outlet.wanted()
        self._pass_on(job.inputs, self._settings().node, wanted)
        self.ledger.count('passed' if wanted else 'no_subscriber')

    def _fate(self, job: Job, settings: Settings) -> str:
        """Do what is to be done, and say what that was."""
        if self._too_old(job, settings.node):
            return 'stale'
        wanted = self._outlet.wanted()
        if not wanted:
            return 'no_subscriber'
        if not settings.enabled or job.inputs.image is None:
            self._pass_on(job.inputs, settings.node, wanted)
            self.last_status = None
            return 'passed'
        if settings.node.check_frames:
            for doubt in job.inputs.doubts():
                self._doubt(doubt)
        self._refine(job, settings, wanted)
        return 'refined'

    def _refine(self, job: Job, settings: Settings, wanted: list[str]) -> None:
        began = time.perf_counter()
        inputs = placed(job.inputs, settings.node, self._places)
        self._waited = time.perf_counter() - began
        assembled = self._assembler.assemble(inputs, settings.node)
        shape = assembled.frame.depth.shape
        refiner = self._preparation.refiner(self.refiner, shape, settings.refiner)
        config = self.shedder.apply(settings.refiner, shape)
        refiner.configure(
            config if refiner is self.refiner else replace(config, backend='auto'))
        try:
            refined = refiner.refine(assembled.frame)
        except Exception:
            refiner.reset()  # what is carried on may be half of this frame
            raise
        self._publish(URGENT & set(wanted), assembled, refined)
        self._note(job, assembled, refined)
        self._outbox.hand_over(
            lambda: self._publish(set(wanted) - URGENT, assembled, refined))

    def _publish(self, topics: set[str], assembled: Assembled, refined: Refined) -> None:
        header = assembled.inputs.depth.header
        for topic, output in OUTPUTS.items():
            if topic in topics:
                self._outlet.publish(topic, header, partial(output.fields, assembled, refined))

    def _note(self, job: Job, assembled: Assembled, refined: Refined) -> None:
        latency = time.perf_counter() - job.arrival
        self.recent.note(
            latency_ms=1e3 * latency, iterations=refined.iterations, energy=refined.energy,
            graph_hit_rate=refined.graph_hit_rate,
            age_ms=1e3 * (self._clock() - assembled.frame.stamp),
            **{f'{STAGE}{stage}': ms for stage, ms in refined.milliseconds.items()})
        self._note_past(refined)
        if self._places.wanted:
            known = assembled.frame.pose is not None
            self.poses.count(refined.pose or 'not needed' if known else 'unknown')
        self.statuses.count(refined.status.name.lower())
        self.last_status = refined.status

    def _note_past(self, refined: Refined) -> None:
        """Note what the frames before did for this one, and the noise learned from them."""
        if any(refined.noise):  # a frame without valid depth has none
            self.recent.note(noise_floor=refined.noise[0], noise_share=refined.noise[1])
        if not self.refiner.config.temporal.enabled:
            return
        self.recent.note(has_history=float(refined.history > 0))
        if refined.history > 0:
            self.recent.note(history_frames=refined.history_frames)
        elif refined.reset:
            self.resets.count(refined.reset)

    def _pass_on(self, inputs: Inputs, config: NodeConfig, wanted: list[str]) -> None:
        """Publish the depth as it came, on the topics of depth only."""
        header = inputs.depth.header
        for topic in wanted:
            if topic == 'depth_refined/camera_info':
                if inputs.camera_info:
                    info = camera_info_fields(inputs.camera_info)
                    self._outlet.publish(topic, header, partial(_as_is, info))
            elif topic == 'disparity_refined' or (
                    topic == 'depth_refined/image' and hasattr(inputs.depth, 'encoding')
                    and not config.depth_scale):
                self._outlet.forward(topic, inputs.depth)
            elif topic in AS_DEPTH:
                depth, encoding, _ = decode_depth(inputs.depth, config)
                known = np.where(depth > 0, depth, np.float32(np.nan))
                self._outlet.publish(topic, header, partial(AS_DEPTH[topic], known, encoding))

    def _follow(self, job: Job) -> None:
        """Start anew with the stream; drop what was learnt before."""
        if self.refiner is None:
            self.prepare()
        if job.epoch != self._epoch:
            self._epoch = job.epoch
            self.refiner.reset()

    def _too_old(self, job: Job, config: NodeConfig) -> bool:
        age = self._clock() - seconds(job.inputs.depth.header.stamp)
        if not config.max_age or age <= config.max_age:
            return False
        self._doubt(
            f'depth: expected frames younger than {config.max_age:g} s (max_age), got '
            f'{age:.3g} s; set use_sim_time for recordings')
        return True


def _as_is(fields: dict[str, Any], room: Room) -> dict[str, Any]:
    return fields
