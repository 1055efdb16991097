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
from xml.etree import ElementTree

import pytest

from graph_depth_refiner.cli import main as cli

ROOT = Path(__file__).parent.parent


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
