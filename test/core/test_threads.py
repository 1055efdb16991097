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
"""How many threads are used: what the cores leave decides, and the caller's limit stands."""

import pytest

from graph_depth_refiner.core.jit import threads
from graph_depth_refiner.core.jit.threads import ThreadCount, Threads

PERIOD = 1 / 15  # seconds


def run(count, seconds, speed, start=0.0):
    """Let frames of 20 ms come for a while; speed(many) is CPU seconds a second."""
    used = []
    for frame in range(round(seconds / PERIOD)):
        many = count.next(1.0 + start + frame * PERIOD)
        count.note(many, 0.02 * speed(many), 0.02)
        used.append(many)
    return used


def free(many):
    return 1.8 if many else 1.0


def busy(many):
    # two hogs on two cores: two threads have half a core each, one has two thirds of one
    return 1.0 if many else 0.9


def test_free_cores_are_used_and_one_thread_is_not_even_tried():
    assert all(run(ThreadCount(), 10, free))


def test_busy_cores_are_left_within_seconds_and_taken_up_again():
    count = ThreadCount()
    run(count, 5, free)
    run(count, 8, busy, start=5)
    assert not count.many
    used = run(count, 8, busy, start=13)
    # others are tried for one frame in two seconds
    assert 3 <= sum(used) <= 4 and not count.many
    run(count, 8, free, start=21)
    assert count.many
    assert all(run(count, 5, free, start=29))


def test_a_single_slow_frame_changes_nothing():
    count = ThreadCount()
    run(count, 2, free)
    count.note(True, 0.02, 0.2)
    assert all(run(count, 5, free, start=2.2))


@pytest.fixture
def allowed():
    numba = pytest.importorskip('numba')
    before = numba.get_num_threads()
    if before < 2:
        pytest.skip('one core')
    numba.set_num_threads(2)
    yield numba
    numba.set_num_threads(before)


@pytest.mark.parametrize('asked, number', [(0, 2), (1, 1), (2, 2), (1000, 2)])
def test_what_is_asked_for_is_used_within_the_limit_of_the_caller(allowed, asked, number):
    chosen = Threads()
    with chosen.use(asked):
        assert allowed.get_num_threads() == chosen.number == number
    assert allowed.get_num_threads() == 2


def test_the_limit_comes_back_after_an_error(allowed):
    with pytest.raises(KeyError), Threads().use(1):
        raise KeyError
    assert allowed.get_num_threads() == 2


def test_nothing_to_choose_without_numba(monkeypatch):
    monkeypatch.setattr(threads.sys, 'modules', {})
    chosen = Threads()
    with chosen.use(0):
        pass
    assert chosen.number == 0
