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
"""scripts/launch runs, describes and refuses like `ros2 launch`, where there is none."""

import os
from pathlib import Path
import signal
import subprocess
import sys

import pytest

pytest.importorskip('launch')

SCRIPT = Path(__file__).parents[2] / 'scripts' / 'launch_file.py'
LAUNCH_FILE = '''
import sys
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess
from launch.substitutions import LaunchConfiguration

CODE = """
import sys, time
try:
    print('word', sys.argv[1], flush=True)
    time.sleep(float(sys.argv[2]))
except KeyboardInterrupt:
    pass
"""


def generate_launch_description():
    return LaunchDescription([
        DeclareLaunchArgument('word', default_value='none', description='What to say'),
        DeclareLaunchArgument('seconds', default_value='0', description='How long to stay'),
        ExecuteProcess(
            cmd=[sys.executable, '-c', CODE, LaunchConfiguration('word'),
                 LaunchConfiguration('seconds')], output='screen')])
'''


@pytest.fixture
def launch_file(tmp_path):
    """Write a launch file with one process that says a word and stays a while."""
    path = tmp_path / 'say.launch.py'
    path.write_text(LAUNCH_FILE)
    return str(path)


def launch(*arguments):
    """Run scripts/launch inside the environment."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=60)


def test_runs_with_arguments(launch_file):
    done = launch(launch_file, 'word:=hello')
    assert done.returncode == 0, done.stderr
    assert 'word hello' in done.stdout


def test_shows_arguments(launch_file):
    done = launch(launch_file, '--show-args')
    assert done.returncode == 0, done.stderr
    assert [line.strip() for line in done.stdout.splitlines() if line.strip()][1:] == [
        'word', 'What to say', "(default: 'none')",
        'seconds', 'How long to stay', "(default: '0')"]


@pytest.mark.parametrize('arguments, text', [
    (['wrod:=hello'], 'wrod: unknown argument, expected one of word, seconds'),
    (['hello'], "argument: expected name:=value, got 'hello'"),
])
def test_refuses_wrong_arguments(launch_file, arguments, text):
    done = launch(launch_file, *arguments)
    assert done.returncode == 2
    assert done.stderr == f'scripts/launch: {text}\n'


def test_refuses_an_unknown_file():
    done = launch('nothing.launch.py')
    assert done.returncode == 2
    assert 'launch file: expected a path or one of' in done.stderr
    assert done.stderr.count('\n') == 1


def test_a_file_of_other_content_is_said_in_one_line(tmp_path):
    path = tmp_path / 'wrong.launch.py'
    path.write_text('x = 1\n')
    done = launch(str(path))
    assert done.returncode == 1
    assert 'Traceback' not in done.stderr


def test_ends_cleanly_on_sigint(launch_file):
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), launch_file, 'seconds:=60'], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    said = ''
    for line in process.stdout:
        said += line
        if 'word none' in line:
            os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: the whole group
            break
    said += process.stdout.read()
    assert process.wait(60) == 0, said
    assert 'Traceback' not in said
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)  # nobody of the group is left
