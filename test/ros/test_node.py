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
"""The node over DDS: what it publishes, parameters, services, signals, several at once."""

from dataclasses import replace

from node_bench import Bench, call, frame, NodeProcess, parameters, running
import numpy as np
import pytest
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters, SetParameters
from rclpy.parameter import Parameter
from rclpy.qos import QoSDurabilityPolicy, QoSProfile
from sensor_msgs.msg import Image
from std_srvs.srv import SetBool, Trigger

from graph_depth_refiner.config import NodeConfig, RefinerConfig
from graph_depth_refiner.frame import Provenance
from graph_depth_refiner.messages.conversions import decode_depth


@pytest.fixture(scope='module')
def node_and_bench():
    with running(*parameters(use_confidence='always')) as (process, bench):
        bench.refines('points')
        yield process, bench


@pytest.fixture
def bench(node_and_bench):
    return node_and_bench[1]


HOLE = frame().depth == 0  # too wide to be filled


def with_narrow_hole():
    """Return the usual frame with one more hole, narrow enough to be filled."""
    depth = frame().depth.copy()
    depth[32:35, 40:43] = 0
    return replace(frame(), depth=depth)


def test_outputs_carry_the_header_and_agree(bench):
    bench.refines('points', of=with_narrow_hole())
    stamp = max(bench.heard['points'])
    bench.wait_for(
        lambda: all(stamp in heard for heard in bench.heard.values()), 'all outputs')
    found = {topic: heard[stamp] for topic, heard in bench.heard.items()}
    for message in found.values():
        assert message.header.frame_id == 'camera_optical_frame'
        assert (message.width, message.height) == (64, 48)
    assert {topic: m.encoding for topic, m in found.items() if hasattr(m, 'encoding')} == {
        'depth_refined/image': '16UC1', 'depth_refined/confidence': '32FC1',
        'depth_refined/provenance': 'mono8', 'normals/image': '32FC3',
        'normals/image_color': 'rgb8'}
    depth, _ = decode_depth(found['depth_refined/image'], 10 ** 6)
    np.testing.assert_allclose(depth[~HOLE], 2, atol=0.1)
    cloud = np.frombuffer(found['points'].data, np.float32).reshape(48, 64, 8)
    np.testing.assert_allclose(cloud[~HOLE, 2], depth[~HOLE], atol=0.0006)  # millimetres
    provenance = np.frombuffer(
        found['depth_refined/provenance'].data, np.uint8).reshape(48, 64)
    assert (provenance[32:35, 40:43] == Provenance.FILLED).all()
    # what nobody measured is unknown in every output
    assert (provenance[HOLE] == Provenance.UNKNOWN).all()
    assert (depth[HOLE] == 0).all() and np.isnan(cloud[HOLE, :3]).all()
    confidence = np.frombuffer(found['depth_refined/confidence'].data, np.float32)
    measured = with_narrow_hole().depth > 0
    assert (confidence.reshape(48, 64)[HOLE] == 0).all()
    assert (confidence.reshape(48, 64)[measured] > 0).all()
    normals = np.frombuffer(found['normals/image'].data, np.float32).reshape(48, 64, 3)
    assert np.array_equal(np.isnan(normals).any(-1), HOLE)
    assert found['depth_refined/camera_info'].k[0] == 60


@pytest.mark.parametrize('encoding', ['32FC1', '64FC1', 'mono16'])
def test_depth_comes_back_as_it_came(bench, encoding):
    stored = np.nan_to_num(frame().depth)
    data = (1000 * stored).astype(np.uint16) if encoding == 'mono16' else stored.astype(
        {'32FC1': np.float32, '64FC1': np.float64}[encoding])
    answer = bench.refines(depth={
        'encoding': encoding, 'step': 64 * data.itemsize, 'data': data.tobytes()})
    assert answer.encoding == encoding
    depth = decode_depth(answer, 10 ** 6)[0]
    np.testing.assert_allclose(depth[~HOLE], 2, atol=0.1)
    unknown = 0 if encoding == 'mono16' else np.nan
    np.testing.assert_array_equal(depth[HOLE], unknown)


def test_disabled_means_unchanged(bench):
    assert call(bench, SetBool, '/refiner_node/enable', SetBool.Request(data=False)).success
    given = with_narrow_hole()
    answer = bench.refines(only={'depth'}, of=given)  # waits for nothing else
    # no history, no noise: the bytes themselves
    assert answer.data == bench.refines(only={'depth'}, of=given).data
    assert np.frombuffer(answer.data, np.uint16).reshape(48, 64)[33, 41] == 0
    assert call(bench, SetBool, '/refiner_node/enable', SetBool.Request(data=True)).success
    bench.wait_for(
        lambda: np.frombuffer(
            bench.refines(of=given).data, np.uint16).reshape(48, 64)[33, 41] > 0,
        'the hole to be filled again')


