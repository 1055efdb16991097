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

import pytest

from graph_depth_refiner.cli.main import main
from graph_depth_refiner.lab.soak.ledger import GOOD, infeasible, Ledger, LONE, MALFORMED
from graph_depth_refiner.lab.soak.soak import memory_slope


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


def test_memory_slope_is_that_of_the_line_after_the_warm_up():
    # 100 MB within the warm-up, then 0.5 MB a minute with one outlier
    samples = [(t / 10, 100 * min(t, 20) / 20 + 0.05 * t) for t in range(101)]
    samples[70] = (7.0, 400.0)
    assert memory_slope(samples) == pytest.approx(0.5, abs=0.01)
    assert memory_slope(samples[:2]) is None


def test_a_short_soak_explains_everything(tmp_path):
    figures = tmp_path / 'figures.json'
    code = main(['soak', '--minutes', '0.15', '--only', 'bad messages', '--seed', '1',
                 '--domain', os.environ['ROS_DOMAIN_ID'], '--json', str(figures)])
    found = json.loads(figures.read_text())
    assert found['unexplained'] == []
    assert code == 0
    assert found['refined'] > 0 and found['dropped']['malformed'] > 0
    assert found['frames_in'] == (
        found['refined'] + found['passed'] + sum(found['dropped'].values()))
