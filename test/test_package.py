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
"""The package's own papers agree with each other."""

import ast
from pathlib import Path
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
import yaml

from graph_depth_refiner.cli import main as cli

ROOT = Path(__file__).parent.parent
PACKAGE = 'graph_depth_refiner'


def manifest():
    """Return the root of package.xml."""
    return ElementTree.parse(ROOT / 'package.xml').getroot()


def setup_py(name):
    """Return a literal of setup.py: a constant or a keyword of setup()."""
    for node in ast.walk(ast.parse((ROOT / 'setup.py').read_text())):
        if isinstance(node, ast.keyword) and node.arg == name:
            return ast.literal_eval(node.value)
        if isinstance(node, ast.Assign) and node.targets[0].id == name:
            return ast.literal_eval(node.value)
    raise KeyError(name)


def test_versions_agree():
    version = manifest().findtext('version')
    assert setup_py('version') == version
    assert f"release = '{version}'" in (ROOT / 'docs' / 'conf.py').read_text()
    assert f'\nversion: {version}\n' in (ROOT / 'CITATION.cff').read_text()
    changes = (ROOT / 'CHANGELOG.rst').read_text()
    assert re.search(r'^(\d+\.\d+\.\d+) \(', changes, re.MULTILINE)[1] == version


def test_licences_agree():
    assert manifest().findtext('license') == setup_py('license') == 'Apache-2.0'
    text = (ROOT / 'LICENSE').read_text()
    assert 'Apache License' in text
    assert 'END OF TERMS AND CONDITIONS' in text


def test_manifest_is_valid():
    package = pytest.importorskip('catkin_pkg.package')
    warnings = []
    package.parse_package(str(ROOT / 'package.xml'), warnings=warnings)
    assert warnings == []


@pytest.mark.parametrize('distribution, there', [
    ('humble', True), ('jazzy', False), ('kilted', False), ('lyrical', True), ('rolling', True)])
def test_numba_is_asked_of_apt_where_apt_has_it(distribution, there):
    package = pytest.importorskip('catkin_pkg.package').parse_package(str(ROOT / 'package.xml'))
    package.evaluate_conditions({'ROS_DISTRO': distribution})
    asked = {one.name for one in package.exec_depends if one.evaluated_condition}
    assert ('python3-numba' in asked) == there


def imported(folders):
    """Return the modules that the files below some folders import, by their first name."""
    found = set()
    for path in (path for folder in folders for path in (ROOT / folder).rglob('*.py')):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition('.')[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module.partition('.')[0])
    return found - set(sys.stdlib_module_names) - {PACKAGE}


def test_dependencies_are_what_is_imported():
    keys = {'cv2': 'python3-opencv', 'llvmlite': 'python3-numba', 'tf2_ros': 'tf2_ros_py',
            'yaml': 'python3-yaml',
            **{name: f'python3-{name}' for name in ('numba', 'numpy', 'tqdm')}}
    optional = {'torch', 'triton', 'rosbags', 'ruamel', 'distributed', 'OpenEXR', 'pyrealsense2',
                'pycolmap', 'rerun'}
    needed = {keys.get(name, name) for name in imported([PACKAGE, 'launch']) - optional}
    assert needed == {one.text for one in manifest().iter('exec_depend')}


@pytest.mark.parametrize('path', [
    *sorted((ROOT / '.github').rglob('*.yml')), ROOT / 'rosdoc2.yaml',
    ROOT / '.devcontainer/devcontainer.json'], ids=lambda path: path.name)
def test_files_of_the_release_are_well_formed(path):
    assert all(list(yaml.safe_load_all(path.read_text())))  # JSON is YAML too


def test_ci_runs_on_every_distribution():
    jobs = yaml.safe_load((ROOT / '.github/workflows/ci.yml').read_text())['jobs']
    tried = [one['distro'] for one in jobs['ros']['strategy']['matrix']['include']]
    assert tried == ['humble', 'jazzy', 'kilted', 'rolling']
    for run in re.findall(r'run: (\.?\w+/\w+)', (ROOT / '.github/workflows/ci.yml').read_text()):
        assert (ROOT / run).is_file(), run


def test_every_command_has_an_executable():
    executables = set(setup_py('COMMANDS')) - {'graph_depth_refiner'}
    assert executables == {name.split()[0].replace('-', '_') for name in cli.COMMANDS}


def test_extras_are_what_the_environment_holds():
    text = (ROOT / 'scripts/requirements.txt').read_text()
    held = re.findall(r'^[\w.\[\]-]+', text, re.MULTILINE)
    optional = {name for names in setup_py('EXTRAS').values() for name in names}
    # they need libusb and a machine it is built for; have no build for ARM; need 0.5 GB
    assert optional - set(held) == {'pyrealsense2', 'pycolmap', 'rerun-sdk'}


def test_every_executable_has_its_module():
    text = (ROOT / 'setup.py').read_text()
    for module in re.findall(r'= (graph_depth_refiner[\w.]+):main', text):
        assert (ROOT / (module.replace('.', '/') + '.py')).is_file(), module


@pytest.mark.parametrize('name', ['setup', 'run', 'test', 'launch', 'demo', '../.ci/run'])
def test_scripts_are_executable_and_parse(name):
    path = ROOT / 'scripts' / name
    assert path.stat().st_mode & 0o111
    subprocess.run(['bash', '-n', path], check=True)
