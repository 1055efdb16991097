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
"""Start a demo camera, the refiner and a monitor that compares what goes in and comes out."""

import os
from pathlib import Path
import runpy

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    OpaqueFunction,
    RegisterEventHandler,
)
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from graph_depth_refiner.lab.synthetic.scene import ROOMS
from graph_depth_refiner.lab.synthetic.sensors import SENSORS
from graph_depth_refiner.lab.synthetic.stream import COMMAND_ROOM, COMMAND_SENSOR

PACKAGE = 'graph_depth_refiner'
REFINER = runpy.run_path(str(Path(__file__).with_name('refiner.launch.py')))
ARGUMENTS = (
    ('source', 'synthetic', 'where frames come from: synthetic, bag or folder'),
    ('path', '', 'recording or TUM folder'),
    ('size', '320x240', 'width and height of synthetic frames'),
    ('rate', '10.0', 'frames a second'),
    ('seed', '0', 'of the synthetic room'),
    ('sensor', COMMAND_SENSOR, 'that measures it: ' + ', '.join(SENSORS)),
    ('room', COMMAND_ROOM, 'what is in it: ' + ', '.join(ROOMS)),
    ('frames', '30', 'frames that are played to and fro'),
    ('seconds', '8.0', 'how long to compare'),
    ('png', 'demo.png', 'where to write the panel'),
    ('result', '', 'where to write the table as JSON'),
    ('web', '-1', 'port on localhost for the live panel; 0 any, -1 none'),
    ('rerun', '', 'viewer, or an .rrd file for it; empty: none (needs rerun-sdk)'),
    ('rviz', 'auto', 'open RViz: auto (where it and a display are), true or false'),
    ('namespace', 'demo', 'of all nodes'),
)


def generate_launch_description():
    """Declare the arguments and start the nodes."""
    return LaunchDescription([
        *(DeclareLaunchArgument(name, default_value=default, description=meaning)
          for name, default, meaning in ARGUMENTS),
        OpaqueFunction(function=start),
    ])


def start(context):
    """Return what to run, the arguments known."""
    values = {name: LaunchConfiguration(name).perform(context) for name, _, _ in ARGUMENTS}
    share = get_package_share_directory(PACKAGE)
    common = {'package': PACKAGE, 'namespace': values['namespace'], 'output': 'screen'}
    width, _, height = values['size'].partition('x')
    rate = float(values['rate'])
    monitor = Node(executable='demo_monitor', output_format='{line}', parameters=[{
        'seconds': float(values['seconds']), 'rate': rate, 'png': values['png'],
        'result': values['result'], 'web': int(values['web']),
        'rerun': values['rerun']}], **common)
    camera = Node(executable='demo_camera', parameters=[{
        'source': values['source'], 'path': values['path'], 'rate': rate,
        'seed': int(values['seed']), 'frames': int(values['frames']),
        'sensor': values['sensor'], 'room': values['room'],
        'size': [int(width), int(height)]}], **common)
    refiner = Node(executable='refiner_node', **common)
    rviz = [Node(
        package='rviz2', executable='rviz2', namespace=values['namespace'],
        arguments=['-d', os.path.join(share, 'config', 'refiner.rviz')])]
    if not REFINER['wants_rviz'](values['rviz']):
        rviz = []
    # RViz first: where it is missing nothing is left running
    return [*REFINER['dds_profile'](True), *rviz, camera, refiner, monitor, *(
        RegisterEventHandler(OnProcessExit(
            target_action=node, on_exit=[EmitEvent(event=Shutdown(reason='the demo is over'))]))
        for node in (monitor, camera))]
