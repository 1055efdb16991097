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
"""TF by tf2_ros itself, over DDS; skipped where there is none."""

import threading
import time

from geometry_msgs.msg import TransformStamped
from node_bench import frame, INPUTS, parameters, running
import numpy as np
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.time import Time
from sensor_msgs.msg import CameraInfo

from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.lab.benchmarks.feeder import messages
from graph_depth_refiner.ros.places import check_places, LivePlaces
from graph_depth_refiner.ros.tf import is_installed

if is_installed():
    import tf2_ros
# no importorskip: where launch_testing looks at modules it would skip all that come after
pytestmark = pytest.mark.skipif(not is_installed(), reason='no tf2_ros')

RATE = 30.0  # Hz
PATIENCE = 20.0  # seconds
NOON = 12.0
CAMERA = 'camera_optical_frame'  # of the frames of node_bench
COLOR = 'color_optical_frame'


def stamp(seconds):
    """Return the stamp of a time in seconds."""
    return Time(nanoseconds=round(seconds * 1e9)).to_msg()


def transform(parent, child, seconds=0.0, angle=0.0, x=0.0):
    """Return a transform turned about z and moved along x."""
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id, message.header.stamp = parent, stamp(seconds)
    message.transform.translation.x = x
    message.transform.rotation.z, message.transform.rotation.w = (
        np.sin(angle / 2), np.cos(angle / 2))
    return message


def degrees(matrix):
    """Return by how much a pose is turned about z."""
    return np.degrees(np.arctan2(matrix[1, 0], matrix[0, 0]))


class Robot:
    """A node that listens in a thread, and another that sends transforms."""

    def __init__(self, **settings):
        config = NodeConfig().with_values(**settings)
        check_places(config)
        self.timeout = 0.0
        self.node, self.sender = rclpy.create_node('listens'), rclpy.create_node('sends')
        self.places = LivePlaces(self.node, config, lambda: self.timeout)
        self.moving = tf2_ros.TransformBroadcaster(self.sender)
        self.static = tf2_ros.StaticTransformBroadcaster(self.sender)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._executor.spin)
        self._thread.start()
        end = time.monotonic() + PATIENCE
        while not self.sender.count_subscribers('/tf'):
            assert time.monotonic() < end, 'nobody listens to /tf'
            time.sleep(0.01)
        time.sleep(0.2)  # until both ends know of each other

    def settled(self, ask):
        """Return what is known once it is, in a while."""
        end = time.monotonic() + PATIENCE
        while (found := ask()) is None:
            assert time.monotonic() < end, 'nothing came'
            time.sleep(0.01)
        return found

    def close(self):
        self.places.destroy()
        self._executor.shutdown()
        self._thread.join()
        self.node.destroy_node()
        self.sender.destroy_node()


@pytest.fixture
def robot():
    robots = []

    def make(**settings):
        robots.append(Robot(**settings))
        return robots[-1]

    rclpy.init()
    yield make
    for one in robots:
        one.close()
    rclpy.try_shutdown()


def test_30_hz_at_1_radian_a_second(robot):
    it = robot(fixed_frame='odom')
    it.static.sendTransform(transform('base', 'camera', angle=0.5))
    for at in NOON + np.arange(0, 1, 1 / RATE):
        it.moving.sendTransform(transform('odom', 'base', at, angle=at - NOON))
        time.sleep(0.001)
    it.settled(lambda: it.places.pose('camera', stamp(NOON + 0.95)))
    for at in np.arange(0.01, 0.95, 0.0137):  # a camera's own moments
        found = it.places.pose('/camera', stamp(NOON + at))  # a slash of old is none
        assert abs(degrees(found) - np.degrees(at + 0.5)) < 0.05
    assert it.places.pose('camera', stamp(NOON + 1.1)) is None  # nothing is extrapolated
    assert it.places.pose('elsewhere', stamp(NOON)) is None


def test_a_late_transform_is_awaited_and_wakes_who_waits(robot):
    it = robot(fixed_frame='odom')
    it.moving.sendTransform(transform('odom', 'camera', NOON))
    it.settled(lambda: it.places.pose('camera', stamp(NOON)))
    late = threading.Timer(0.04, it.moving.sendTransform, [
        transform('odom', 'camera', NOON + 0.1, x=1.0)])
    late.start()
    it.timeout = PATIENCE
    began = time.monotonic()
    found = it.places.pose('camera', stamp(NOON + 0.05))
    assert 0.03 < time.monotonic() - began < 5  # neither at once nor the whole of the time
    late.join()
    assert found[0, 3] == pytest.approx(0.5)


def test_the_wait_is_bounded_and_ends_with_the_transforms(robot):
    it = robot(fixed_frame='odom')
    it.timeout = 1e9  # would wait for ever
    assert it.places.pose('camera', stamp(NOON)) is None  # nothing has come
    it.moving.sendTransform(transform('odom', 'camera', NOON))
    it.settled(lambda: it.places.pose('camera', stamp(NOON)))
    assert it.places.pose('camera', stamp(NOON + 0.6)) is None  # nothing has come for 0.6 s
    it.timeout = 0.03
    began = time.monotonic()
    assert it.places.pose('camera', stamp(NOON + 0.05)) is None
    assert time.monotonic() - began >= 0.03


def test_what_moves_is_forgotten_and_what_is_static_stays(robot):
    it = robot(fixed_frame='odom', image_info_topic='camera_info')
    it.static.sendTransform(transform('camera', COLOR, x=-0.05))
    it.moving.sendTransform(transform('odom', 'camera', NOON))
    it.settled(lambda: it.places.pose('camera', stamp(NOON)))
    it.places.clear()
    assert it.places.pose('camera', stamp(NOON)) is None
    assert it.places.transform(COLOR, 'camera', stamp(99.0))[0, 3] == pytest.approx(0.05)


def test_odometry_with_the_camera_by_tf(robot):
    from nav_msgs.msg import Odometry
    it = robot(odometry_topic='odom')
    it.static.sendTransform(transform('base', 'camera', x=0.5))
    message = Odometry(child_frame_id='base')
    message.header.stamp = stamp(NOON)
    message.pose.pose.position.x = 2.0
    it.places.poses.add('odometry', message)
    found = it.settled(lambda: it.places.pose('camera', stamp(NOON)))
    assert found[0, 3] == pytest.approx(2.5)


def test_the_node_uses_poses_and_registers_by_tf():
    """The image is of another camera, 5 cm aside; both turn in odom."""
    settings = parameters(fixed_frame='odom', image_info_topic='image_info', device='cpu',
                          use_confidence='never')
    topics = {**INPUTS, 'image_info': CameraInfo}
    with running(*settings, inputs=topics) as (process, bench):
        static = tf2_ros.StaticTransformBroadcaster(bench.node)
        moving = tf2_ros.TransformBroadcaster(bench.node)
        static.sendTransform([
            transform('base', CAMERA), transform(CAMERA, COLOR, x=0.05)])
        info = messages(frame())['camera_info']
        info.header.frame_id = COLOR

        def send():
            now = bench.now()
            moving.sendTransform(transform('odom', 'base', now * 1e-9))
            bench.publishers['image_info'].publish(info)
            bench.send(now, image={'header': header(now)})
            bench.spin(0.05)
            return bench.account('poses used') > 2

        def header(now):
            found = messages(frame())['image'].header
            found.frame_id, found.stamp = COLOR, Time(nanoseconds=now).to_msg()
            return found

        bench.wait_for(send, 'use of poses')
        assert bench.account('refined') > 2 and bench.account('dropped: malformed') == 0
        assert bench.heard['depth_refined/image']
        assert process.end()[0] == 0
