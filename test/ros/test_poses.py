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
"""Poses by stamp."""

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
import numpy as np
import pytest
from std_msgs.msg import Header

from graph_depth_refiner.ros.poses import pose_matrix, Poses


def pose(**orientation):
    """Return a pose at (1, 2, 3)."""
    return Pose(position=Point(x=1.0, y=2.0, z=3.0), orientation=Quaternion(**orientation))


def test_a_quarter_turn_about_z():
    # x goes to y: q = (0, 0, sin 45, cos 45)
    half = 0.5 ** 0.5
    matrix = pose_matrix(pose(z=half, w=half))
    np.testing.assert_allclose(matrix @ [1, 0, 0, 1], [1, 3, 3, 1], atol=1e-12)


@pytest.mark.parametrize('orientation', [
    {'w': 0.0}, {'x': float('nan')}, {'w': 0.1}])
def test_no_rotation_is_refused(orientation):
    with pytest.raises(ValueError, match='camera_pose.orientation: expected'):
        pose_matrix(pose(**orientation))


def test_the_nearest_within_the_slop():
    poses = Poses()
    for second in range(3):
        header = Header(stamp=Time(sec=second))
        poses.add(PoseStamped(header=header, pose=Pose(position=Point(x=float(second)))))
    assert poses.at(1.01, 0.02)[0, 3] == 1
    assert poses.at(1.5, 0.02) is None
    poses.clear()
    assert poses.at(1.0, 0.02) is None
