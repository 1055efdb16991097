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
"""Start the refiner beside a camera."""

import os
from pathlib import Path
import shutil

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    OpaqueFunction,
    RegisterEventHandler,
    SetEnvironmentVariable,
)
from launch.event_handlers import OnProcessStart
from launch.events import matches_action
from launch_ros.actions import LifecycleNode, Node
from launch_ros.event_handlers import OnStateTransition
from launch_ros.events.lifecycle import ChangeState
from lifecycle_msgs.msg import Transition
import yaml

SHARE = Path(get_package_share_directory('graph_depth_refiner'))
CAMERAS = sorted(path.stem for path in (SHARE / 'config').glob('*.yaml'))
FLAG = ('true', 'false', 'True', 'False')  # others write Python's
ROLES = ('image', 'depth', 'disparity', 'confidence', 'camera_info', 'image_info')
POSES = {  # parameters by which the poses of the camera come, and what they are
    'fixed_frame': 'Frame of TF in which the camera moves, as odom; poses are looked up there',
    'odometry_topic': 'Odometry of the body that carries the camera, instead of TF',
    'camera_in_body': "The camera in the body of the odometry, 'x y z qx qy qz qw'; else by TF",
    'camera_pose_topic': 'PoseStamped of the camera, instead of TF',
}
PROFILE_VARIABLES = ('FASTRTPS_DEFAULT_PROFILES_FILE', 'FASTDDS_DEFAULT_PROFILES_FILE')


def arguments():
    """Declare what can be given on the command line."""
    return [
        DeclareLaunchArgument(
            'namespace', default_value='',
            description='Namespace of the node, usually that of the camera'),
        DeclareLaunchArgument(
            'name', default_value='refiner_node', description='Name of the node'),
        DeclareLaunchArgument(
            'camera', default_value='', choices=['', *CAMERAS],
            description='Preset of topics and settings for a camera, a file of config/'),
        DeclareLaunchArgument(
            'params_file', default_value='',
            description='YAML file of parameters that go before those of the preset'),
        DeclareLaunchArgument(
            'device', default_value='', description='Where to compute: auto, cpu, cuda:0, …'),
        *(DeclareLaunchArgument(
            role, default_value='', description=f"Topic to take as {role}, if not the preset's")
          for role in ROLES),
        *(DeclareLaunchArgument(name, default_value='', description=meaning)
          for name, meaning in POSES.items()),
        DeclareLaunchArgument(
            'remap', default_value='',
            description="Other names for outputs, as in 'points:=cloud normals/image:=normals'"),
        DeclareLaunchArgument(
            'use_sim_time', default_value='false', choices=FLAG,
            description='Take the time from /clock, as with recordings'),
        DeclareLaunchArgument(
            'lifecycle', default_value='false', choices=FLAG,
            description='Start the managed node, which waits to be configured and activated'),
        DeclareLaunchArgument(
            'autostart', default_value='false', choices=FLAG,
            description='Configure and activate the managed node'),
        DeclareLaunchArgument(
            'dds_profile', default_value='true', choices=FLAG,
            description='Give Fast DDS shared memory that holds images, unless it has a profile'),
        DeclareLaunchArgument('log_level', default_value='info', description='Least level to log'),
        DeclareLaunchArgument(
            'rviz', default_value='false', choices=['auto', *FLAG],
            description='Open RViz; auto: where it is installed and there is a display'),
        DeclareLaunchArgument(
            'rviz_frame', default_value='',
            description='Fixed frame of RViz, usually the frame_id of the depth images'),
    ]


def start(context):
    """Turn the arguments into the node."""
    given = context.launch_configurations
    parameters = []
    if given['camera']:
        parameters.append(str(SHARE / 'config' / f'{given["camera"]}.yaml'))
    if given['params_file']:
        parameters.append(given['params_file'])
    parameters.append({**values(given), 'use_sim_time': is_true(given['use_sim_time'])})
    managed = is_true(given['lifecycle'])
    node = (LifecycleNode if managed else Node)(
        package='graph_depth_refiner',
        executable='refiner_lifecycle_node' if managed else 'refiner_node',
        name=given['name'], namespace=given['namespace'], parameters=parameters,
        remappings=remappings(given['remap']), output='screen',
        ros_arguments=['--log-level', given['log_level']])
    starting = autostart(node) if managed and is_true(given['autostart']) else []
    # RViz first: where it is missing nothing is left running
    return [*dds_profile(is_true(given['dds_profile'])), *rviz(given), *starting, node]


def values(given):
    """Return the parameters that are given as arguments."""
    found = {f'{role}_topic': given[role] for role in ROLES if given[role]}
    found.update((name, given[name]) for name in (*POSES, 'device') if given[name])
    if given['disparity']:
        found['input_kind'] = 'disparity'
    return found


def is_true(text):
    """Read a flag."""
    return text.lower() == 'true'


def autostart(node):
    """Configure the managed node once it runs, and activate it once it is configured."""
    def change(transition):
        return EmitEvent(event=ChangeState(
            lifecycle_node_matcher=matches_action(node), transition_id=transition))

    return [
        RegisterEventHandler(OnProcessStart(
            target_action=node, on_start=[change(Transition.TRANSITION_CONFIGURE)])),
        RegisterEventHandler(OnStateTransition(
            target_lifecycle_node=node, start_state='configuring', goal_state='inactive',
            entities=[change(Transition.TRANSITION_ACTIVATE)])),
    ]


def rviz(given):
    """Return RViz, if it is wanted, with the topics of the node."""
    if not wants_rviz(given['rviz']):
        return []
    frame = ['-f', given['rviz_frame']] if given['rviz_frame'] else []
    return [Node(
        package='rviz2', executable='rviz2', namespace=given['namespace'],
        arguments=['-d', str(SHARE / 'config' / 'refiner.rviz'), *frame],
        parameters=[{'use_sim_time': is_true(given['use_sim_time'])}],
        remappings=[*topics(given).items(), *remappings(given['remap'])])]


def wants_rviz(wish):
    """Say whether RViz is wanted and, for auto, can be shown."""
    if wish != 'auto':
        return is_true(wish)
    display = os.environ.get('DISPLAY') or os.environ.get('WAYLAND_DISPLAY')
    return bool(display and shutil.which('rviz2'))


def topics(given):
    """Return the names of the topics by role: of the arguments, or of the preset."""
    values = {}
    if given['camera']:
        preset = yaml.safe_load((SHARE / 'config' / f'{given["camera"]}.yaml').read_text())
        values = preset['/**']['ros__parameters']
    return {role: given[role] or values.get(f'{role}_topic') or role
            for role in ('image', 'depth', 'disparity')}


def remappings(text):
    """Return pairs of names of `from:=to from:=to`."""
    pairs = [tuple(rule.split(':=')) for rule in text.split()]
    for pair in pairs:
        if len(pair) != 2 or not all(pair):
            raise ValueError(f'remap: expected from:=to, got {":=".join(pair)!r}')
    return pairs


def dds_profile(wanted):
    """Set the profile for large messages where none is set."""
    if not wanted or any(os.environ.get(name) for name in PROFILE_VARIABLES):
        return []
    profile = str(SHARE / 'config' / 'fastdds_large_messages.xml')
    return [SetEnvironmentVariable(name, profile) for name in PROFILE_VARIABLES]


def generate_launch_description():
    """Describe the launch."""
    return LaunchDescription([*arguments(), OpaqueFunction(function=start)])
