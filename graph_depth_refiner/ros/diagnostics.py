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
"""Says once a second on /diagnostics what comes in, what is done and what is in the way."""

from __future__ import annotations

import math
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from diagnostic_updater import Updater
from rcl_interfaces.msg import ParameterDescriptor, ParameterType
from rclpy.clock import Clock, ClockType

from graph_depth_refiner.frame import Status
from graph_depth_refiner.refiner import DepthRefiner
from graph_depth_refiner.ros.memory import free_megabytes, resident_megabytes
from graph_depth_refiner.ros.shedding import STAGES
from graph_depth_refiner.ros.starvation import Starvation
from graph_depth_refiner.ros.watch import Recent, STAGE

PERIOD = 1.0  # seconds, unless the parameter of the updater says otherwise
SHORTEST_PERIOD, LONGEST_PERIOD = 0.1, 3600.0  # seconds
NOISE_DEPTHS = (1, 2)  # metres, where the noise of the sensor is told
NOT_HEARD = 'nobody listens to the outputs: the inputs are not subscribed to'
TROUBLE = (Status.WORSE, Status.DIVERGED, Status.EMPTY)


class Diagnostics:
    """The tasks of a diagnostic updater, run by a timer that needs no simulated clock."""

    def __init__(self, pipeline: Any) -> None:
        """Start to report on a pipeline."""
        self._pipeline = pipeline
        self.last_complaint = ''
        self._same_name = False
        self._starvation = Starvation()
        node = pipeline.node
        self._updater = updater(node)
        self._updater.add('Inputs', self._inputs)
        self._updater.add('Refinement', self._refinement)
        self._timer = node.create_timer(
            self._updater.period, self._report, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def destroy(self) -> None:
        """Stop reporting."""
        self._pipeline.node.destroy_timer(self._timer)
        self._pipeline.node.destroy_publisher(self._updater.publisher)

    def _report(self) -> None:
        self._pipeline.follow()
        self._look_for_namesakes()
        self._updater.force_update()

    # ------------------------------------------------------------------ inputs

    def _inputs(self, status: Any) -> Any:
        now = time.monotonic()
        pipeline = self._pipeline
        depth = pipeline.inputs.get(pipeline.depth_role)
        for role, topic in pipeline.inputs.items():
            watch = topic.watch
            status.add(f'{role} topic', topic.name)
            status.add(f'{role} publishers', str(topic.publishers))
            status.add(f'{role} received', str(watch.received))
            status.add(f'{role} rate (Hz)', f'{watch.rate(now):.1f}')
            if watch.stamp is None:
                continue
            status.add(f'{role} age (ms)', f'{1e3 * (pipeline.clock() - watch.stamp):.1f}')
            if depth.watch.stamp is not None:
                offset = watch.stamp - depth.watch.stamp
                status.add(f'{role} stamp offset (ms)', f'{1e3 * offset:.1f}')
        status.add('stamps went back', str(pipeline.jumps.number))
        if not pipeline.listening:
            status.summary(
                DiagnosticStatus.OK, NOT_HEARD if pipeline.inputs else 'not listening')
        elif problems := self._starvation.problems(
                pipeline.inputs, pipeline.needed(), pipeline.synchroniser.matched, now):
            status.summary(DiagnosticStatus.WARN, '; '.join(problems))
        else:
            status.summary(DiagnosticStatus.OK, 'all inputs come in')
        return status

    # -------------------------------------------------------------- refinement

    def _refinement(self, status: Any) -> Any:
        pipeline, processor = self._pipeline, self._pipeline.processor
        if processor is None:
            status.summary(DiagnosticStatus.OK, pipeline.state())
            return status
        recent: Recent = processor.recent
        for name, percent in (('p50', 50), ('p99', 99)):
            status.add(
                f'latency {name} (ms)', _number(recent.percentile('latency_ms', percent)))
            status.add(f'age {name} (ms)', _number(recent.percentile('age_ms', percent)))
        for name in recent.names(STAGE):
            status.add(f'{name} (ms)', _number(recent.mean(name)))
        status.add('iterations', _number(recent.newest('iterations'), 0))
        status.add('energy', _number(recent.newest('energy'), 6))
        status.add('graph hit rate', _number(recent.newest('graph_hit_rate'), 3))
        self._past(status, processor)
        status.add('shedding stage', str(processor.shedder.stage))
        status.add('shedding cost', STAGES[processor.shedder.stage].cost)
        status.add('last status', processor.last_status.value if processor.last_status else '')
        for name, count in sorted(processor.statuses.snapshot().items()):
            status.add(f'status {name}', str(count))
        self._device(status, processor.refiner)
        for name, count in pipeline.accounts().items():
            status.add(name, str(count))
        return self._summary(status)

    @staticmethod
    def _device(status: Any, refiner: DepthRefiner | None) -> None:
        """Tell what computes, and what it and the process hold."""
        status.add('device', refiner.device if refiner else 'not started')
        status.add('threads', str(refiner.threads.number if refiner else 0))
        status.add('memory (MB)', f'{resident_megabytes():.1f}')
        status.add('memory kept free (MB)', f'{free_megabytes():.1f}')
        if refiner is None:
            return
        if refiner.device.startswith('cuda'):
            status.add('device memory (MB)', f'{device_megabytes(refiner.device):.0f}')
        if refiner.device_failures:
            status.add('device failures', str(refiner.device_failures))
        if refiner.graphs is not None and refiner.graphs.failures:
            status.add('failed captures', str(refiner.graphs.failures))

    @staticmethod
    def _past(status: Any, processor: Any) -> None:
        """Tell the noise of the sensor and what the frames before are good for."""
        recent: Recent = processor.recent
        noise = recent.newest('noise_floor'), recent.newest('noise_share')
        for depth in NOISE_DEPTHS:
            status.add(f'noise at {depth} m (mm)', _number(noise_millimetres(noise, depth), 2))
        status.add('frames with history (%)', _number(100 * recent.mean('has_history')))
        status.add('history weight (frames)', _number(recent.mean('history_frames')))
        for cause, count in sorted(processor.resets.snapshot().items()):
            status.add(f'no history: {cause}', str(count))
        for fate, count in sorted(processor.poses.snapshot().items()):
            status.add(f'poses {fate}', str(count))

    def _summary(self, status: Any) -> Any:
        pipeline = self._pipeline
        if self._same_name:
            status.summary(
                DiagnosticStatus.WARN, 'another node has the same name: parameters, services '
                'and topics of the two are mixed up')
        elif self.last_complaint:
            status.summary(DiagnosticStatus.WARN, self.last_complaint)
        elif stage := pipeline.processor.shedder.stage:
            status.summary(
                DiagnosticStatus.WARN,
                f'overloaded: work is shed, stage {stage}: {STAGES[stage].cost}')
        elif pipeline.inputs and pipeline.processor.last_status in TROUBLE:
            status.summary(
                DiagnosticStatus.WARN, f'last frame: {pipeline.processor.last_status.value}')
        else:
            status.summary(DiagnosticStatus.OK, pipeline.state())
        self.last_complaint = ''  # said again by the next frame if it persists
        return status

    def _look_for_namesakes(self) -> None:
        node = self._pipeline.node
        mine = (node.get_name(), node.get_namespace())
        same = node.get_node_names_and_namespaces().count(mine) > 1
        if same and not self._same_name:
            node.get_logger().warning(f'another node has the same name {"/".join(mine[::-1])}')
        self._same_name = same


def updater(node: Any) -> Updater:
    """Return an updater that tells nodes of one name apart, and leaves the timing to us."""
    made = Updater(node, PERIOD)
    node.destroy_timer(made.timer)  # of the clock of the node, which may be simulated
    node.set_descriptor(made.period_parameter, ParameterDescriptor(
        description='Time between two reports on /diagnostics (read at start) [s]',
        type=ParameterType.PARAMETER_DOUBLE, read_only=True))
    if not SHORTEST_PERIOD <= made.period <= LONGEST_PERIOD:
        raise ValueError(
            f'{made.period_parameter}: expected number from {SHORTEST_PERIOD:g} to '
            f'{LONGEST_PERIOD:g}, got {made.period:g}')
    if hasattr(made, 'use_fqn_parameter'):  # not in Humble
        node.undeclare_parameter(made.use_fqn_parameter)  # there is no choice
    made.node_name = node.get_fully_qualified_name()
    made.setHardwareID(made.node_name)
    return made


def noise_millimetres(noise: tuple[float, float], depth: float) -> float:
    """
    Return the standard deviation of a single measurement at a depth in metres.

    The noise is that of inverse depth, floor + share / z; that of depth is z^2 times it.
    """
    floor, share = noise
    return 1e3 * (floor * depth * depth + share * depth)


def device_megabytes(device: str) -> float:
    """Return the memory held on a CUDA device."""
    import torch
    return torch.cuda.memory_allocated(device) / 1e6


def _number(value: float, digits: int = 1) -> str:
    return 'none' if math.isnan(value) else f'{value:.{digits}f}'
