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
"""The node over DDS with poses of a topic that come after the frames they belong to."""

from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from node_bench import INPUTS, parameters, running
import pytest
from rclpy.time import Time

LATE = 0.02  # seconds after its frame
GIVEN = {
    'camera_pose': (PoseStamped, {'camera_pose_topic': 'pose'}),
    'odometry': (Odometry, {'odometry_topic': 'pose', 'camera_in_body': '0.1 0 0.3 0 0 0 1'}),
}


@pytest.mark.parametrize('timeout', [1.0, 0.0])
@pytest.mark.parametrize('role', GIVEN)
def test_late_poses_are_awaited(role, timeout):
    """The pose after a frame comes after it: of use only to who waits."""
    kind, settings = GIVEN[role]
    arguments = parameters(**settings, device='cpu', pose_timeout=timeout, use_confidence='never')
    with running(*arguments, inputs={**INPUTS, 'pose': kind}) as (process, bench):
        bench.refines()
        wanted = 'poses used' if timeout else 'poses unknown'
        before = bench.account(wanted)

        def sent():
            now = bench.now()
            publish(bench, kind, now - 10 ** 7)  # 10 ms before the frame
            bench.send(now)
            if timeout:
                bench.spin(LATE)
            else:
                bench.wait_for(lambda: now in bench.heard['depth_refined/image'], 'the frame')
            publish(bench, kind, now + 10 ** 7)
            bench.spin(0.1)
            return bench.account(wanted) > before + 5

        bench.wait_for(sent, f'more {wanted}')
        assert timeout or bench.account('poses used') == 0
        assert process.end()[0] == 0


def publish(bench, kind, stamp):
    """Send a pose of a camera that does not move."""
    message = kind()
    message.header.stamp = Time(nanoseconds=stamp).to_msg()
    bench.publishers['pose'].publish(message)
