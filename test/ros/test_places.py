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
"""Where the camera is: by odometry and a static transform, and by TF."""

from importlib.machinery import ModuleSpec
import sys
from types import ModuleType, SimpleNamespace

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
import numpy as np
import pytest
import rclpy.time
from std_msgs.msg import Header

from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.messages.transforms import TransformTree
from graph_depth_refiner.ros.places import check_places, LivePlaces

NOON = Time(sec=12)


class TransformException(Exception):
    """What tf2 raises where it knows nothing."""


class Buffer:
    """The part of tf2_ros.Buffer that is used, by a tree of our own."""

    def __init__(self):
        self.tree = TransformTree()
        for parent, child, x in (('odom', 'base', 7.0), ('base', 'depth', 0.5),
                                 ('base', 'color', 0.45)):
            message = TransformStamped(header=Header(frame_id=parent), child_frame_id=child)
            message.transform.translation.x = x
            self.tree.add(message, 0.0, static=True)

    def can_transform_core(self, target, source, time):
        return self.tree.lookup(target, source, 0.0) is not None, ''

    def get_latest_common_time(self, target, source):
        self.lookup_transform_core(target, source, rclpy.time.Time(seconds=12))
        return rclpy.time.Time()  # static

    def lookup_transform_core(self, target, source, time):
        assert time.nanoseconds == 12 * 10 ** 9
        matrix = self.tree.lookup(target, source, 0.0)
        if matrix is None:
            raise TransformException(f'{target} to {source}')
        found = TransformStamped()
        found.transform.translation.x = matrix[0, 3]
        return found


@pytest.fixture
def tf2_ros(monkeypatch):
    """Stand in for tf2_ros where there is none; test_tf.py has the real one."""
    module = ModuleType('tf2_ros')
    module.__spec__ = ModuleSpec('tf2_ros', None)
    module.Buffer, module.TransformException = Buffer, TransformException
    module.TransformListener = lambda buffer, node: SimpleNamespace(unregister=lambda: None)
    monkeypatch.setitem(sys.modules, 'tf2_ros', module)


def places(**settings):
    """Return the places of a configuration."""
    config = NodeConfig().with_values(**settings)
    check_places(config)
    return LivePlaces(None, config, lambda: 0.03)


def odometry(x):
    """Return odometry of the base at noon."""
    message = Odometry(header=Header(stamp=NOON, frame_id='odom'), child_frame_id='base')
    message.pose.pose.position.x = x
    return message


def test_odometry_with_a_static_transform():
    # the base has turned its x axis to y; the camera is 0.5 m ahead of it
    found = places(odometry_topic='odom', camera_in_body='0.5 0 0 0 0 0 1')
    message = odometry(2.0)
    half = 0.5 ** 0.5
    message.pose.pose.orientation.z = message.pose.pose.orientation.w = half
    found.poses.add('odometry', message)
    np.testing.assert_allclose(found.pose('depth', NOON)[:3, 3], [2, 0.5, 0], atol=1e-12)
    found.clear()
    assert found.pose('depth', NOON) is None


def test_without_a_source_there_is_no_pose():
    assert places().pose('depth', NOON) is None
    assert places().transform('color', 'depth', NOON) is None


def test_poses_by_tf(tf2_ros):
    assert places(fixed_frame='odom').pose('depth', NOON)[0, 3] == pytest.approx(7.5)
    assert places(fixed_frame='map').pose('depth', NOON) is None


def test_odometry_with_tf(tf2_ros):
    found = places(odometry_topic='odom')
    found.poses.add('odometry', odometry(2.0))
    assert found.pose('depth', NOON)[0, 3] == pytest.approx(2.5)
    assert found.pose('nowhere', NOON) is None


def test_registration_by_tf(tf2_ros):
    found = places(image_info_topic='color/camera_info')
    assert found.transform('color', 'depth', NOON)[0, 3] == pytest.approx(0.05)


@pytest.mark.parametrize('settings, sentence', [
    ({'fixed_frame': 'odom'}, 'fixed_frame: expected tf2_ros, which reads TF, got none'),
    ({'odometry_topic': 'odom'}, 'camera_in_body: expected tf2_ros'),
    ({'odometry_topic': 'odom', 'fixed_frame': 'odom'},
     'odometry_topic: expected one source of poses, got odometry_topic and fixed_frame'),
    ({'camera_in_body': '1 2'}, "camera_in_body: expected seven numbers 'x y z qx qy qz qw'"),
    ({'depth_in_image': 'x'}, 'depth_in_image: expected seven numbers'),
])
def test_what_cannot_work_is_refused_at_the_start(monkeypatch, settings, sentence):
    monkeypatch.setattr('graph_depth_refiner.ros.places.is_installed', lambda: False)
    with pytest.raises(ValueError, match=sentence):
        places(**settings)
