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
"""The flat names of version 0.1 are still taken, with one warning each."""

import logging
from pathlib import Path

import pytest

from graph_depth_refiner import renamed
from graph_depth_refiner.cli.main import main
from graph_depth_refiner.config import NodeConfig, preset, RefinerConfig
from graph_depth_refiner.renamed import OPPOSITE, RENAMED

CHANGELOG = Path(__file__).parents[1] / 'CHANGELOG.rst'


@pytest.fixture(autouse=True)
def warned(monkeypatch):
    """Forget what others were warned of, and return the warnings from now on."""
    said = []
    handler = logging.Handler(logging.WARNING)  # caplog hears nothing where launch is imported
    handler.emit = lambda record: said.append(record.getMessage())
    monkeypatch.setattr(renamed, '_warned', set())
    monkeypatch.setattr(renamed._LOG, 'handlers', [handler])
    return said


def set_of(new):
    """Return the default configuration that has a tunable."""
    return RefinerConfig() if new in RefinerConfig.tunables() else NodeConfig()


def another(one):
    """Return an accepted value that is not the default."""
    if one.kind is bool:
        return not one.default
    if one.kind is str:
        return next(choice for choice in one.choices if choice != one.default)
    if one.kind is int:
        return one.default + (2 if one.odd else 1)
    return one.default + 1e-4 * (one.high - one.default)


@pytest.mark.parametrize('old, new', RENAMED.items())
def test_an_old_name_is_taken_and_said_once(old, new, warned):
    config = set_of(new)
    value = another(config.named(new))
    expected = config.with_values(**{new: value})
    given = not value if old in OPPOSITE else value
    assert config.with_values(**{old: given}) == expected
    assert config.with_settings([f'{old}={given}']) == expected
    assert expected != config
    said, = warned
    assert said.startswith(f'{old}: now called {new}')


def test_new_names_are_not_said(warned):
    for kind in (RefinerConfig, NodeConfig):
        for name, one in kind.tunables().items():
            kind().with_values(**{name: one.default})
    assert not warned


@pytest.mark.parametrize('name', ['realtime', 'paper', 'stereo'])
def test_presets_take_old_names_over_their_own_values(name):
    config = preset(name, mode='converged', max_iterations=2000, graph_window=7)
    assert config == preset(name, **{
        'solver.mode': 'converged', 'solver.max_iterations': 2000, 'graph.window': 7})


def test_names_that_are_groups_now_go_by_the_value():
    assert preset('realtime', solver='irls').solver.method == 'irls'
    assert not preset('realtime', temporal=False).temporal.enabled
    assert preset('realtime', solver={'iterations': 3}).solver.iterations == 3
    assert preset('realtime').with_settings(['solver=irls']).solver.method == 'irls'


@pytest.mark.parametrize('values, text', [
    ({'graph_window': 4}, 'graph.window: expected odd integer from 3 to 15, got 4'),
    ({'solver': 3}, 'solver.method: expected one of adam, irls, got 3 (int)'),
    ({'graph': 3}, 'graph: unknown name, expected one of '),
    ({'exact_sync': True}, 'exact_sync: unknown name, expected one of '),  # of the node only
    ({'graph_windows': 3}, 'graph_windows: unknown name, expected one of ')])
def test_wrong_values_and_names_are_refused(values, text):
    with pytest.raises(ValueError) as error:
        preset('realtime', **values)
    assert str(error.value).startswith(text)


def test_an_opposite_that_is_no_truth_value_is_refused():
    with pytest.raises(ValueError, match="approximate_sync: expected true or false, got 'no'"):
        NodeConfig().with_values(exact_sync='no')


def test_the_command_line_takes_old_names(capsys):
    assert main(['config', '--set', 'iterations=7']) == 0
    assert 'solver.iterations=7\n' in capsys.readouterr().out


def test_the_changelog_says_every_new_name():
    words = [tuple(line.replace('``', '').split()[:2])
             for line in CHANGELOG.read_text(encoding='utf-8').splitlines()]
    assert not set(RENAMED.items()) - set(words)


def test_an_old_value_is_taken_with_a_warning(warned):
    for _ in range(2):
        assert preset('realtime', backend='compiled').backend == 'triton'
    assert len(warned) == 1 and 'backend: compiled is now called triton' in warned[0]
