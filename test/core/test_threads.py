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

import math
import sys
from types import ModuleType

import pytest

from graph_depth_refiner.core.jit import threads
from graph_depth_refiner.core.jit.threads import free_ticks, seconds_left, ThreadCount, Threads

PERIOD = 1 / 15  # seconds
STAT = """cpu  10 20 30 40 50 60 70 80 0 0
cpu0 1 2 3 4 5 6 7 8 0 0
cpu1 10 20 30 40 50 60 70 80 0 0
cpu10 1000 1000 1000 1000 1000 0 0 0 0 0
intr 1 2 3
"""


class Machine:
    """Frames come; `cores` of two are left on average."""

    def __init__(self, most=2):
        self.count, self.now, self.left = ThreadCount(most), 5.0, 100.0

    def run(self, seconds, cores):
        """Return the numbers of threads of the frames that come meanwhile."""
        used = []
        for _ in range(round(seconds / PERIOD)):
            self.now += PERIOD
            self.left += PERIOD * cores
            used.append(self.count.look(self.now, lambda: self.left))
        return used


def test_free_cores_are_used():
    assert set(Machine().run(10, 1.8)) == {2}


def test_busy_cores_are_left_within_two_windows_and_never_tried():
    machine = Machine()
    machine.run(5, 1.8)
    machine.run(2.1, 1.0)
    assert set(machine.run(20, 0.7)) == {1}
    machine.run(2.1, 1.5)
    assert set(machine.run(5, 1.5)) == {2}


def test_what_is_left_may_vary_without_changing_the_number():
    machine = Machine()
    assert set(machine.run(5, 1.15)) == {2}  # of the second core more than 0.1
    machine.run(3, 1.0)
    assert set(machine.run(5, 1.25)) == {1}  # but less than 0.3


@pytest.mark.parametrize('cores, number', [(7.9, 8), (6.0, 6), (5.7, 6), (0.3, 1), (0.0, 1)])
def test_as_many_threads_as_cores_are_left(cores, number):
    machine = Machine(most=8)
    machine.run(3, cores)
    assert machine.count.number == number


def test_all_threads_where_it_is_not_known_what_is_left():
    assert set(Machine().run(5, math.nan)) == {2}


def test_idle_waiting_and_nice_time_of_our_cores_is_to_be_had():
    # idle 4 + waiting 5 + nice 2 of the first core, ten times that of the second
    assert free_ticks(STAT, {0}, before_nice=True) == 11
    assert free_ticks(STAT, {0, 1}, before_nice=True) == 121
    assert free_ticks(STAT, {0, 1}, before_nice=False) == 99


def test_what_is_left_grows_with_our_own_work():
    before = seconds_left()
    if math.isnan(before):
        pytest.skip('no /proc/stat')
    sum(range(1_000_000))
    assert seconds_left() > before


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


def test_numba_that_another_thread_is_importing_is_left_alone(monkeypatch):
    # several nodes of a process start at once: one imports, the others find half a module
    monkeypatch.setitem(sys.modules, 'numba', ModuleType('numba'))
    with Threads().use(1):
        pass
