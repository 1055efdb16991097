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
import runpy

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

REFINER_FILE = str(Path(__file__).with_name('refiner.launch.py'))
REFINER = runpy.run_path(REFINER_FILE)
FRAME = 'camera_optical_frame'  # where the recording does not tell
OWN = ('use_sim_time', 'rviz', 'rviz_frame')  # arguments of both that mean more here


def handed_on():
    """Return the arguments of refiner.launch.py that are handed on to it."""
    return [one for one in REFINER['arguments']() if one.name not in OWN]


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
            'loop', default_value='false', choices=REFINER['FLAG'],
            description='Begin again at the end'),
        DeclareLaunchArgument(
            'player', default_value='auto', choices=['auto', 'ros2_bag', 'play_bag'],
            description='What plays: ros2 bag play where it is installed, else play_bag'),
        DeclareLaunchArgument(
            'rviz', default_value='auto', choices=['auto', *REFINER['FLAG']],
            description='Open RViz; auto: where it is installed and there is a display'),
        DeclareLaunchArgument(
            'rviz_frame', default_value='',
            description='Fixed frame of RViz; empty: the frame_id of the first depth image'),
        *handed_on(),
    ]


def player(given, shown):
    """Return what plays the recording; at its end all ends, unless it is shown."""
    end = [] if shown else [Shutdown(reason='the recording has ended')]
    loop = ['--loop'] if REFINER['is_true'](given['loop']) else []
    choice = given['player']
    if choice == 'ros2_bag' or (choice == 'auto' and installed('ros2bag')):
        return ExecuteProcess(
            cmd=['ros2', 'bag', 'play', given['bag'], '--clock', '--rate', given['rate'], *loop],
            output='screen', on_exit=end)
    return Node(
        package='graph_depth_refiner', executable='play_bag', output='screen', on_exit=end,
        arguments=[given['bag'], '--rate', given['rate'], *loop])


def depth_frame(given):
    """Return the frame_id of the first depth or disparity image of the recording."""
    names = REFINER['topics'](given)
    wanted = tuple(str(Path('/', given['namespace'], names[role])) for role in names
                   if role != 'image')
    try:
        from graph_depth_refiner.bags.bags import reading
        with reading(Path(given['bag'])) as bag:
            return next(
                (one.decoded().header.frame_id for one in bag.messages()
                 if one.topic.removesuffix('/compressedDepth') in wanted), FRAME)
    except (ImportError, OSError, ValueError):  # the player says what is wrong with it
        return FRAME


def start(context):
    """Turn the arguments into refiner, RViz and player."""
    given = context.launch_configurations
    shown = REFINER['wants_rviz'](given['rviz'])
    own = {
        'use_sim_time': 'true', 'rviz': str(shown),
        'rviz_frame': given['rviz_frame'] or (depth_frame(given) if shown else '')}
    handed = {one.name: given[one.name] for one in handed_on()}
    return [
        IncludeLaunchDescription(
            PythonLaunchDescriptionSource(REFINER_FILE),
            launch_arguments={**own, **handed}.items()),
        player(given, shown),
    ]


def generate_launch_description():
    """Describe the launch."""
    return LaunchDescription([*arguments(), OpaqueFunction(function=start)])
