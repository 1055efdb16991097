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
"""The installed launch file over DDS, and a clean exit on SIGINT."""

from pathlib import Path
import re
import unittest

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ends import CleanEnd
import launch_testing
from launch_testing.actions import ReadyToTest
from node_bench import Bench
import pytest
import rclpy
from sensor_msgs.msg import CameraInfo, Image


@pytest.mark.launch_test
def generate_test_description():
    """Start the refiner as for a RealSense in a namespace."""
    share = Path(get_package_share_directory('graph_depth_refiner'))
    refiner = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(share / 'launch' / 'refiner.launch.py')),
        launch_arguments={'namespace': 'front', 'camera': 'realsense_d400',
                          'depth': 'my_depth', 'device': 'cpu'}.items())
    return LaunchDescription([refiner, ReadyToTest()])


class TestRunning(unittest.TestCase):
    """While it runs."""

    def setUp(self):
        rclpy.init()
        self.bench = Bench(namespace='front', inputs={
            'image': Image, 'depth': Image, 'camera_info': CameraInfo})
        for role, topic in {
                'image': 'color/image_raw', 'depth': 'my_depth',
                'camera_info': 'aligned_depth_to_color/camera_info'}.items():
            kind = self.bench.publishers[role].msg_type
            self.bench.publishers[role] = self.bench.node.create_publisher(kind, topic, 1)

    def tearDown(self):
        self.bench.close()
        rclpy.try_shutdown()

    def test_topics(self):
        self.bench.refines()
        names = dict(self.bench.node.get_topic_names_and_types())
        for topic in ('depth_refined/image', 'depth_refined/camera_info', 'normals/image',
                      'normals/image_color', 'points', 'depth_refined/confidence',
                      'depth_refined/provenance'):
            self.assertIn(f'/front/{topic}', names)
        self.assertNotIn('/front/disparity_refined', names)

    def test_foxglove_plots_what_is_told(self):
        layout = Path(get_package_share_directory('graph_depth_refiner'), 'config/foxglove.json')
        plotted = set(re.findall(r'key==\\"(.+?)\\"', layout.read_text()))
        self.assertGreater(len(plotted), 5)
        plotted.remove('dropped: superseded')  # there once it has happened
        self.bench.refines()
        self.bench.wait_for(
            lambda: plotted <= set(self.bench.diagnostics.get('Refinement', {})), f'{plotted}')


@launch_testing.post_shutdown_test()
class TestEnd(CleanEnd, unittest.TestCase):
    """After SIGINT."""
