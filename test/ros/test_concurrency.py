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
"""Settings that change while frames are in flight: each frame is made by one set of them."""

import threading

import numpy as np
import pytest
from wall_messages import inputs

from graph_depth_refiner.config import NodeConfig, RefinerConfig
from graph_depth_refiner.ros.processing import Job, Processor, Settings

# the two differ in what the refiner does and in how the messages are read
ONE = Settings(
    RefinerConfig().with_values(
        **{'solver.iterations': 2, 'energy.reg_lambda': 1.0, 'graph.window': 3}),
    NodeConfig().with_values(**{'confidence.preset': 'percent'}, shed_load=False))
OTHER = Settings(
    RefinerConfig().with_values(
        **{'solver.iterations': 9, 'energy.reg_lambda': 20.0, 'depth.max': 2.02}),
    NodeConfig().with_values(**{'confidence.preset': 'unit', 'confidence.threshold': 0.5},
                             shed_load=False))


class Outlet:
    """Keeps what is published of each frame, told apart by the header it carries."""

    def __init__(self, jobs):
        self.frames = {id(job.inputs.depth.header): {} for job in jobs}

    def wanted(self):
        return ['depth_refined/image', 'depth_refined/confidence']

    def publish(self, topic, head, make):
        self.frames[id(head)][topic] = bytes(make(np.empty)['data'])


def made_by(settings, number, around=lambda work: work()):
    """Return what comes of a number of frames, each started afresh."""
    jobs = [Job(inputs(), 0.0, 0.1, epoch) for epoch in range(1, number + 1)]
    outlet = Outlet(jobs)
    processor = Processor(settings, lambda: 1.0, outlet, lambda doubt: None)
    processor.prepare()
    around(lambda: [processor.process(job) for job in jobs])
    processor.close()
    assert processor.ledger.snapshot() == {'refined': number}
    return list(outlet.frames.values())


@pytest.fixture(scope='module')
def pure():
    one, = made_by(lambda: ONE, 1)
    other, = made_by(lambda: OTHER, 1)
    for topic in one:
        assert one[topic] != other[topic]  # else a mixture could not be told
    return one, other


def test_a_frame_reads_its_settings_once(pure):
    readings = []

    def alternating():
        readings.append(ONE if len(readings) % 2 else OTHER)
        return readings[-1]

    frames = made_by(alternating, 6)
    assert all(frame in pure for frame in frames)
    assert {id(pure[0]), id(pure[1])} == {id(pure[pure.index(frame)]) for frame in frames}


def test_settings_that_change_at_any_moment_never_mix(pure):
    present = [ONE]
    stop = threading.Event()

    def storm():
        while not stop.wait(0.0003):
            present[0] = ONE if present[0] is OTHER else OTHER

    def stormy(work):
        thread = threading.Thread(target=storm)
        thread.start()
        try:
            work()
        finally:
            stop.set()
            thread.join()

    frames = made_by(lambda: present[0], 40, stormy)
    assert all(frame in pure for frame in frames)