def set_parameter(bench, name, value):
    result = call(bench, SetParameters, '/refiner_node/set_parameters', SetParameters.Request(
        parameters=[Parameter(name, value=value).to_parameter_msg()])).results[0]
    assert result.successful, result.reason


def test_confidence_that_is_not_used_is_not_waited_for(bench):
    set_parameter(bench, 'confidence.preset', 'none')
    bench.refines(only={'depth', 'image', 'camera_info'})
    set_parameter(bench, 'confidence.preset', NodeConfig().confidence.preset)


def test_reset_is_served(bench):
    answer = call(bench, Trigger, '/refiner_node/reset', Trigger.Request())
    assert answer.success and answer.message
    bench.refines()


def test_every_parameter_is_described_and_can_be_set_or_says_why_not(bench):
    names = call(bench, ListParameters, '/refiner_node/list_parameters',
                 ListParameters.Request()).result.names
    known = {**RefinerConfig.tunables(), **NodeConfig.tunables()}
    assert set(known) <= set(names)
    described = call(bench, DescribeParameters, '/refiner_node/describe_parameters',
                     DescribeParameters.Request(names=list(known))).descriptors
    values = call(bench, GetParameters, '/refiner_node/get_parameters',
                  GetParameters.Request(names=list(names))).values
    results = call(bench, SetParameters, '/refiner_node/set_parameters', SetParameters.Request(
        parameters=[
            ParameterMessage(name=name, value=value)
            for name, value in zip(names, values, strict=True)])).results
    for name, result in zip(names, results, strict=True):
        assert result.successful or result.reason, name
        if name in known and not known[name].fixed:
            assert result.successful, (name, result.reason)
    for one in described:
        assert one.description, one.name
        assert one.integer_range or one.floating_point_range or known[one.name].kind in (bool, str)
    bench.refines()


def test_a_set_parameter_is_used_by_the_next_frame(bench):
    def iterations(number):
        set_parameter(bench, 'solver.iterations', number)
        bench.wait_for(
            lambda: bench.refines() and
            bench.diagnostics.get('Refinement', {}).get('iterations') == str(number),
            f'{number} iterations')

    iterations(3)
    iterations(RefinerConfig().solver.iterations)


def test_diagnostics_tell_the_noise_the_history_and_the_stages(bench):
    bench.wait_for(
        lambda: bench.refines() and bench.diagnostics.get('Refinement', {}).get(
            'history weight (frames)', 'none') != 'none', 'a history')
    report = bench.diagnostics['Refinement']
    assert float(report['noise at 2 m (mm)']) > 0
    assert 0 < float(report['frames with history (%)']) <= 100
    for stage in ('observe', 'history', 'solve', 'output'):
        assert float(report[f'stage {stage} (ms)']) >= 0


def test_incompatible_quality_is_explained(node_and_bench):
    """A reliable subscriber hears no best-effort publisher; the log says what to do."""
    process, _ = node_and_bench
    with_reliable = NodeProcess(
        '--ros-args', '-r', '__node:=picky', '-p',
        'qos_overrides./depth.subscription.reliability:=reliable')
    try:
        bench = Bench(outputs=['depth_refined/camera_info'])
        sentence = 'set parameter qos_overrides./depth.subscription.reliability to best_effort'
        bench.wait_for(lambda: sentence in with_reliable.output, 'the remedy')
        bench.close()
    finally:
        with_reliable.end()
        with_reliable.log.unlink()


def test_a_listener_that_asks_for_too_much_is_explained(node_and_bench):
    process, bench = node_and_bench
    subscription = bench.node.create_subscription(
        Image, 'normals/image', lambda _: None,
        QoSProfile(depth=1, durability=QoSDurabilityPolicy.TRANSIENT_LOCAL))
    sentence = 'set parameter qos_overrides./normals/image.publisher.durability to '
    bench.wait_for(lambda: sentence in process.output, 'the remedy')
    bench.node.destroy_subscription(subscription)


def test_reliable_listeners_are_served(bench):
    heard = []
    subscription = bench.node.create_subscription(
        Image, 'normals/image', heard.append, QoSProfile(depth=1))
    bench.wait_for(lambda: bench.refines() and heard, 'a normal')
    bench.node.destroy_subscription(subscription)
