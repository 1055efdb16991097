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
"""The command line says errors in one sentence and imports only what it needs."""

from importlib import import_module
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from graph_depth_refiner.cli import main as cli


@pytest.fixture
def command(monkeypatch):
    """Put a command in whose work the test gives."""
    def put(work, name='work'):
        module = SimpleNamespace(
            add_arguments=cli.add_config_arguments, run=lambda args: work(args))
        monkeypatch.setitem(sys.modules, 'the_work', module)
        monkeypatch.setitem(cli.COMMANDS, name, ('the_work', 'do the work'))
    return put


def raising(error):
    """Return work that fails."""
    def work(args):
        raise error
    return work


def test_runs_a_command_with_its_configuration(command):
    seen = []
    command(lambda args: seen.append(cli.config_from(args)))
    assert cli.main(['work', '--preset', 'paper', '--set', 'solver.iterations=7']) == 0
    assert (seen[0].graph.window, seen[0].solver.iterations) == (9, 7)


def test_returns_the_exit_code(command):
    command(lambda args: 3)
    assert cli.main(['work']) == 3


@pytest.mark.parametrize('error, code, text', [
    (ValueError('depth: expected metres, got feet'), 2, 'depth: expected metres, got feet'),
    (FileNotFoundError(2, 'No such file or directory', 'a.png'), 1,
     'a.png: No such file or directory'),
    (ModuleNotFoundError('No module named nothing', name='nothing'), 1,
     'nothing: expected an installed Python module, got none'),
])
def test_says_user_errors_in_one_line(command, capsys, error, code, text):
    command(raising(error))
    assert cli.main(['work']) == code
    assert capsys.readouterr().err == f'graph_depth_refiner: {text}\n'


def test_interrupt_is_quiet(command, capsys):
    command(raising(KeyboardInterrupt()))
    assert cli.main(['work']) == 130
    assert capsys.readouterr() == ('', '')


def test_a_fault_of_ours_is_not_hidden(command):
    command(raising(ModuleNotFoundError('gone', name='graph_depth_refiner.gone')))
    with pytest.raises(ModuleNotFoundError):
        cli.main(['work'])


@pytest.mark.parametrize('argv, text', [
    (['wrok'], "command: expected one of .*work.*, got 'wrok'"),
    (['test', 'slowly'], "command: expected one of test one, got 'test slowly'"),
    (['work', '--set', 'solver.iterations=-1'],
     'solver.iterations: expected integer from 0 to .*'),
    (['work', '--preset', 'fast'], "preset: expected one of .*, got 'fast'"),
    (['--set', 'solver.iterations=1', 'work'], "command: expected one of .*work.*, got '--set'"),
    (['work', '--fast'], 'unrecognized arguments: --fast'),
    (['work', '--preset'], 'argument --preset: expected one argument'),
])
def test_refuses_unknown_words(command, capsys, argv, text):
    command(cli.config_from)
    command(cli.config_from, 'test one')
    assert cli.main(argv) == 2
    error = capsys.readouterr().err
    assert error.count('\n') == 1
    assert re.search(text, error)


def test_commands_of_two_words(command):
    seen = []
    command(lambda args: seen.append(args.device), 'test one')
    assert cli.main(['test', 'one', '--device', 'cpu']) == 0
    assert seen == ['cpu']


def test_an_executable_named_after_a_command_stands_for_it(command, monkeypatch):
    seen = []
    command(lambda args: seen.append(args.set), 'do-work')
    monkeypatch.setattr(sys, 'argv', ['/opt/lib/do_work', '--set', 'solver.iterations=1'])
    assert cli.main() == 0
    assert seen == [['solver.iterations=1']]


@pytest.mark.parametrize('argv, code', [([], 2), (['--help'], 0), (['-h'], 0)])
def test_help_lists_the_commands(capsys, argv, code):
    with pytest.raises(SystemExit) as left:
        cli.main(argv)
    assert left.value.code == code
    out = capsys.readouterr().out
    assert all(re.search(rf'^ +{name.split()[0]}\s', out, re.MULTILINE) for name in cli.COMMANDS)


@pytest.mark.parametrize('argv, code', [(['benchmark'], 2), (['benchmark', '--help'], 0)])
def test_help_lists_the_commands_of_a_family(capsys, argv, code):
    with pytest.raises(SystemExit) as left:
        cli.main(argv)
    assert left.value.code == code
    words = capsys.readouterr().out.split()
    assert {'solver', 'stream', 'node'} < set(words)
    assert 'evaluate' not in words


@pytest.mark.parametrize('name', cli.COMMANDS)
def test_every_command_has_help(name, capsys):
    module = import_module(cli.COMMANDS[name][0])
    assert callable(module.run)
    with pytest.raises(SystemExit) as left:
        cli.main([*name.split(), '--help'])
    assert left.value.code == 0
    assert f'usage: graph_depth_refiner {name}' in capsys.readouterr().out


@pytest.mark.parametrize('argv', [['config'], ['--help']])  # more and less than a buffer
def test_a_reader_that_leaves_is_no_error(argv):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, '-m', 'graph_depth_refiner', *argv], stdout=writer,
        stderr=subprocess.PIPE, text=True, env={**os.environ, 'PYTHONUNBUFFERED': ''})
    os.close(writer)
    assert done.stderr == ''
    assert done.returncode == 0


@pytest.mark.parametrize('argv', [['config'], ['--help'], ['benchmark', '--help']])
def test_help_imports_nothing_heavy(argv):
    code = ('import atexit, sys; from graph_depth_refiner.cli.main import main; heavy = '
            '("torch", "numba", "rclpy", "cv2", "numpy"); atexit.register(lambda: '
            f'print([name for name in heavy if name in sys.modules])); main({argv})')
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == '[]', done.stderr
