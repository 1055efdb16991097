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
"""Tunables as ROS parameters, over DDS, of a node in a process of its own."""

from pathlib import Path
import subprocess
import sys

import pytest

rclpy = pytest.importorskip('rclpy')

from rcl_interfaces.msg import ParameterType  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.parameter_client import AsyncParameterClient  # noqa: E402

from graph_depth_refiner.config import RefinerConfig  # noqa: E402

NODE = [sys.executable, str(Path(__file__).parents[1] / 'parameter_node.py')]


class Tuned:
    """The running node, as another process sees it."""

    def __init__(self, process, node):
        """Wait for the parameter services."""
        self.ready = process.stdout.readline().split()
        self._process = process
        self._node = node
        self._client = AsyncParameterClient(node, 'tuned')
        assert self._client.wait_for_services(timeout_sec=30.0)

    def _wait(self, future):
        rclpy.spin_until_future_complete(self._node, future, timeout_sec=30.0)
        return future.result()

    def set_values(self, **values):
        """Set parameters and return why each was refused, empty where it was not."""
        asked = [Parameter(name, value=value) for name, value in values.items()]
        results = self._wait(self._client.set_parameters(asked)).results
        return [result.reason if not result.successful else '' for result in results]

    def get(self, name):
        """Return one parameter."""
        message = self._wait(self._client.get_parameters([name])).values[0]
        return rclpy.parameter.parameter_value_to_python(message)

    def describe(self, name):
        """Return the descriptor of one parameter."""
        return self._wait(self._client.describe_parameters([name])).descriptors[0]

    def names(self):
        """Return the names of all parameters."""
        return self._wait(self._client.list_parameters([], 10)).result.names

    def said(self):
        """Return the next line of the node."""
        return self._process.stdout.readline().strip()


@pytest.fixture(scope='module')
def tuned():
    """Start the node; a whole number is given for a number."""
    process = subprocess.Popen(
        [*NODE, '--ros-args', '-p', 'start_share:=1', '-p', 'solver.iterations:=4'],
        stdout=subprocess.PIPE, text=True)
    rclpy.init()
    node = rclpy.create_node('tuner')
    yield Tuned(process, node)
    node.destroy_node()
    rclpy.shutdown()
    process.send_signal(2)
    assert process.wait(30) == 0


def test_starts_from_defaults_and_overrides(tuned):
    assert tuned.ready == ['ready', '9', '1.0']  # the window of the preset paper
    assert tuned.get('graph.window') == 9
    assert tuned.get('solver.iterations') == 4
    assert type(tuned.get('start_share')) is float


def test_every_tunable_is_a_parameter(tuned):
    assert set(RefinerConfig.tunables()) <= set(tuned.names())


def test_descriptors_carry_meaning_and_range(tuned):
    known = RefinerConfig.tunables()
    window = tuned.describe('graph.window')
    one = known['graph.window']
    assert window.type == ParameterType.PARAMETER_INTEGER
    assert window.description == f'{one.meaning} [{one.unit}]'
    scope = window.integer_range[0]
    assert (scope.from_value, scope.to_value, scope.step) == (one.low, one.high, 2)
    weight = tuned.describe('energy.reg_lambda')
    assert weight.type == ParameterType.PARAMETER_DOUBLE
    scope = weight.floating_point_range[0]
    one = known['energy.reg_lambda']
    assert (scope.from_value, scope.to_value) == (one.low, one.high)
    solver = tuned.describe('solver.method')
    assert solver.additional_constraints == known['solver.method'].bounds
    assert tuned.describe('start_preset').read_only
    assert not solver.read_only


def test_a_change_is_applied(tuned):
    assert tuned.set_values(**{'energy.reg_lambda': 2.5}) == ['']
    assert tuned.said() == "changed ['energy.reg_lambda'] 2.5 4"
    assert tuned.get('energy.reg_lambda') == 2.5


def test_a_whole_number_is_a_number(tuned):
    assert tuned.set_values(**{'energy.reg_lambda': 3}) == ['']
    assert tuned.said() == "changed ['energy.reg_lambda'] 3.0 4"
    assert type(tuned.get('energy.reg_lambda')) is float


