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
"""The inside of the node, plain or lifecycle: messages in, worker, messages out."""

from __future__ import annotations

import time
from typing import Any

from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from std_srvs.srv import SetBool, Trigger

from graph_depth_refiner.config import NodeConfig, preset, RefinerConfig
from graph_depth_refiner.core import kernels
from graph_depth_refiner.messages.assembly import Inputs, output_topics
from graph_depth_refiner.ros.diagnostics import Diagnostics, NOT_HEARD
from graph_depth_refiner.ros.logs import forward_to
from graph_depth_refiner.ros.parameters import Parameters
from graph_depth_refiner.ros.places import check_places, LivePlaces
from graph_depth_refiner.ros.processing import Job, Processor, Settings
from graph_depth_refiner.ros.synchroniser import Synchroniser
from graph_depth_refiner.ros.topics import input_topics, InputTopic, OutputTopics
from graph_depth_refiner.ros.watch import Jumps
from graph_depth_refiner.ros.worker import Worker

MOST_CAUSES = 200  # remembered, so that no stream of faults fills the memory
PASSING = 'passing the depth through unchanged'
PREPARING = 'compiling or loading the kernels'
QUIET = 5.0  # seconds between two warnings of stamps that go back
LOOK = 0.1  # seconds between two looks whether somebody listens; Humble has no event for it


