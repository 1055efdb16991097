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
"""The books of the soak: possible counts pass, impossible ones are named."""

import json
import os
import sys

import pytest

from graph_depth_refiner.cli.main import main
from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.lab.soak import growth, soak
from graph_depth_refiner.lab.soak.growth import Levels
from graph_depth_refiner.lab.soak.ledger import GOOD, infeasible, Ledger, LONE, MALFORMED


def books(heard=(1, 2)):
    """Return books of two good frames, a bad one and a lone one, some of which came back."""
    ledger = Ledger()
    for stamp, fates in enumerate((GOOD, GOOD, MALFORMED, LONE), 1):
        ledger.send(stamp, float(stamp), fates)
    for stamp in heard:
        ledger.hear(stamp, stamp + 0.5)
    return ledger


def test_books_that_agree():
    counted = {'refined': 2, 'malformed': 1, 'unsynchronised': 1, 'failed': 0}
    assert books().contradictions(counted) == []
    assert books().heard == {1: 0.5, 2: 0.5}


@pytest.mark.parametrize('heard, counted, complaint', [
    ((1, 2), {'refined': 3, 'malformed': 1}, 'the node counts 3 frames refined or passed, 2 came'),
    ((1, 2, 3), {'refined': 3, 'unsynchronised': 1}, '1 frames were refined that should'),
    ((1, 2), {'refined': 2, 'malformed': 1}, '2 frames did not come back, 1 losses are counted'),
    ((1,), {'refined': 1, 'failed': 1, 'malformed': 1, 'unsynchronised': 1}, 'failed: 1 counted'),
    ((1,), {'refined': 1, 'malformed': 1, 'unsynchronised': 2}, 'unsynchronised: 2 counted, 1'),
    ((1, 9), {'refined': 2, 'superseded': 1}, '1 refined images have stamps that were never sent'),
])
def test_books_that_cannot_be(heard, counted, complaint):
    assert any(complaint in one for one in books(heard).contradictions(counted))


def test_an_excused_frame_may_be_lost():
    ledger = books(heard=(1,))
    counted = {'refined': 1, 'malformed': 1, 'unsynchronised': 2}
    ledger.excuse(2, LONE, 'reset')
    assert ledger.contradictions(counted) == []
    assert ledger.disturbed == {'reset': 1}


def test_two_causes_may_not_share_one_frame():
    # each cause alone could be explained by the one frame, both together cannot
    kinds = {frozenset('ab'): 1, frozenset('c'): 1}
    assert infeasible({'a': 1, 'c': 1}, kinds) == []
    assert infeasible({'a': 1, 'b': 1}, kinds) == ['a and b: 2 counted, 1 can have ended that way']


def levels(*megabytes):
    """Return levels of cycles of two minutes."""
    book = Levels()
    for number, one in enumerate(megabytes, 1):
        book.add(2.0 * number, one)
    return book


@pytest.mark.parametrize('megabytes, expected', [
    ((300.0, 300.2, 300.1, 300.3), 0.1),  # 0.2, -0.1 and 0.2 in two minutes
    ((300.0, 418.0, 418.0, 418.0), 0.0),  # a queue that was full once
    ((300.0, 300.0, 418.0), 0.0),
    ((300.0, 304.0, 308.0, 312.0), 2.0),  # a leak
    ((300.0, 304.0, 426.0, 430.0), 2.0),  # and with a step in between
    ((300.0, 330.0), None),
])
def test_growth_is_what_most_cycles_add(megabytes, expected):
    assert levels(*megabytes).growth() == (expected and pytest.approx(expected))


def test_a_cycle_lasts_a_minute_at_least():
    book = Levels()
    for seconds in range(5, 185, 5):
        if book.due(seconds / 60):
            book.add(seconds / 60, float(seconds))
    assert book.levels == [(1.0, 60.0), (2.0, 120.0), (3.0, 180.0)]


LEAKING = """
import threading, time
from graph_depth_refiner.ros.refiner_node import main

def leak():
    while True:
        leaked.append(bytearray(b'x') * 500_000)
        time.sleep(0.1)

leaked = []
threading.Thread(target=leak, daemon=True).start()
main()
"""


def test_the_node_is_given_parameters_by_todays_names():
    settings = [one.partition(':=')[0] for one in soak.node_command(True) if ':=' in one]
    names = [one for one in settings if not one.startswith('qos_overrides.')]
    assert names and set(names) <= {one.name for one in NodeConfig.tunables().values()}


def test_a_node_that_leaks_is_reported(tmp_path, monkeypatch):
    script = tmp_path / 'leaking.py'
    script.write_text(LEAKING)
    monkeypatch.setattr(
        soak, 'node_command', lambda compressed, sound=soak.node_command: [
            sys.executable, str(script), *sound(compressed)[3:]])
    monkeypatch.setattr(soak, 'EPISODE', (1.5, 1.5))
    monkeypatch.setattr(soak, 'SETTLED', 0.6)
    monkeypatch.setattr(growth, 'CYCLE', 0.0)
    figures = tmp_path / 'figures.json'
    code = main(['soak', '--minutes', '0.17', '--seed', '1',
                 '--domain', os.environ['ROS_DOMAIN_ID'], '--json', str(figures)])
    assert code == 1
    complaints = json.loads(figures.read_text())['unexplained']
    assert any('memory in use grows by' in one for one in complaints)


def test_a_short_soak_explains_everything(tmp_path):
    figures = tmp_path / 'figures.json'
    code = main(['soak', '--minutes', '0.15', '--only', 'bad messages', '--seed', '1',
                 '--domain', os.environ['ROS_DOMAIN_ID'], '--json', str(figures)])
    found = json.loads(figures.read_text())
    assert found['unexplained'] == []
    assert code == 0
    assert found['memory_growth_mb_per_minute'] is None  # too short for that
    assert found['refined'] > 0 and found['dropped']['malformed'] > 0
    assert found['frames_in'] == (
        found['refined'] + found['passed'] + sum(found['dropped'].values()))