@pytest.mark.parametrize('name, value, parts', [
    ('energy.reg_lambda', -1.0, ('energy.reg_lambda', '0', '10000', '-1')),
    ('energy.reg_lambda', float('nan'), ('energy.reg_lambda', '0', '10000', 'nan')),
    ('energy.reg_lambda', 'much',
     ('energy.reg_lambda: expected number from 0 to 10000', "'much'")),
    ('energy.reg_lambda', True, ('energy.reg_lambda: expected number from 0 to 10000', 'True')),
    ('solver.iterations', 2.0, ('solver.iterations: expected integer from 0 to', '2.0')),
    ('solver.iterations', True, ('solver.iterations: expected integer from 0 to', 'True')),
    ('graph.window', 4, ('graph.window', '3', '15', '4', '2')),
    ('graph.window', 99, ('graph.window', '3', '15', '99')),
    ('solver.method', 'magic', ('solver.method: expected one of adam, irls', "'magic'")),
    ('start_preset', 'realtime', ('start_preset', 'read-only')),
])
def test_a_refused_value_is_told_and_the_old_kept(tuned, name, value, parts):
    before = tuned.get(name)
    reason, = tuned.set_values(**{name: value})
    assert all(part in reason for part in parts), reason
    assert tuned.get(name) == before


@pytest.mark.parametrize('setting, text', [
    ('graph.window:=4', 'refused graph.window: expected odd integer from 3 to 15, got 4'),
    ('start_share:=2.0', 'refused start_share: expected number from 0 to 1, got 2.0'),
    ('solver.method:=magic', "refused solver.method: expected one of adam, irls, got 'magic'"),
    ('start_preset:=3', 'refused start_preset: expected text, got 3 (int)'),
])
def test_a_wrong_override_stops_the_start(setting, text):
    done = subprocess.run(
        [*NODE, '--ros-args', '-p', setting], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == text


def run_until_ready(*arguments):
    """Return what a node says of its values at the start, and on stderr until it ends."""
    process = subprocess.Popen(
        [*NODE, '--ros-args', *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True)
    ready = process.stdout.readline().split()
    process.send_signal(2)
    _, said = process.communicate(timeout=30)
    return ready, said


def test_a_file_nests_groups(tmp_path):
    path = tmp_path / 'values.yaml'
    path.write_text('/**: {ros__parameters: {graph: {window: 5}, start_share: 0.75}}')
    ready, said = run_until_ready('--params-file', str(path))
    assert ready == ['ready', '5', '0.75']
    assert 'now called' not in said


def test_old_names_are_taken_at_the_start_and_said_once(tmp_path):
    path = tmp_path / 'values.yaml'
    path.write_text('/**: {ros__parameters: {graph_window: 5, iterations: 3, solver: irls}}')
    ready, said = run_until_ready('--params-file', str(path))
    assert ready[1] == '5'
    for old, new in (('graph_window', 'graph.window'), ('iterations', 'solver.iterations'),
                     ('solver', 'solver.method')):
        assert said.count(f'[tuned]: {old}: now called {new}') == 1, said
    assert said.count('now called') == 3


def test_a_new_name_goes_before_an_old_one():
    ready, _ = run_until_ready('-p', 'graph.window:=7', '-p', 'graph_window:=5')
    assert ready[1] == '7'


def test_an_old_name_is_set_as_the_new_one(tuned):
    if not hasattr(rclpy.node.Node, 'add_pre_set_parameters_callback'):
        pytest.skip('ROS 2 Humble refuses a name that is not declared before anybody is asked')
    assert tuned.set_values(reg_lambda=6.5) == ['']
    assert tuned.said() == "changed ['energy.reg_lambda'] 6.5 4"
    assert tuned.get('energy.reg_lambda') == 6.5
    assert 'reg_lambda' not in tuned.names()
    reason, = tuned.set_values(reg_lambda=-6.5)
    assert 'energy.reg_lambda' in reason
    assert tuned.get('energy.reg_lambda') == 6.5


def test_an_unknown_name_is_refused(tuned):
    reason, = tuned.set_values(**{'graph.windows': 3})
    assert 'undeclared' in reason
    assert 'graph.windows' not in tuned.names()
