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
"""The node in the process of the test, where its solver can be watched and broken."""

import threading

from geometry_msgs.msg import PoseStamped
from node_bench import Bench, frame
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.time import Time

from graph_depth_refiner.lab.benchmarks.feeder import messages
from graph_depth_refiner.ros.nodes import RefinerNode

FAILURES = 3
HUNDREDTH = 10 ** 7  # of a second, ns


@pytest.fixture
def node_and_bench():
    """Run the node in this process."""
    rclpy.init()
    node = RefinerNode(
        parameter_overrides=[Parameter('camera_pose_topic', value='camera_pose')])
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    thread = threading.Thread(target=executor.spin, daemon=True)
    thread.start()
    bench = Bench()
    yield node, bench
    assert node.pipeline.stop(10.0)
    executor.shutdown()
    thread.join(10.0)
    bench.close()
    node.destroy_node()
    rclpy.try_shutdown()


def test_solver_exception(node_and_bench, capfd):
    node, bench = node_and_bench
    bench.refines()
    processor = node.pipeline.processor
    refine, left = processor.refiner.refine, list(range(FAILURES))

    def break_down(frame):
        if not left:
            return refine(frame)
        raise RuntimeError(f'out of memory, attempt {left.pop()}')

    processor.refiner.refine = break_down
    bench.wait_for(
        lambda: bench.send() and not bench.spin(0.1) and not left, 'all failures', 30.0)
    bench.refines()
    assert processor.ledger.snapshot()['failed'] == FAILURES
    assert capfd.readouterr().err.count('RuntimeError: out of memory') == 1


def test_loading_the_kernels_is_said(node_and_bench):
    node, bench = node_and_bench
    bench.refines()
    assert node.pipeline.state() == 'refining'
    node.pipeline.processor.preparing = True
    assert node.pipeline.state() == 'compiling or loading the kernels'


def test_only_what_is_waited_for_is_needed(node_and_bench):
    node, bench = node_and_bench
    pipeline = node.pipeline
    node.set_parameters([Parameter('sync_camera_info', value=False)])
    # none has come yet; confidence depends on whether its publisher was noticed
    assert pipeline.needed() - {'confidence'} == {'depth', 'image', 'camera_info'}
    bench.wait_for(
        lambda: bench.send(only={'camera_info'}) and not bench.spin(0.1) and
        pipeline.inputs['camera_info'].watch.received, 'a camera_info')
    assert pipeline.needed() - {'confidence'} == {'depth', 'image'}
    assert 'camera_pose' in pipeline.inputs


def test_poses_reach_the_refiner(node_and_bench):
    node, bench = node_and_bench
    bench.refines()
    publisher = bench.node.create_publisher(PoseStamped, 'camera_pose', 10)
    refiner = node.pipeline.processor.refiner
    refine, poses = refiner.refine, []

    def watch(frame):
        poses.append(frame.pose)
        return refine(frame)

    refiner.refine = watch

    def pose(stamp, x):
        message = PoseStamped()
        message.header.stamp = Time(nanoseconds=stamp).to_msg()
        message.pose.position.x = x
        publisher.publish(message)

    def sent_before_its_pose():
        stamp = bench.now()
        pose(stamp - HUNDREDTH, 7.0)
        bench.send(stamp)
        bench.spin(0.02)  # the worker waits for the pose by now
        pose(stamp + HUNDREDTH, 9.0)
        bench.spin(0.1)
        return poses and poses[-1] is not None

    assert not poses or poses[-1] is None
    bench.wait_for(sent_before_its_pose, 'a frame with a pose')
    assert poses[-1][0, 3] == pytest.approx(8, abs=1e-3)  # half way between the two


def test_inputs_are_subscribed_to_only_while_an_output_is_wanted(node_and_bench):
    node, bench = node_and_bench
    pipeline = node.pipeline
    bench.refines()
    received = pipeline.inputs['depth'].watch.received
    for subscription in bench.subscriptions.values():
        bench.node.destroy_subscription(subscription)
    bench.wait_for(lambda: not bench.publishers['depth'].get_subscription_count(), 'the end')
    assert not pipeline.listening
    assert not any(p.get_subscription_count() for p in bench.publishers.values())
    bench.wait_for(
        lambda: 'nobody listens' in bench.diagnostics.get('Inputs', {}).get('', ''), 'a word')
    bench.send()
    bench.spin(0.3)
    assert pipeline.inputs['depth'].watch.received == received
    assert sum(pipeline.accounts().values()) == 2 * received  # nothing is lost unexplained

    bench._subscribe('points')
    bench.refines('points')
    assert pipeline.inputs['depth'].watch.received > received


def test_inputs_are_always_subscribed_to_where_not_lazy(node_and_bench):
    node, bench = node_and_bench
    node.set_parameters([Parameter('lazy', value=False)])
    for subscription in bench.subscriptions.values():
        bench.node.destroy_subscription(subscription)
    bench.wait_for(lambda: not node.pipeline.outputs.any_wanted(), 'the end')
    before = node.pipeline.inputs['depth'].watch.received
    bench.wait_for(
        lambda: bench.send() and not bench.spin(0.1) and
        node.pipeline.inputs['depth'].watch.received > before, 'a message')
    node.set_parameters([Parameter('lazy', value=True)])
    assert not node.pipeline.listening


@pytest.mark.parametrize('choice', ['pass', 'wait'])
def test_frames_that_come_while_kernels_load(node_and_bench, choice):
    node, bench = node_and_bench
    bench.refines()
    bench.wait_for(lambda: not node.pipeline.worker.load, 'a rest')
    node.set_parameters([Parameter('while_loading', value=choice)])
    processor = node.pipeline.processor
    processor.preparing = True
    before = processor.ledger.snapshot()
    came = bench.refines()
    after = processor.ledger.snapshot()
    assert (after['refined'] > before['refined']) == (choice == 'wait')
    assert (after.get('passed', 0) > 0) == (choice == 'pass')
    if choice == 'pass':
        sent = messages(frame())['depth']
        assert came.data == sent.data
