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
"""Test the demo as a user runs it: real nodes through the launch file, over DDS."""

import argparse
import json
import os
import signal
import subprocess
import sys

from bag_helpers import write_bag
import cv2
import pytest

from graph_depth_refiner.lab.demo.command import add_arguments, launch_arguments

FAST = ('--rate', '5', '--seconds', '3')


def demo(tmp_path, *options):
    """Run the demo; return its exit code, what it printed, and the table."""
    done = subprocess.run(
        [sys.executable, '-m', 'graph_depth_refiner', 'demo', '--out', str(tmp_path / 'demo.png'),
         '--json', str(tmp_path / 'demo.json'), *FAST, *options],
        capture_output=True, text=True, timeout=150, cwd=tmp_path)
    table = tmp_path / 'demo.json'
    return done.returncode, done.stdout + done.stderr, (
        json.loads(table.read_text()) if table.exists() else None)


def test_synthetic_camera(tmp_path):
    pytest.importorskip('rclpy')
    code, said, table = demo(tmp_path, '--size', '96x72')
    assert table is not None, said
    assert set(table['rows']) == {'input', 'RealSense-style', 'refined'}
    refined = table['rows']['refined']
    assert refined['latency_ms'] > 0
    assert refined['drops'] >= 0
    assert code == (0 if table['better'] else 1)
    assert 'depth error %' in said
    assert 'Traceback' not in said
    size = os.path.getsize(tmp_path / 'demo.png')
    assert cv2.imread(str(tmp_path / 'demo.png')).ndim == 3
    assert size < 500_000


def test_recording(tmp_path):
    pytest.importorskip('rclpy')
    source = write_bag(tmp_path / 'bag', 6)
    _, said, table = demo(tmp_path, '--bag', str(source))
    assert table is not None, said
    assert table['frames'] > 0
    assert table['rows']['input']['normal_error_deg'] is None  # no truth of that in a recording


def test_a_recording_that_is_not_there_is_one_sentence(tmp_path):
    code, said, _ = demo(tmp_path, '--bag', str(tmp_path / 'nowhere'))
    assert code == 2
    assert said.count('\n') == 1
    assert 'expected a recording or a folder, got nothing there' in said


@pytest.mark.parametrize(('options', 'words'), [
    (('--rate', '0'), 'rate: expected a positive number, got 0'),
    (('--seconds', 'nan'), 'seconds: expected a positive number, got nan'),
    (('--size', '320'), "size: expected WxH such as 320x240, got '320'"),
    (('--out', 'nowhere/demo.png'), "out: expected a file that can be written, got 'nowhere/"),
    (('--json', 'nowhere/demo.json'), 'json: expected a file that can be written'),
    (('--rerun', 'nowhere/demo.rrd'), 'rerun: expected '),  # the package, or such a file
])
def test_what_is_wrong_is_said_at_the_start(tmp_path, options, words):
    code, said, _ = demo(tmp_path, *options)
    assert code == 2
    assert said.count('\n') == 1
    assert words in said


def test_it_ends_by_sigterm_in_the_background_of_a_script(tmp_path):
    pytest.importorskip('rclpy')
    # a shell without job control starts what is in the background with SIGINT ignored
    run = subprocess.Popen(
        [sys.executable, '-m', 'graph_depth_refiner', 'demo', '--size', '96x72',
         '--out', str(tmp_path / 'demo.png'), '--seconds', '60'],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    for line in run.stdout:
        if 'frames at' in line:
            break
    run.send_signal(signal.SIGTERM)
    run.stdout.read()  # to the end: nobody is left who could write
    assert run.wait() != 0


def test_what_is_not_given_is_left_to_the_launch_file(tmp_path):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    arguments = launch_arguments(parser.parse_args(['--folder', str(tmp_path)]), tmp_path / 'r')
    assert arguments['source'] == 'folder'
    assert arguments['path'] == str(tmp_path.resolve())
    assert 'size' not in arguments
    assert launch_arguments(parser.parse_args(['--web']), tmp_path)['web'] == '8080'
