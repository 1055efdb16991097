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
"""Poses by stamp: interpolated, awaited, never made up."""

import threading
import time

from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from nav_msgs.msg import Odometry
import numpy as np
import pytest
from rclpy.time import Time
from std_msgs.msg import Header

from graph_depth_refiner.ros.poses import Poses

RATE = 30.0  # Hz
SLOW_TURN = 1.0  # rad/s


def header(stamp):
    """Return a header of a time in seconds."""
    return Header(stamp=Time(nanoseconds=round(stamp * 1e9)).to_msg())


def turned(stamp):
    """Return the pose at a moment of a camera that turns about z and moves along x."""
    angle = SLOW_TURN * stamp
    return Pose(position=Point(x=stamp),
                orientation=Quaternion(z=np.sin(angle / 2), w=np.cos(angle / 2)))


def degrees_off(matrix, stamp):
    """Return by how much a pose is turned from where it should be."""
    return abs(np.degrees(np.arctan2(matrix[1, 0], matrix[0, 0]) - SLOW_TURN * stamp))


@pytest.mark.parametrize('role', ['camera_pose', 'odometry'])
def test_30_hz_at_1_radian_a_second(role):
    poses, worst = Poses(), 0.0
    for stamp in np.arange(0, 1, 1 / RATE):
        message = PoseStamped(header=header(stamp), pose=turned(stamp))
        if role == 'odometry':
            message = Odometry(header=header(stamp), child_frame_id='base')
            message.pose.pose = turned(stamp)
        poses.add(role, message)
    for stamp in np.arange(0.01, 0.95, 0.0137):  # a camera's own moments
        worst = max(worst, degrees_off(poses.at(stamp, 0.0), stamp))
    assert worst < 0.05
    assert poses.body == ('base' if role == 'odometry' else '')


def test_a_late_pose_is_awaited():
    poses, late = Poses(), 0.04  # seconds
    poses.add('camera_pose', PoseStamped(header=header(1.0), pose=turned(1.0)))
    after = PoseStamped(header=header(1.1), pose=turned(1.1))
    sender = threading.Timer(late, poses.add, ('camera_pose', after))
    sender.start()
    found = poses.at(1.05, 20.0)
    sender.join()
    assert degrees_off(found, 1.05) < 0.05


def test_the_wait_is_bounded_and_nothing_is_extrapolated():
    poses = Poses()
    poses.add('camera_pose', PoseStamped(header=header(1.0), pose=turned(1.0)))
    began = time.monotonic()
    assert poses.at(1.05, 0.03) is None
    assert time.monotonic() - began >= 0.03


@pytest.mark.parametrize('known', [(), (1.0,)])
def test_nobody_waits_for_poses_that_stopped(known):
    poses = Poses()
    for stamp in known:
        poses.add('camera_pose', PoseStamped(header=header(stamp), pose=turned(stamp)))
    assert poses.at(9.0, 1e9) is None  # would wait for ever


def test_bad_poses_are_refused_and_cleared_ones_forgotten():
    poses = Poses()
    with pytest.raises(ValueError, match='odometry.orientation: expected a quaternion'):
        poses.add('odometry', PoseStamped(pose=Pose(orientation=Quaternion(w=0.0))))
    poses.add('camera_pose', PoseStamped(header=header(1.0), pose=turned(1.0)))
    assert poses.at(1.0, 0.0) is not None
    poses.clear()
    assert poses.at(1.0, 0.0) is None
