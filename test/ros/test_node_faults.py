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
"""Each fault ends with the node alive and the next good frame refined."""

from node_bench import Bench, call, frame, parameters, running
import numpy as np
import pytest
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter


@pytest.fixture(scope='module')
def node_and_bench():
    with running(*parameters(use_confidence='always')) as (process, bench):
        bench.refines()
        yield process, bench


@pytest.fixture
def bench(node_and_bench):
    """Give the bench; afterwards the node must be alive and refine."""
    process, bench = node_and_bench
    yield bench
    assert process.alive
    bench.refines()
    assert 'Traceback' not in process.output


def dropped(bench, cause, before):
    """Wait until the diagnostics count more drops of a cause."""
    bench.wait_for(
        lambda: bench.account(f'dropped: {cause}') > before, f'a drop as {cause}')


@pytest.mark.parametrize('changes', [
    {'depth': {'data': b''}},
    {'depth': {'data': bytes(100)}},
    {'depth': {'step': 3}},
    {'depth': {'height': 0, 'width': 0}},
    {'depth': {'height': 2 ** 31, 'width': 2 ** 31}},
    {'depth': {'encoding': 'jpeg'}},
    {'image': {'width': 63}},
    {'image': {'height': 7}},
    {'image': {'encoding': 'nonsense'}},
    {'confidence': {'step': 1}},
    {'camera_info': {'width': 640}},
    {'camera_info': {'k': [0.0] * 9, 'p': [0.0] * 12}},
    {'camera_info': {'d': [0.1] * 5}},
], ids=str)
def test_bad_message(bench, changes):
    before = bench.account('dropped: malformed')
    bench.send(**changes)
    dropped(bench, 'malformed', before)


def test_the_log_names_what_was_wrong(node_and_bench):
    process, bench = node_and_bench
    for _ in range(5):
        bench.send(depth={'step': 3})
        bench.spin(0.1)
    sentence = 'depth.step: expected at least 128 bytes a row, got 3'
    bench.wait_for(lambda: sentence in process.output, 'the sentence')
    assert process.output.count('depth.step: expected at least 128') == 1


@pytest.mark.parametrize('topic', ['image', 'depth', 'confidence', 'camera_info'])
def test_missing_topic_is_named(bench, topic):
    others = {'image', 'depth', 'confidence', 'camera_info'} - {topic}
    bench.wait_for(
        lambda: bench.send(only=others) and not bench.spin(0.1) and
        f'{topic} starves the synchroniser' in bench.diagnostics['Inputs'][''],
        f'the diagnosis of {topic}')


def test_late_topic(bench):
    stamp = bench.send(only={'depth', 'camera_info', 'confidence'})
    bench.spin(0.3)
    bench.send(stamp, only={'image'})
    bench.wait_for(lambda: stamp in bench.heard['depth_refined/image'], 'the frame')


def test_nothing_but_nan(bench):
    nothing = frame()
    nothing.depth[:] = np.nan
    stamp = bench.send(of=nothing)
    bench.wait_for(lambda: stamp in bench.heard['depth_refined/image'], 'an empty frame')
    message = bench.heard['depth_refined/image'][stamp]
    assert not any(message.data)


def test_resolution_changes_in_mid_stream(bench):
    for width, height in ((64, 48), (96, 64), (32, 24), (64, 48)):
        message = bench.refines(of=frame(width, height))
        assert (message.width, message.height) == (width, height)


def test_jump_back_in_time(bench):
    past = bench.now() - 3600 * 10 ** 9
    for step in range(30):
        stamp = bench.send(past + step * 33 * 10 ** 6)
        bench.spin(0.033)
    bench.wait_for(lambda: stamp in bench.heard['depth_refined/image'], 'the past')


def test_two_publishers_on_a_topic(bench):
    other = Bench(outputs=['depth_refined/camera_info'])
    try:
        for _ in range(10):
            first = bench.send()
            other.send(first - 10 ** 9)  # of another clock
            bench.spin(0.05)
    finally:
        other.close()


def test_an_empty_frame_is_a_warning(bench):
    nothing = frame()
    nothing.depth[:] = np.nan
    bench.wait_for(
        lambda: bench.send(of=nothing) and not bench.spin(0.1) and
        bench.diagnostics['Refinement'][''] == 'last frame: no valid depth', 'the warning')


def test_subscriber_disappears(bench):
    bench.node.destroy_subscription(bench.subscriptions['points'])
    bench.heard['points'].clear()
    bench.refines()
    assert not bench.heard['points']
    bench.subscriptions['points'] = bench._subscribe('points')
    bench.refines('points')


@pytest.mark.parametrize('name, value', [
    ('solver.iterations', -1), ('energy.reg_lambda', float('nan')), ('graph.window', 4),
    ('approximate_sync_tolerance_seconds', 0.0),
    ('solver.mode', 'fast'), ('solver.iterations', 'many'), ('max_pixels', 0), ('device', 'cpu')])
def test_parameters_out_of_range(bench, name, value):
    request = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
    result = call(bench, SetParameters, '/refiner_node/set_parameters', request).results[0]
    assert not result.successful
    assert result.reason


def test_accounts_add_up(bench):
    for _ in range(5):
        bench.send()
        bench.send(depth={'step': 3})
        bench.send(only={'depth'})
        bench.spin(0.05)
    bench.diagnostics.clear()
    bench.wait_for(lambda: 'Refinement' in bench.diagnostics, 'a report')
    accounts = {
        name: bench.account(name) for name in bench.diagnostics['Refinement']
        if name in ('received', 'refined', 'passed', 'waiting', 'in work') or
        name.startswith('dropped: ')}
    received = accounts.pop('received')
    assert received == sum(accounts.values())
    assert min(accounts.values()) >= 0
