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
from rclpy.clock import Clock, ClockType

from graph_depth_refiner.ros.memory import resident_megabytes
from graph_depth_refiner.ros.topics import InputTopic
from graph_depth_refiner.ros.watch import Recent

PERIOD = 1.0  # seconds
SILENCE = 2.0  # seconds without a message after which a topic starves the others


class Diagnostics:
    """The tasks of a diagnostic updater, run by a timer that needs no simulated clock."""

    def __init__(self, pipeline: Any) -> None:
        """Start to report on a pipeline."""
        self._pipeline = pipeline
        self.last_complaint = ''
        self._same_name = False
        self._last_refined = 0
        node = pipeline.node
        self._updater = Updater(node, PERIOD)
        node.destroy_timer(self._updater.timer)
        self._updater.setHardwareID('none')
        self._updater.add('Inputs', self._inputs)
        self._updater.add('Refinement', self._refinement)
        self._timer = node.create_timer(
            PERIOD, self._report, clock=Clock(clock_type=ClockType.STEADY_TIME))

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
        problems = self._problems(now)
        if not pipeline.inputs:
            status.summary(DiagnosticStatus.OK, 'not listening')
        elif problems:
            status.summary(DiagnosticStatus.WARN, '; '.join(problems))
        else:
            status.summary(DiagnosticStatus.OK, 'all inputs come in')
        return status

    def _problems(self, now: float) -> list[str]:
        """Say which topic starves the synchroniser, and why."""
        pipeline = self._pipeline
        problems = []
        for role, topic in pipeline.inputs.items():
            if topic.watch.silent_for(now) < SILENCE or (
                    role == 'confidence' and 'confidence' not in pipeline.synchroniser.topics):
                continue
            problems.append(starvation(role, topic))
        refined = pipeline.synchroniser.matched if pipeline.synchroniser else 0
        if not problems and pipeline.inputs and refined == self._last_refined:
            problems.append(
                'all inputs come in but their stamps do not match: see the stamp offsets, and '
                'slop or exact_sync')
        self._last_refined = refined
        return problems

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
        status.add('iterations', _number(recent.newest('iterations'), 0))
        status.add('energy', _number(recent.newest('energy'), 6))
        status.add('graph hit rate', _number(recent.newest('graph_hit_rate'), 3))
        status.add('shedding stage', str(processor.shedder.stage))
        status.add('last status', processor.last_status)
        for name, count in sorted(processor.statuses.snapshot().items()):
            status.add(f'status {name}', str(count))
        refiner = processor.refiner
        status.add('device', refiner.device if refiner else 'not started')
        status.add('memory (MB)', f'{resident_megabytes():.0f}')
        if refiner and refiner.device.startswith('cuda'):
            status.add('device memory (MB)', f'{device_megabytes():.0f}')
        for name, count in pipeline.accounts().items():
            status.add(name, str(count))
        return self._summary(status)

    def _summary(self, status: Any) -> Any:
        pipeline = self._pipeline
        if self._same_name:
            status.summary(
                DiagnosticStatus.WARN, 'another node has the same name: parameters, services '
                'and topics of the two are mixed up')
        elif self.last_complaint:
            status.summary(DiagnosticStatus.WARN, self.last_complaint)
        elif pipeline.processor.shedder.stage:
            status.summary(
                DiagnosticStatus.WARN,
                f'overloaded: work is shed, stage {pipeline.processor.shedder.stage}')
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


def starvation(role: str, topic: InputTopic) -> str:
    """Say in words why nothing comes on a topic."""
    if topic.watch.incompatible:
        return (f'{role} starves the synchroniser: a publisher on {topic.name} offers '
                f'incompatible {topic.watch.incompatible}; {topic.remedy()}')
    if not topic.publishers:
        return f'{role} starves the synchroniser: nobody publishes {topic.name}'
    return (f'{role} starves the synchroniser: {topic.publishers} on {topic.name}, but '
            'nothing comes')


def device_megabytes() -> float:
    """Return the memory held on a CUDA device."""
    import torch
    return torch.cuda.memory_allocated() / 1e6


def _number(value: float, digits: int = 1) -> str:
    return 'none' if math.isnan(value) else f'{value:.{digits}f}'
