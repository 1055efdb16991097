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
"""Rates, silences and percentiles."""

import math

import pytest

from graph_depth_refiner.ros.watch import Jumps, Recent, TopicWatch


def test_rate_of_a_steady_topic():
    watch = TopicWatch()
    for frame in range(90):
        watch.note(stamp=0.0, now=frame / 30)
    assert watch.rate(89 / 30) == pytest.approx(30, rel=0.02)
    assert watch.received == 90


def test_rate_falls_when_nothing_comes():
    watch = TopicWatch()
    for frame in range(90):
        watch.note(stamp=0.0, now=frame / 30)
    assert watch.rate(89 / 30 + 1) < 20
    assert watch.rate(89 / 30 + 10) == 0
    assert watch.silent_for(89 / 30 + 10) == pytest.approx(10)


def test_nothing_yet_is_silence():
    assert TopicWatch().silent_for(5.0) == float('inf')
    assert TopicWatch().rate(5.0) == 0


def test_a_slow_topic_is_silent_later():
    watch = TopicWatch()
    for now in (0.0, 4.0, 8.0):
        watch.note(stamp=0.0, now=now)
    assert not watch.is_silent(8 + 3 * 4)
    assert watch.is_silent(8 + 3 * 4 + 0.1)
    watch.note(stamp=0.0, now=100.0)  # after a pause, which is no rate
    assert watch.is_silent(102.1)


def test_jumps_of_a_loop_and_of_two_clocks():
    jumps = Jumps()
    assert not any(
        jumps.note(topic, 1.2 * loop) for loop in range(5) for topic in ('image', 'depth'))
    assert [jumps.note('image', 100 + 0.1 * jump) for jump in range(4)] == [
        False, False, True, True]
    assert jumps.number == 14


def test_percentiles_of_the_last_frames():
    recent = Recent()
    for value in range(1000):
        recent.note(latency_ms=value)
    # the last 300 are 700 to 999
    assert recent.percentile('latency_ms', 50) == pytest.approx(849.5)
    assert recent.mean('latency_ms') == pytest.approx(849.5)
    assert recent.newest('latency_ms') == 999
    recent.clear()
    assert math.isnan(recent.percentile('latency_ms', 50))
    assert math.isnan(recent.mean('latency_ms'))