class Pipeline:
    """Subscriptions, synchroniser, worker, publishers, services and diagnostics."""

    def __init__(self, node: Any) -> None:
        """Declare the parameters and begin to report; nothing else is there yet."""
        self.node = node
        self._enabled = True
        self.listening = False  # to the inputs
        self.inputs: dict[str, InputTopic] = {}
        self.synchroniser: Synchroniser | None = None
        forward_to(node)
        self.parameters = Parameters(node, on_change=self._changed)
        self.parameters.declare(preset(self.parameters.declare(NodeConfig()).preset))
        self._settings = self._current_settings()
        check_places(self._settings.node)
        kernels.choose(self._settings.node.device, self._settings.refiner.backend)
        self.depth_role = self._settings.node.input_kind
        self._causes: set[str] = set()
        self._epoch = 0
        self._last_set = 0.0
        self._newest_info: Any = None
        self._image_info: Any = None
        self.places: LivePlaces | None = None
        self.jumps = Jumps()
        self._entities: list[Any] = []  # of the node, destroyed on closing
        self._bad_stamps = 0
        self.processor: Processor | None = None
        self.worker: Worker | None = None
        self.diagnostics = Diagnostics(self)

    # ------------------------------------------------------------------ life

    def advertise(self) -> None:
        """Advertise outputs and services."""
        self.outputs = OutputTopics(self.node, output_topics(
            self.depth_role == 'disparity', self._settings.node.compressed_outputs))
        self._entities = [
            self.node.create_service(Trigger, '~/reset', self._reset),
            self.node.create_service(SetBool, '~/enable', self._enable)]

    def start(self) -> None:
        """Listen and refine."""
        config = self._settings.node
        self._bad_stamps = 0
        self.places = LivePlaces(
            self.node, config, lambda: self._settings.node.pose_timeout)
        inputs = input_topics(self.node, config, self._received)
        for role, kind, topic in (('camera_pose', PoseStamped, config.camera_pose_topic),
                                  ('odometry', Odometry, config.odometry_topic)):
            if topic:
                inputs[role] = InputTopic(self.node, role, kind, topic, self._pose)
        self.processor = Processor(
            lambda: self._settings, self.clock, self.outputs, self._log_once, self.places)
        self.worker = Worker(
            self.processor.process, self._dropped, self._failed, self._prepare)
        self.synchroniser = Synchroniser(self._matched, self._jumped)
        self.inputs, self.listening = inputs, True
        self._looking = self.node.create_timer(
            LOOK, self.listen, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.listen()
        self.follow()

    def listen(self) -> None:
        """Subscribe to the inputs while an output is wanted, or always where not lazy."""
        wanted = not self._settings.node.lazy or self.outputs.any_wanted()
        if wanted == self.listening:
            return
        for topic in self.inputs.values():
            topic.listen(wanted)
        self.listening = wanted
        if not wanted:  # what waits is older than what comes after
            self.synchroniser.reset()

    def stop(self, timeout: float = 1.0) -> bool:
        """Stop listening and refining; return whether the worker ended in time."""
        if self.inputs:
            self.node.destroy_timer(self._looking)
        for topic in self.inputs.values():
            topic.destroy()
        self.inputs, self.listening = {}, False
        if self.places:
            self.places.destroy()
        if self.worker and not self.worker.stop(timeout):
            return False
        if self.processor:
            self.processor.close()
        return True

    def withdraw(self) -> None:
        """Take back outputs and services."""
        for service in self._entities:
            self.node.destroy_service(service)
        self.outputs.destroy()

    # ------------------------------------------------------------ for reports

    def clock(self) -> float:
        """Return the time of the node's clock, simulated or not, in seconds."""
        return self.node.get_clock().now().nanoseconds * 1e-9

    def accounts(self) -> dict[str, int]:
        """Return what became of every depth message received; the rest adds up to it."""
        if not (self.processor and self.inputs):
            return {}
        fates = self.processor.ledger.snapshot()
        ended = sum(fates.values()) - self._bad_stamps  # of those that were matched
        received = self.inputs[self.depth_role].watch.received
        waiting = self.synchroniser.waiting(self.depth_role)
        matched = self.synchroniser.matched
        return {
            'received': received,
            'refined': fates.pop('refined', 0),
            'passed': fates.pop('passed', 0),
            'waiting': waiting,
            'in work': matched - ended,
            'dropped: unsynchronised': received - waiting - matched - self._bad_stamps,
            **{f'dropped: {cause}': number for cause, number in sorted(fates.items())},
        }

    def state(self) -> str:
        """Say in a word what is being done."""
        if not self.inputs:
            return 'inactive'
        if self.processor.preparing:
            return PREPARING
        if not self.listening:
            return NOT_HEARD
        return 'refining' if self._enabled else PASSING

    # ----------------------------------------------------------- on the way in

    def _received(self, role: str, message: Any) -> None:
        if role == 'image_info':
            self._image_info = message
            return
        if role == 'camera_info':
            self._newest_info = message
        try:
            self.synchroniser.add(role, message)
        except ValueError as error:
            if role == self.depth_role:
                self._bad_stamps += 1
                self.processor.ledger.count('malformed')
            self._log_once(str(error))

    def _matched(self, messages: dict[str, Any]) -> None:
        """Hand a complete set over to the worker, and nothing else."""
        depth = messages[self.depth_role]
        info = messages.get('camera_info', self._newest_info)
        if info is None and self._enabled:
            self.processor.ledger.count('no_camera_info')
            return
        now = time.perf_counter()
        period, self._last_set = now - self._last_set, now
        inputs = Inputs(
            messages.get('image'), depth, info, messages.get('confidence'),
            image_info=self._image_info)
        job = Job(inputs, now, period, self._epoch)
        if self.processor.preparing and self._settings.node.while_loading == 'pass':
            self._pass_on(job)
        else:
            self.worker.offer(job)

    def _pass_on(self, job: Job) -> None:
        """Let a frame through that comes before the worker is ready."""
        try:
            self.processor.pass_on(job)
        except Exception as error:
            self._failed(job, error)

    def _jumped(self, role: str, by: float) -> None:
        self._start_anew()
        if self.jumps.note(role, time.monotonic()):
            self._log_once(
                f'{role}: expected stamps of one clock, got {by:.3g} s back again and again, with '
                f'{self.inputs[role].counted()}; do two publish, or do their clocks differ?')
        else:
            self.node.get_logger().warning(
                f'{role}: stamps went back by {by:.3g} s, the stream starts anew',
                throttle_duration_sec=QUIET)

    def _pose(self, role: str, message: PoseStamped | Odometry) -> None:
        try:
            self.places.poses.add(role, message)
        except ValueError as error:
            self._log_once(str(error))

    def _awaited(self) -> tuple[str, ...]:
        """Return the topics a set consists of, the depth first."""
        config = self._settings.node
        if not self._enabled:
            return (self.depth_role,)
        awaited = [self.depth_role, 'image']
        if config.sync_camera_info:
            awaited.append('camera_info')
        confidence = self.inputs.get('confidence')
        if confidence and config.confidence.preset != 'none' and (
                config.use_confidence == 'always' or confidence.publishers):
            awaited.append('confidence')
        return tuple(awaited)

    def follow(self) -> None:
        """Follow the settings, and wait for confidence only while somebody publishes it."""
        if self.inputs:
            self.synchroniser.follow(self._awaited(), self._settings.node)

    def needed(self) -> set[str]:
        """Return the topics without which nothing comes out."""
        needed = set(self.synchroniser.topics)
        if self._enabled and self._newest_info is None:
            needed.add('camera_info')
        return needed

    # --------------------------------------------------------- in the worker

    def _prepare(self) -> None:
        self.node.get_logger().info(f'{PREPARING}; frames are refined after that')
        self.processor.prepare()

    def _dropped(self, job: Job, cause: str) -> None:
        self.processor.ledger.count(cause)

    def _failed(self, job: Job | None, error: Exception) -> None:
        """Count and log what went wrong with a frame; the next one is tried all the same."""
        if not self.node.context.ok():  # told to end in the middle of a frame
            self.processor.ledger.count('stopped')
        elif job is None:  # while loading the kernels; the first frame tries again
            self._log_error_once('start', error)
        elif isinstance(error, ValueError):
            self.processor.ledger.count('malformed')
            self._log_once(str(error))
        else:
            self.processor.ledger.count('failed')
            self._log_error_once('solver', error)

    def _log_once(self, sentence: str) -> None:
        """Log what is wrong with an input; what came (`got …`) makes it no other cause."""
        if self.node.context.ok() and self._is_new(sentence.split(', got ')[0], sentence):
            self.node.get_logger().warning(f'{sentence} (said once, counted in /diagnostics)')

    def _log_error_once(self, where: str, error: Exception) -> None:
        """Log an error of ours; its kind and place are the cause."""
        kind, place = type(error).__name__, _place(error)
        sentence = f'{where}: {kind}: {error}'
        if self._is_new(f'{kind} {place}', sentence):
            self.node.get_logger().error(
                f'{sentence} at {place} (said once, counted in /diagnostics)')

    def _is_new(self, cause: str, sentence: str) -> bool:
        self.diagnostics.last_complaint = sentence
        if cause in self._causes or len(self._causes) >= MOST_CAUSES:
            return False
        self._causes.add(cause)
        return True

    # ---------------------------------------------------- parameters, services

    def _current_settings(self) -> Settings:
        return Settings(
            self.parameters.values(RefinerConfig), self.parameters.values(NodeConfig),
            self._enabled)

    def _changed(self, names: set[str]) -> None:
        self._settings = self._current_settings()
        if self.inputs:
            self.listen()
        self.follow()

    def _start_anew(self) -> None:
        self._epoch += 1
        if self.places:
            self.places.clear()

    def _reset(self, request: Any, response: Any) -> Any:
        """Serve ~/reset."""
        self._start_anew()
        self._causes.clear()
        if self.synchroniser:
            self.synchroniser.reset()
        response.success = True
        response.message = 'queues, history, learned noise and graph cache are dropped'
        return response

    def _enable(self, request: Any, response: Any) -> Any:
        """Serve ~/enable."""
        self._enabled = request.data
        self._changed(set())
        response.success = True
        response.message = 'refining' if request.data else PASSING
        return response


def _place(error: Exception) -> str:
    """Say where an exception came from."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f'{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}' if trace else 'nowhere'
