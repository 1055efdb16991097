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
"""The set-up step: what it takes from the wheel, what it remembers, how it fails."""

import hashlib
import os
from pathlib import Path
import subprocess
import sys
import zipfile

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))

import environment  # noqa: E402, I100
import pip_install  # noqa: E402
import upstream  # noqa: E402

BSD = '# Copyright (c) 2009, Somebody.\n# Redistribution and use in source and binary forms\n'


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """Make a small wheel of the shape of the large one, and take it as the pinned one."""
    monkeypatch.setattr(upstream, 'PACKAGES', ('launch', 'message_filters'))
    path = tmp_path / upstream.WHEEL
    with zipfile.ZipFile(path, 'w') as archive:
        for name, text in {
            'rclpy/launch/__init__.py': '',
            'rclpy/launch/native.so': 'machine code of another Python',
            'rclpy/launch-3.4.11-py3.12.egg-info/entry_points.txt':
                '[console_scripts]\nsay = os:getcwd\n',
            'rclpy/message_filters/__init__.py': BSD + '\nx = 1\n',
            'rclpy/message_filters-4.11.17-py3.12.egg-info/PKG-INFO': 'Version: 4.11.17\n',
            'rclpy/launch_proprietary/__init__.py': '',
            'rclpy/launch_testing_ros_pytest_entrypoint.py': '',
            'rclpy/ament_copyright/template/apache2_license.txt': 'Apache License',
            'share/launch/package.xml': '<license>Apache License 2.0</license>',
            'share/launch/frontend/grammar.lark': 'start: ',
            'share/launch/package.sh': '',
            'share/message_filters/package.xml': '<license>BSD</license>',
        }.items():
            archive.writestr(upstream.JAZZY + name, text)
        archive.writestr('isaacsim/other.py', '')
    monkeypatch.setattr(upstream, 'SHA256', hashlib.sha256(path.read_bytes()).hexdigest())
    return path


class FakePip:
    """A pip that downloads what it was given."""

    def __init__(self, content):
        """Remember the content and count the downloads."""
        self.content = content
        self.downloads = 0

    def download(self, folder, *arguments):
        """Write the content to where pip would."""
        self.downloads += 1
        (folder / upstream.WHEEL).write_bytes(self.content)


def test_takes_only_the_named_packages_with_their_licences(wheel, tmp_path):
    venv = tmp_path / 'venv'
    site = venv / 'lib' / 'python3.11' / 'site-packages'
    site.mkdir(parents=True)
    (venv / 'bin').mkdir()
    upstream.install(venv, wheel)
    files = {str(path.relative_to(venv)) for path in venv.rglob('*') if path.is_file()}
    inside = 'lib/python3.11/site-packages'
    assert files == {
        f'{inside}/launch/__init__.py',
        f'{inside}/launch-3.4.11-py3.12.egg-info/entry_points.txt',
        f'{inside}/launch-3.4.11-py3.12.egg-info/LICENSE',
        f'{inside}/message_filters/__init__.py',
        f'{inside}/message_filters-4.11.17-py3.12.egg-info/PKG-INFO',
        f'{inside}/message_filters-4.11.17-py3.12.egg-info/LICENSE',
        f'{inside}/launch_testing_ros_pytest_entrypoint.py',
        'share/launch/package.xml', 'share/launch/frontend/grammar.lark',
        'share/message_filters/package.xml',
        'share/ament_index/resource_index/packages/launch',
        'share/ament_index/resource_index/packages/message_filters',
        'bin/say',
    }
    assert (site / 'launch-3.4.11-py3.12.egg-info/LICENSE').read_text() == 'Apache License'
    assert BSD in (site / 'message_filters-4.11.17-py3.12.egg-info/LICENSE').read_text()
    assert os.access(venv / 'bin' / 'say', os.X_OK)


