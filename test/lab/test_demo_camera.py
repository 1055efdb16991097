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
"""The demo's camera publishes what its sensor gives, and no topic beyond."""

import pytest

rclpy = pytest.importorskip('rclpy')


@pytest.mark.parametrize(('sensor', 'count'), [('active-stereo', 0), ('tof', 1)])
def test_confidence_is_a_topic_only_where_the_sensor_gives_one(sensor, count):
    # a refiner waits for a confidence that somebody publishes, whether or not any comes
    from graph_depth_refiner.lab.demo.camera import DemoCamera
    rclpy.init(args=[
        '--ros-args', '-r', '__ns:=/test_demo_camera', '-p', f'sensor:={sensor}',
        '-p', 'frames:=1', '-p', 'size:=[32, 24]'])
    try:
        node = DemoCamera()
        assert node.count_publishers('depth') == 1
        assert node.count_publishers('confidence') == count
        node.destroy_node()
    finally:
        rclpy.try_shutdown()


def test_an_unknown_sensor_is_one_sentence():
    from graph_depth_refiner.lab.demo.sources import synthetic
    with pytest.raises(ValueError, match='^sensor: expected one of .*, got .sonar.$'):
        synthetic(0, (32, 24), 1, 'sonar', 'clutter')
