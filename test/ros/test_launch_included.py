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
"""Launch files in XML and YAML include ours, over DDS; flags are those of Python in one."""

import os
from pathlib import Path
import tempfile
import unittest

from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource
from launch_ends import CleanEnd
import launch_testing
from launch_testing.actions import ReadyToTest
from node_bench import Bench, call
import pytest
from rcl_interfaces.srv import GetParameters
import rclpy

FILE = '$(find-pkg-share graph_depth_refiner)/launch/refiner.launch.py'
XML = f"""
<launch>
  <group>
    <push_ros_namespace namespace="outer"/>
    <include file="{FILE}">
      <arg name="namespace" value="managed"/>
      <arg name="lifecycle" value="true"/>
      <arg name="autostart" value="true"/>
      <arg name="device" value="cpu"/>
    </include>
  </group>
</launch>
"""
YAML = f"""
launch:
- include:
    file: "{FILE}"
    arg:
    - {{name: namespace, value: plain}}
    - {{name: lifecycle, value: "False"}}
    - {{name: autostart, value: "False"}}
    - {{name: use_sim_time, value: "True"}}
    - {{name: log_level, value: warn}}
    - {{name: device, value: cpu}}
"""


@pytest.mark.launch_test
def generate_test_description():
    """Start a managed node from XML and a plain one from YAML."""
    folder = Path(tempfile.mkdtemp(dir=os.environ.get('ROS_LOG_DIR')))
    includes = []
    for name, text in ('managed.launch.xml', XML), ('plain.launch.yaml', YAML):
        (folder / name).write_text(text)
        includes.append(IncludeLaunchDescription(AnyLaunchDescriptionSource(str(folder / name))))
    return LaunchDescription([*includes, ReadyToTest()])


class TestRunning(unittest.TestCase):
    """While they run."""

    def setUp(self):
        rclpy.init()

    def tearDown(self):
        rclpy.try_shutdown()

    def refines(self, namespace):
        """See a frame refined, and return whether the node takes its time from /clock."""
        bench = Bench(namespace=namespace)
        try:
            bench.refines()
            answer = call(
                bench, GetParameters, f'{namespace}/refiner_node/get_parameters',
                GetParameters.Request(names=['use_sim_time']))
            return answer.values[0].bool_value
        finally:
            bench.close()

    def test_the_managed_node_is_active(self):
        self.assertFalse(self.refines('/outer/managed'))

    def test_the_plain_node_has_simulated_time(self):
        self.assertTrue(self.refines('/plain'))


@launch_testing.post_shutdown_test()
class TestEnd(CleanEnd, unittest.TestCase):
    """After SIGINT."""
