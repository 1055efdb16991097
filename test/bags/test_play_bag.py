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
"""Recordings are played as they are, with their clock; looped, they keep the node going."""

import os
import pty
import termios
import threading
from types import SimpleNamespace

from node_bench import Bench, call, frame, NodeProcess, parameters, PATIENCE
import pytest
import rclpy
from rclpy.qos import qos_profile_sensor_data
from rclpy.serialization import serialize_message
from rclpy.time import Time
from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag1 import Writer as Ros1Writer
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import get_typestore, Stores
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image
from std_srvs.srv import SetBool

from graph_depth_refiner.bags.bags import reading
from graph_depth_refiner.bags.bags import TYPES as ROS2
from graph_depth_refiner.bags.play_bag import watched_keys
from graph_depth_refiner.lab.benchmarks.feeder import messages

FRAMES, PERIOD, START = 12, 100, 5_000_000_000  # number, ms, ns
TYPES = {'camera_info': 'CameraInfo', 'image': 'Image', 'depth': 'Image', 'confidence': 'Image'}
FOREVER = QosTime(2147483647, 4294967295)
SENSOR_DATA = Qos(
    QosHistory.KEEP_LAST, 5, QosReliability.BEST_EFFORT, QosDurability.VOLATILE, FOREVER,
    FOREVER, QosLiveliness.AUTOMATIC, FOREVER, False)


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    """Write a recording of a little more than a second."""
    path = tmp_path_factory.mktemp('bags') / 'recording'
    store = get_typestore(Stores.ROS2_JAZZY)
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connections = {
            topic: writer.add_connection(
                f'/{topic}', f'sensor_msgs/msg/{kind}', typestore=store,
                offered_qos_profiles=[SENSOR_DATA])
            for topic, kind in TYPES.items()}
        for number in range(FRAMES):
            stamp = START + number * PERIOD * 10 ** 6
            for topic, message in messages(frame()).items():
                message.header.stamp = Time(nanoseconds=stamp).to_msg()
                writer.write(connections[topic], stamp, serialize_message(message))
    return path


@pytest.fixture
def ears():
    """Listen to everything."""
    rclpy.init()
    bench = Bench(inputs={}, outputs=['depth_refined/image'])
    yield bench
    bench.close()
    rclpy.try_shutdown()


def test_three_loops_through_the_node(bag, ears):
    node = NodeProcess(*parameters(use_sim_time='true'))
    player = NodeProcess(str(bag), '--loop', module='bags.play_bag')
    clock, loops = [], [[]]

    def note(message):
        stamp = Time.from_msg(message.header.stamp).nanoseconds
        if loops[-1] and stamp < loops[-1][-1]:
            loops.append([])
        loops[-1].append(stamp)

    ears.node.create_subscription(Clock, '/clock', clock.append, 10)
    ears.node.create_subscription(Image, 'depth_refined/image', note, 10)
    try:
        ears.wait_for(lambda: len(loops) == 5, 'four loops and the beginning of a fifth')
        assert len(clock) > 100
        assert 'stamps went back by' in node.output
    finally:
        codes = player.end()[0], node.end()[0]
    assert codes == (0, 0)
    assert 'Traceback' not in player.output + node.output
    stamps = {START + number * PERIOD * 10 ** 6 for number in range(FRAMES)}
    for loop in loops[1:-1]:  # the first is cut short by the start of the node
        assert set(loop) <= stamps
        assert len(loop) >= FRAMES // 2


def test_rate_pause_and_bytes(bag, ears):
    heard = []
    ears.node.create_subscription(
        Image, 'depth', heard.append, qos_profile_sensor_data, raw=True)
    player = NodeProcess(
        str(bag), '--rate', '4', '--start-paused', '--delay', '0', module='bags.play_bag')
    try:
        ears.wait_for(lambda: ears.node.count_publishers('/depth'), 'the player')
        ears.spin(0.5)
        assert not heard
        assert call(ears, SetBool, '/play_bag/pause', SetBool.Request(data=False)).success
        ears.wait_for(lambda: len(heard) == FRAMES, 'all frames', 20.0)
        player.process.wait(10)
    finally:
        player.end()
    with reading(bag) as recording:
        stored = [one.data for one in recording.messages() if one.topic == '/depth']
    assert [bytes(data) for data in heard] == stored
    assert player.process.returncode == 0


def test_a_recording_of_ros_1(bag, ears, tmp_path):
    heard = []
    ears.node.create_subscription(Image, 'depth', heard.append, qos_profile_sensor_data)
    store = get_typestore(Stores.ROS1_NOETIC)
    old = tmp_path / 'old.bag'
    with reading(bag) as recording, Ros1Writer(old) as writer:
        connection = writer.add_connection('/depth', 'sensor_msgs/msg/Image', typestore=store)
        for one in recording.messages(['/depth']):
            writer.write(connection, one.time, bytes(ROS2.cdr_to_ros1(one.data, one.kind)))
    player = NodeProcess(str(old), '--rate', '4', '--loop', module='bags.play_bag')
    try:
        ears.wait_for(lambda: len(heard) >= FRAMES, 'as many frames as there are')
    finally:
        player.end()
    assert bytes(heard[0].data) == bytes(messages(frame())['depth'].data)


def test_the_space_bar_pauses_and_the_terminal_stays_as_it_was(monkeypatch):
    keyboard, terminal = pty.openpty()
    toggled = threading.Event()
    before = termios.tcgetattr(terminal)
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr('sys.stdin', stdin)
        with pytest.raises(KeyError), watched_keys(SimpleNamespace(toggle=toggled.set)):
            assert not termios.tcgetattr(terminal)[3] & termios.ECHO
            os.write(keyboard, b'x ')
            assert toggled.wait(PATIENCE)
            raise KeyError  # however it ends
        assert termios.tcgetattr(terminal) == before
    os.close(keyboard)


@pytest.mark.parametrize('arguments, sentence', [
    (['no/such/bag'], 'no/such/bag'),
    ([__file__], 'expected a recording (a folder'),
    (['BAG', '--rate', '0'], 'rate: expected a positive number, got 0'),
])
def test_mistakes_are_said_in_one_sentence(bag, arguments, sentence):
    player = NodeProcess(
        *(str(bag) if a == 'BAG' else a for a in arguments), module='bags.play_bag')
    player.process.wait(20)
    assert player.process.returncode == 2
    assert sentence in player.output
    assert 'Traceback' not in player.output
