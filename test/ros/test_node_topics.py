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
"""Subscriptions and publishers: each has a quality of its own, and mistakes are named."""

import time

from node_bench import PATIENCE
import pytest
import rclpy
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data, QoSReliabilityPolicy
from sensor_msgs.msg import Image

from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.ros.topics import input_topics, OutputTopics

RELIABLE, BEST_EFFORT = QoSReliabilityPolicy.RELIABLE, QoSReliabilityPolicy.BEST_EFFORT


@pytest.fixture
def make_node():
    """Make nodes with parameters given at their start."""
    rclpy.init()
    nodes = []

    def make(**values):
        nodes.append(rclpy.create_node('listener', parameter_overrides=[
            Parameter(name, value=value) for name, value in values.items()]))
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()
    rclpy.shutdown()


def listen(node, **settings):
    """Subscribe to the inputs of these settings."""
    return input_topics(node, NodeConfig().with_values(**settings), lambda role, message: None)


def test_an_override_counts_for_its_own_topic_only(make_node):
    node = make_node(**{
        'qos_overrides./image.subscription.reliability': 'reliable',
        'qos_overrides./depth_refined/image.publisher.depth': 77})
    listen(node)
    OutputTopics(node, ['depth_refined/image', 'points'])
    quality = {one.topic_name: one.qos_profile for one in (*node.subscriptions, *node.publishers)}
    assert quality['/image'].reliability == RELIABLE
    for later in ('/depth', '/camera_info', '/confidence'):
        assert quality[later].reliability == BEST_EFFORT
    assert quality['/depth_refined/image'].depth == 77
    assert quality['/points'].depth == 5


@pytest.mark.parametrize('name', ['a b', '', '1st', '/a//b', 'a/', 'x{y}'])
def test_a_name_that_is_none_is_refused(make_node, name):
    with pytest.raises(ValueError, match='image_topic: expected a name of a topic, got') as error:
        listen(make_node(), image_topic=name)
    assert repr(name) in str(error.value)
    assert '\n' not in str(error.value)


def test_the_base_of_a_transport_is_checked_too(make_node):
    with pytest.raises(ValueError, match='image_topic: expected a name of a topic'):
        listen(make_node(), image_topic='a b', image_transport='compressed')


@pytest.mark.parametrize('policy, value', [
    ('reliability', 'sometimes'), ('reliability', 3), ('history', 'unknown'), ('depth', -1),
    ('depth', 'deep'), ('depth', 10 ** 12), ('durability', '')])
@pytest.mark.parametrize('side', ['subscription', 'publisher'])
def test_a_quality_that_is_none_is_refused(make_node, side, policy, value):
    topic = '/depth' if side == 'subscription' else '/points'
    node = make_node(**{f'qos_overrides.{topic}.{side}.{policy}': value})
    with pytest.raises(ValueError, match=f'qos_overrides.{topic}.{side}: expected') as error:
        listen(node)
        OutputTopics(node, ['points'])
    assert policy in str(error.value)
    assert '\n' not in str(error.value)


def wait_for(node, condition):
    """Spin until something holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        rclpy.spin_once(node, timeout_sec=0.05)


def test_a_publisher_that_does_not_match_is_reported_while_it_is_there(make_node):
    node = make_node(**{'qos_overrides./depth.subscription.reliability': 'reliable'})
    depth = listen(node)['depth']
    other = make_node()
    publisher = other.create_publisher(Image, '/depth', qos_profile_sensor_data)
    wait_for(node, lambda: depth.incompatible == 'RELIABILITY')
    other.destroy_publisher(publisher)
    wait_for(node, lambda: not depth.incompatible)