def test_downloads_the_wheel_once(wheel, tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    pip = FakePip(wheel.read_bytes())
    kept = upstream.fetch(pip)
    assert upstream.fetch(pip) == kept
    assert pip.downloads == 1
    kept.write_bytes(b'half a file')  # as an interrupted copy would leave it
    assert upstream.fetch(pip).read_bytes() == wheel.read_bytes()
    assert pip.downloads == 2


def test_refuses_another_wheel(wheel, tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    with pytest.raises(pip_install.Failure, match='expected the SHA-256 .*, got another file'):
        upstream.fetch(FakePip(b'something else'))
    assert list((tmp_path / 'cache').rglob('*.whl')) == []


@pytest.mark.parametrize('words, reason', [
    ('OSError: [Errno 28] No space left on device', 'disk: it is full'),
    ('WARNING: Retrying … Temporary failure in name resolution', 'network: '),
    ("ProxyError('Cannot connect to proxy.')", 'network: '),
    ('PermissionError: [Errno 13] Permission denied', 'disk: no permission'),
    ('ERROR: Could not build wheels', ''),
])
def test_names_the_reason_of_a_failure(words, reason):
    assert pip_install.explain(words).startswith(reason)
    assert bool(pip_install.explain(words)) == bool(reason)


def test_a_folder_without_stamp_is_not_trusted(tmp_path):
    folder = tmp_path / 'venv'
    folder.mkdir()
    (folder / (environment.STAMP + '.new')).write_text('key')  # interrupted before the rename
    assert environment._stamp(folder) == ''
    environment._write_stamp(folder, 'key')
    assert environment._stamp(folder) == 'key'
    environment._remove(folder)
    assert not folder.exists()


def test_the_digest_sees_contents_and_surroundings(tmp_path):
    file = tmp_path / 'requirements.txt'
    file.write_text('a')
    first = environment._digest([file], extra=('3.11',))
    assert environment._digest([file], extra=('3.11',)) == first
    assert environment._digest([file], extra=('3.12',)) != first
    file.write_text('b')
    assert environment._digest([file], extra=('3.11',)) != first


def test_an_unsuitable_python_is_said_in_one_sentence(tmp_path):
    old = tmp_path / 'python3'
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.8.18 || exit 1\n')
    old.chmod(0o755)
    done = subprocess.run(
        ['bash', str(ROOT / 'scripts' / 'setup')], capture_output=True, text=True,
        env={'PATH': os.environ['PATH'], 'PYTHON': str(old), 'HOME': str(tmp_path)})
    assert done.returncode == 1
    assert done.stderr == (f'scripts/setup: expected Python 3.10 to 3.14 with the venv module as '
                           f'{old}, got Python 3.8.18\n')


@pytest.mark.parametrize('there, pins', [
    ({'numpy': '1.21.5', 'lark': '1.0', 'pytest': '7.4'}, ['tqdm==1', 'numpy==1.21.5']),
    ({'numpy': '1.26.4', 'pytest': '6.2.5', 'lark': '1', 'tqdm': '4'},
     ['pytest==7.4.4', 'numpy==1.26.4']),
    ({'tqdm': '4', 'pytest': '8.1'},
     ['numba==0.68.1', 'llvmlite==0.50.0', 'numpy==2.4.6', 'lark==1.3.1'])])
def test_pins_go_with_what_is_there(monkeypatch, there, pins):
    monkeypatch.setattr(pip_install, '_installed', there.get)
    assert pip_install.kept_pins([
        'numba==0.68.1', 'llvmlite==0.50.0', 'numpy==2.4.6', 'lark==1.3.1', 'tqdm==1',
        'pytest==7.4.4']) == pins


def test_every_requirement_names_its_module():
    lines = (ROOT / 'scripts' / 'requirements.txt').read_text().splitlines()
    requirements = [line for line in lines if line and not line.startswith('#')]
    assert all(line.partition('  # ')[2].isidentifier() for line in requirements)


def test_everything_is_pinned():
    text = (ROOT / 'scripts' / 'constraints.txt').read_text().lower().replace('_', '-')
    pinned = {line.partition('==')[0] for line in text.splitlines() if '==' in line}
    lines = (ROOT / 'scripts' / 'requirements.txt').read_text().lower().splitlines()
    for line in lines:
        if line and not line.startswith('#'):
            name = line.partition('  # ')[0].split('=')[0].split('<')[0].split('[')[0]
            assert name.replace('_', '-') in pinned
