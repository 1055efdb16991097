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
"""What is said of inputs that do not come together."""

from types import SimpleNamespace

import pytest

from graph_depth_refiner.ros.starvation import Starvation, starvation
from graph_depth_refiner.ros.topics import InputTopic
from graph_depth_refiner.ros.watch import TopicWatch


def topic(name, publishers=1, incompatible=''):
    """Return a topic nothing has come on yet."""
    made = SimpleNamespace(
        name=f'/{name}', publishers=publishers, incompatible=incompatible, watch=TopicWatch(),
        remedy=lambda: 'change it')
    made.counted = lambda: InputTopic.counted(made)
    return made


class Bench:
    """Two topics and a report every second."""

    def __init__(self):
        self.inputs = {role: topic(role) for role in ('depth', 'image', 'camera_info')}
        self.starvation = Starvation()
        self.now, self.matched = 0.0, 0

    def run(self, seconds, hz, roles=('depth', 'image', 'camera_info'), matching=True,
            needed=('depth', 'image', 'camera_info')):
        """Let messages come; return what was said, each sentence once."""
        said, begun, last = set(), self.now, int(self.now)
        for number in range(1, round(seconds * hz) + 1):
            self.now = begun + number / hz
            for role in roles:
                self.inputs[role].watch.note(self.now, self.now)
            self.matched += matching
            while last + 1 <= self.now:
                last += 1
                said.update(self.report(needed))
        return said

    def report(self, needed):
        return self.starvation.problems(self.inputs, needed, self.matched, self.now)


@pytest.mark.parametrize('hz', [0.15, 0.7, 30])
def test_of_a_steady_camera_nothing_is_said(hz):
    bench = Bench()
    bench.run(30, hz)
    assert not bench.run(60, hz)


@pytest.mark.parametrize('hz', [0.7, 30])
def test_stamps_that_do_not_match_are_told_all_the_time(hz):
    bench = Bench()
    bench.run(10, hz, matching=False)
    for _ in range(10):
        sentence, = bench.run(3, hz, matching=False)
        assert 'their stamps do not match' in sentence
    bench.run(5, hz)
    assert not bench.run(5, hz)


def test_a_topic_that_is_back_is_no_mismatch():
    bench = Bench()
    bench.run(5, 10)
    sentence, = bench.run(10, 10, roles=('depth', 'camera_info'), matching=False)
    assert sentence == 'image starves the synchroniser: 1 publisher on /image, but nothing comes'
    bench.inputs['image'].watch.note(bench.now, bench.now)
    assert not bench.report(('depth', 'image'))


def test_what_is_not_needed_starves_nobody():
    bench = Bench()
    assert not bench.run(10, 10, roles=('depth', 'image'), needed=('depth', 'image'))
    assert bench.run(10, 10, roles=('depth', 'image'))


@pytest.mark.parametrize('state, words', [
    ({'publishers': 0}, 'nobody publishes /image'),
    ({'publishers': 1}, '1 publisher on /image, but nothing comes'),
    ({'publishers': 2}, '2 publishers on /image, but nothing comes'),
    ({'incompatible': 'RELIABILITY'},
     'a publisher on /image offers incompatible RELIABILITY; change it'),
])
def test_the_reason_is_given(state, words):
    sentence = starvation('image', topic('image', **state))
    assert sentence == f'image starves the synchroniser: {words}'
