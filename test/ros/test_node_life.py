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
"""The life of a node over DDS: alone, side by side, managed, and its end."""

import re
import signal
import time

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from node_bench import Bench, call, NodeProcess, parameters, PATIENCE, running
import pytest
import rclpy


def test_what_nobody_wants_is_not_computed():
    with running(*parameters(lazy='false'), outputs=['depth_refined/camera_info']) as (
            process, bench):
        bench.refines('depth_refined/camera_info')
        assert process.output.count('compiling or loading the kernels') == 1
        for subscription in bench.subscriptions.values():
            bench.node.destroy_subscription(subscription)
        bench.wait_for(
            lambda: bench.send() and not bench.spin(0.1) and
            bench.account('dropped: no_subscriber') > 3, 'idle frames')


def test_stale_frames_are_dropped_and_counted():
    with running(*parameters(max_age=0.5)) as (process, bench):
        bench.refines()
        bench.wait_for(
            lambda: bench.send(time.time_ns() - 10 ** 9) and not bench.spin(0.1) and
            bench.account('dropped: stale') > 0, 'a stale frame')


def test_clocks_that_differ_are_told_once_and_do_not_flood_the_log():
    with running(*parameters()) as (process, bench):
        bench.refines()
        for _ in range(20):
            stamp = bench.send()
            bench.send(stamp - 10 ** 9)
            bench.spin(0.05)
        told = re.compile(
            'expected stamps of one clock, got .* s back again and again, with 1 publisher on /')
        bench.wait_for(lambda: told.search(process.output), 'the sentence')
        assert process.output.count('expected stamps of one clock') <= 4  # once for each topic
        assert process.output.count('stamps went back by') < 10


def test_two_nodes_under_namespaces():
    rclpy.init()
    processes = [NodeProcess('--ros-args', '-r', f'__ns:=/{name}') for name in ('left', 'right')]
    benches = [Bench(namespace=name) for name in ('left', 'right')]
    try:
        names, hardware = set(), set()

        def note(array):
            names.update(status.name for status in array.status)
            hardware.update(status.hardware_id for status in array.status)

        benches[0].node.create_subscription(DiagnosticArray, '/diagnostics', note, 10)
        for bench in benches:
            assert bench.refines().header.frame_id
        benches[0].wait_for(lambda: len(names) >= 4, 'reports of both')
        assert names == {f'/{name}/refiner_node: {task}' for name in ('left', 'right')
                         for task in ('Inputs', 'Refinement')}
        benches[0].wait_for(
            lambda: {'/left/refiner_node', '/right/refiner_node'} <= hardware, 'their ids')
    finally:
        for bench in benches:
            bench.close()
        codes = [process.end()[0] for process in processes]
        rclpy.try_shutdown()
    assert codes == [0, 0]


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize('after', ['at once', 'while refining'])
def test_signals_end_it_cleanly(number, after):
    with running() as (process, bench):
        if after == 'while refining':
            bench.refines()
            for _ in range(3):
                bench.send()
        else:
            time.sleep(0.3)
        code, seconds = process.end(number)
        assert code == 0
        assert seconds < 2
        assert 'Traceback' not in process.output


def test_a_long_solve_does_not_hold_up_the_end():
    endless = parameters(
        **{'solver.mode': 'converged', 'solver.max_iterations': 1000000, 'solver.tolerance': 0.0})
    with running(*endless) as (process, bench):
        bench.wait_for(
            lambda: bench.send() and not bench.spin(0.1) and bench.account('in work') > 0,
            'a frame in work')
        code, seconds = process.end()
        assert code == 0
        assert seconds < 2
        assert 'Traceback' not in process.output


def test_lifecycle_node_follows_its_states():
    with running(module='ros.lifecycle_node') as (process, bench):
        def change(transition):
            answer = call(bench, ChangeState, '/refiner_node/change_state', ChangeState.Request(
                transition=Transition(id=transition)))
            assert answer.success

        change(Transition.TRANSITION_CONFIGURE)
        change(Transition.TRANSITION_ACTIVATE)
        bench.refines()
        change(Transition.TRANSITION_DEACTIVATE)
        bench.spin(0.3)
        bench.heard['depth_refined/image'].clear()
        for _ in range(5):
            bench.send()
            bench.spin(0.1)
        assert not bench.heard['depth_refined/image']
        change(Transition.TRANSITION_CLEANUP)
        change(Transition.TRANSITION_CONFIGURE)
        change(Transition.TRANSITION_ACTIVATE)
        bench.refines()
        assert process.end()[0] == 0


def test_a_namesake_is_noticed():
    with running() as (process, bench):
        other = NodeProcess()
        bench.wait_for(
            lambda: 'another node has the same name' in process.output, 'the warning')
        assert other.end()[0] == 0
        other.log.unlink()


@pytest.mark.parametrize('given, sentence', [
    (['-p', 'solver.iterations:=-5'], 'refiner_node: solver.iterations: expected integer from 0'),
    (['-p', 'device:=foo'], 'refiner_node: device: expected auto, cpu, cuda or cuda:N, got'),
    (['-p', 'device:=cuda:99'], 'refiner_node: device: expected '),
    (['-p', 'diagnostic_updater.period:=0.0'],
     'refiner_node: diagnostic_updater.period: expected number from 0.1 to 3600, got 0'),
    (['-p', 'image_topic:=a//b'], 'refiner_node: image_topic: expected a name of a topic, got '),
    (['-p', 'qos_overrides./depth.subscription.reliability:=perhaps', '-r', '__node:=mine'],
     'mine: qos_overrides./depth.subscription: expected values that are a quality of service'),
    (['-p', 'approximate_sync_tolerance_seconds:=['], 'refiner_node: failed to initialize rcl: '),
])
def test_bad_start_value_is_said_in_one_sentence(given, sentence):
    process = NodeProcess('--ros-args', *given)
    process.process.wait(PATIENCE)
    assert process.process.returncode == 2
    said = [line for line in process.output.splitlines() if '[rcl]: ' not in line]
    assert len(said) == 1
    assert said[0].startswith(sentence)
    process.log.unlink()
