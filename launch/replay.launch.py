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
"""Refine a recording while it plays, and look at it."""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory, PackageNotFoundError
from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    IncludeLaunchDescription,
    OpaqueFunction,
    Shutdown,
)
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node
import yaml

SHARE = Path(get_package_share_directory('graph_depth_refiner'))
# of refiner.launch.py, handed on; described there
HANDED_ON = ('namespace', 'camera', 'params_file', 'device', 'image', 'depth', 'disparity',
             'confidence', 'camera_info')


def installed(package):
    """Say whether a package is there."""
    try:
        get_package_share_directory(package)
    except PackageNotFoundError:
        return False
    return True


def arguments():
    """Declare what can be given on the command line."""
    return [
        DeclareLaunchArgument('bag', description='Recording to play: a folder, .mcap or .db3'),
        DeclareLaunchArgument('rate', default_value='1.0', description='Speed of playing'),
        DeclareLaunchArgument(
            'loop', default_value='false', choices=['true', 'false'],
            description='Begin again at the end'),
        DeclareLaunchArgument(
            'player', default_value='auto', choices=['auto', 'ros2_bag', 'play_bag'],
            description='What plays: ros2 bag play where it is installed, else play_bag'),
        DeclareLaunchArgument(
            'rviz', default_value='auto', choices=['auto', 'true', 'false'],
            description='Open RViz; auto: where it is installed'),
        DeclareLaunchArgument(
            'fixed_frame', default_value='camera_optical_frame',
            description='Frame of RViz, the frame_id of the depth images'),
        *(DeclareLaunchArgument(
            name, default_value='', description=f'{name} of refiner.launch.py')
          for name in HANDED_ON),
    ]


def player(given):
    """Return what plays the recording."""
    end = [] if wants_rviz(given) else [Shutdown(reason='the recording has ended')]
    choice = given['player']
    if choice == 'ros2_bag' or (choice == 'auto' and installed('ros2bag')):
        return ExecuteProcess(
            cmd=['ros2', 'bag', 'play', given['bag'], '--clock', '--rate', given['rate'],
                 *(['--loop'] if given['loop'] == 'true' else [])],
            output='screen', on_exit=end)
    return Node(
        package='graph_depth_refiner', executable='play_bag', output='screen', on_exit=end,
        arguments=[given['bag'], '--rate', given['rate'],
                   *(['--loop'] if given['loop'] == 'true' else [])])


def topics(given):
    """Return the names of image and depth, for RViz: of the arguments, or of the preset."""
    found = {}
    if given['camera']:
        preset = yaml.safe_load((SHARE / 'config' / f'{given["camera"]}.yaml').read_text())
        values = preset['/**']['ros__parameters']
        found = {role: values.get(f'{role}_topic', '') for role in ('image', 'depth')}
    return {role: given[role] or found.get(role) or role for role in ('image', 'depth')}


def wants_rviz(given):
    """Say whether RViz is to be opened."""
    return given['rviz'] == 'true' or (given['rviz'] == 'auto' and installed('rviz2'))


def start(context):
    """Turn the arguments into refiner, player and RViz."""
    given = context.launch_configurations
    actions = [
        IncludeLaunchDescription(
            PythonLaunchDescriptionSource(str(SHARE / 'launch' / 'refiner.launch.py')),
            launch_arguments={
                'use_sim_time': 'true', **{name: given[name] for name in HANDED_ON}}.items()),
        player(given),
    ]
    if wants_rviz(given):
        actions.append(Node(
            package='rviz2', executable='rviz2', namespace=given['namespace'],
            arguments=['-d', str(SHARE / 'config' / 'refiner.rviz'), '-f', given['fixed_frame']],
            parameters=[{'use_sim_time': True}], remappings=list(topics(given).items())))
    return actions


def generate_launch_description():
    """Describe the launch."""
    return LaunchDescription([*arguments(), OpaqueFunction(function=start)])
