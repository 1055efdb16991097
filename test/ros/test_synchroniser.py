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
"""Sets of messages by stamp, and what message_filters alone gets wrong."""

from builtin_interfaces.msg import Time
import pytest
from sensor_msgs.msg import Image
from std_msgs.msg import Header

from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.ros.synchroniser import Synchroniser

TOPICS = ('depth', 'image')


class Bench:
    """A synchroniser of two topics that notes the stamps of its sets."""

    def __init__(self, **settings):
        self.sets, self.jumps = [], []
        self.sync = Synchroniser(self.take, self.note_jump)
        self.sync.use(TOPICS, NodeConfig().with_values(**settings))

    def take(self, messages):
        self.sets.append(tuple(messages[topic].header.stamp.nanosec // 10 ** 6 +
                               messages[topic].header.stamp.sec * 1000 for topic in TOPICS))

    def note_jump(self, topic, by):
        self.jumps.append((topic, round(by, 3)))

    def add(self, topic, milliseconds):
        seconds, rest = divmod(milliseconds, 1000)
        stamp = Time(sec=seconds, nanosec=rest * 10 ** 6)
        self.sync.add(topic, Image(header=Header(stamp=stamp)))


def test_near_stamps_match():
    bench = Bench()
    bench.add('depth', 1000)
    bench.add('image', 1030)
    bench.add('image', 1010)
    assert bench.sets == [(1000, 1010)]


@pytest.mark.parametrize('rates', [(60, 60), (30, 60), (60, 30), (90, 30)], ids=str)
@pytest.mark.parametrize('lost', TOPICS)
def test_a_lost_message_shifts_nothing(rates, lost):
    """Frames may come faster than the slop allows for; equal stamps still find each other."""
    bench = Bench(approximate_sync_tolerance_seconds=0.02)
    sent = {topic: {round(1000 * n / rate) for n in range(1, 2 * rate)}
            for topic, rate in zip(TOPICS, rates, strict=True)}
    sent[lost].remove(1000)
    for stamp in sorted(sent['depth'] | sent['image']):
        for topic in TOPICS:  # the depth comes before the image of its moment
            if stamp in sent[topic]:
                bench.add(topic, stamp)
    wrong = [pair for pair in bench.sets if pair[0] != pair[1]]
    # the very first image may find a depth image before any period is known
    assert len(wrong) <= 1
    assert len(bench.sets) >= len(sent['depth'] & sent['image']) - 2


def test_topics_out_of_step_match_the_nearest():
    bench = Bench(approximate_sync_tolerance_seconds=0.02)
    # 60 Hz, the images 7 ms after their depth image and 10 ms before the next one
    for n in range(60):
        bench.add('depth', 1000 + 17 * n)
        bench.add('image', 1007 + 17 * n)
    assert len(bench.sets) == 60
    assert all(image - depth == 7 for depth, image in bench.sets)


def test_two_messages_in_a_rush_do_not_narrow_the_slop():
    bench = Bench(approximate_sync_tolerance_seconds=0.02)
    for stamp in (1000, 1033, 1067, 1068, 1100, 1133):
        bench.add('depth', stamp)
        bench.add('image', stamp + 12)
    assert bench.sets[-1] == (1133, 1145)


def test_exact_matches_equal_stamps_only():
    bench = Bench(approximate_sync=False)
    bench.add('depth', 1000)
    bench.add('image', 1001)
    assert not bench.sets
    bench.add('image', 1000)
    assert bench.sets == [(1000, 1000)]


@pytest.mark.parametrize('approximate', [False, True])
def test_a_looped_recording_goes_on(approximate):
    bench = Bench(approximate_sync=approximate)
    for _ in range(3):
        for stamp in range(5000, 6000, 33):
            bench.add('image', stamp)
            bench.add('depth', stamp)
    assert len(bench.sets) == 3 * len(range(5000, 6000, 33))
    assert [topic for topic, _ in bench.jumps] == ['image'] * 2


def test_a_little_disorder_is_no_jump():
    bench = Bench()
    for stamp in (1000, 1066, 1033, 1100):
        bench.add('depth', stamp)
        bench.add('image', stamp)
    assert len(bench.sets) == 4
    assert not bench.jumps


def test_a_stamp_that_is_none_is_refused_and_blocks_nothing():
    bench = Bench(approximate_sync=False)
    for stamp in (Time(sec=-1), Time(sec=1, nanosec=4 * 10 ** 9)):
        with pytest.raises(ValueError, match='depth.header.stamp: expected'):
            bench.sync.add('depth', Image(header=Header(stamp=stamp)))
    bench.add('depth', 1000)
    bench.add('image', 1000)
    assert bench.sets == [(1000, 1000)]


def test_what_waits_is_known_and_bounded():
    bench = Bench(queue_size=3)
    for stamp in range(1000, 2000, 100):
        bench.add('depth', stamp)
    assert bench.sync.waiting('depth') == 3
    assert bench.sync.matched == 0


def test_other_settings_start_anew_and_the_same_do_not():
    bench = Bench()
    bench.add('depth', 1000)
    bench.sync.follow(TOPICS, NodeConfig(max_age=1.0))
    assert bench.sync.waiting('depth') == 1
    bench.sync.follow(TOPICS, NodeConfig(approximate_sync=False))
    assert bench.sync.waiting('depth') == 0
