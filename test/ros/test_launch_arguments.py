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
"""The launch files agree on their arguments, and find out what is not given."""

import os
from pathlib import Path
import runpy
import shutil
import signal
import subprocess
import sys

from bag_helpers import write_bag
import pytest

from graph_depth_refiner.bags.make_bag import DEPTH_TOPIC, OPTICAL_FRAME
from graph_depth_refiner.config import NodeConfig

pytest.importorskip('launch_ros')

LAUNCH = Path(__file__).parents[2] / 'launch'


def load(name):
    """Return what a launch file defines."""
    return runpy.run_path(str(LAUNCH / f'{name}.launch.py'))


def given(**values):
    """Return the arguments of a replay, some of them given."""
    defaults = dict.fromkeys(('camera', 'namespace', 'image', 'depth', 'disparity', 'bag'), '')
    return {**defaults, **values}


def test_a_replay_describes_the_arguments_of_the_refiner():
    def described(name):
        return {one.name: (one.description, one.choices) for one in load(name)['arguments']()}

    refiner, replay = described('refiner'), described('replay')
    own = set(load('replay')['OWN'])
    assert own < set(refiner)
    assert {name: refiner[name] for name in set(refiner) - own}.items() <= replay.items()


@pytest.mark.parametrize('text, truth', [
    ('true', True), ('True', True), ('false', False), ('False', False)])
def test_flags_are_written_as_in_yaml_or_as_in_python(text, truth):
    refiner = load('refiner')
    assert text in refiner['FLAG']
    assert refiner['is_true'](text) == truth


@pytest.mark.parametrize('wish, display, shown', [
    ('true', '', True), ('False', ':0', False), ('auto', '', False), ('auto', ':0', True)])
def test_rviz_is_opened_where_it_can_be_seen(tmp_path, monkeypatch, wish, display, shown):
    (tmp_path / 'rviz2').touch(0o755)
    monkeypatch.setenv('PATH', str(tmp_path))
    monkeypatch.setenv('DISPLAY', display)
    monkeypatch.delenv('WAYLAND_DISPLAY', raising=False)
    assert load('refiner')['wants_rviz'](wish) == shown


@pytest.mark.skipif(shutil.which('rviz2') is not None, reason='RViz is installed')
def test_where_rviz_is_missing_nothing_is_left_running():
    name = f'without_rviz_{os.getpid()}'
    ended = subprocess.run(
        [sys.executable, str(LAUNCH.parent / 'scripts' / 'launch_file.py'), 'refiner.launch.py',
         'rviz:=true', f'name:={name}'], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1 and "package 'rviz2' not found" in ended.stdout + ended.stderr
    left = [one.parent.name for one in Path('/proc').glob('[0-9]*/cmdline')
            if name.encode() in read(one)]
    for process in left:
        os.kill(int(process), signal.SIGKILL)
    assert not left


def read(path):
    """Return the contents of a file that may vanish."""
    try:
        return path.read_bytes()
    except OSError:
        return b''


def test_topics_and_poses_are_parameters_of_the_node():
    refiner = load('refiner')
    nothing = dict.fromkeys((one.name for one in refiner['arguments']()), '')
    assert refiner['values'](nothing) == {}
    asked = {'image_info': 'color/camera_info', 'fixed_frame': 'odom', 'odometry_topic': '/odom',
             'camera_in_body': '0 0 1 0 0 0 1', 'camera_pose_topic': 'pose', 'disparity': 'd'}
    assert refiner['values']({**nothing, **asked}) == {
        'image_info_topic': 'color/camera_info', 'fixed_frame': 'odom', 'odometry_topic': '/odom',
        'camera_in_body': '0 0 1 0 0 0 1', 'camera_pose_topic': 'pose', 'disparity_topic': 'd',
        'input_kind': 'disparity'}
    known = {one.name for one in NodeConfig.tunables().values()}
    assert known >= {*refiner['POSES'], *(f'{role}_topic' for role in refiner['ROLES'])}


def test_outputs_can_be_remapped():
    remappings = load('refiner')['remappings']
    assert remappings('') == []
    assert remappings('points:=cloud a/b:=c') == [('points', 'cloud'), ('a/b', 'c')]


@pytest.mark.parametrize('rule', ['points', 'points:=', ':=cloud', 'a:=b:=c'])
def test_a_remapping_that_is_none_is_refused(rule):
    with pytest.raises(ValueError, match=f"remap: expected from:=to, got '{rule}'"):
        load('refiner')['remappings'](rule)


@pytest.mark.parametrize('compressed', [False, True])
@pytest.mark.parametrize('names', [
    {'depth': DEPTH_TOPIC}, {'depth': 'depth/image', 'namespace': 'camera'},
    {'depth': 'depth/image', 'namespace': '/camera'}], ids=str)
def test_the_frame_of_rviz_is_that_of_the_depth(tmp_path, names, compressed):
    bag = str(write_bag(tmp_path / 'bag', 2, compressed=compressed))
    assert load('replay')['depth_frame'](given(bag=bag, **names)) == OPTICAL_FRAME


def test_without_a_depth_there_is_a_usual_frame(tmp_path):
    replay = load('replay')
    bag = str(write_bag(tmp_path / 'bag', 2))
    assert replay['depth_frame'](given(bag=bag, depth='elsewhere')) == replay['FRAME']
    assert replay['depth_frame'](given(bag=str(tmp_path / 'nowhere'))) == replay['FRAME']


@pytest.mark.parametrize('variable', [
    'FASTRTPS_DEFAULT_PROFILES_FILE', 'FASTDDS_DEFAULT_PROFILES_FILE'])
def test_a_profile_that_is_set_is_kept(monkeypatch, variable):
    for name in load('refiner')['PROFILE_VARIABLES']:
        monkeypatch.delenv(name, raising=False)
    dds_profile = load('demo')['REFINER']['dds_profile']
    assert len(dds_profile(True)) == 2
    monkeypatch.setenv(variable, 'mine.xml')
    assert not dds_profile(True)
