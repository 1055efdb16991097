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
"""
Plays a recording where `ros2 bag play` is not installed.

The stored bytes are published as they are, without decoding them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
import os
from pathlib import Path
import select
import signal
import sys
import threading
import time
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.utilities import remove_ros_args
from rosgraph_msgs.msg import Clock
from rosidl_runtime_py.utilities import get_message
from std_srvs.srv import SetBool

from graph_depth_refiner.bags.bags import Bag, Message, reading, Topic
from graph_depth_refiner.ros.spinning import until_shutdown

STEP = 0.05  # seconds; how soon a pause, a signal or a tick of a stopped clock is noticed
SECOND = 10 ** 9  # nanoseconds
# names of rosbags' settings that rclpy knows too; others are left at their default
POLICIES = {'reliability': ('RELIABLE', 'BEST_EFFORT'),
            'durability': ('TRANSIENT_LOCAL', 'VOLATILE'), 'history': ('KEEP_LAST',)}


class Player(Node):
    """Publishes the messages of a recording at their time."""

    def __init__(self, bag: Bag, rate: float, clock_hz: float, paused: bool) -> None:
        """Advertise what the recording holds; nothing is published yet."""
        super().__init__('play_bag')
        self._bag, self._rate = bag, rate
        self._playing = threading.Event()
        if not paused:
            self._playing.set()
        self._bag_publishers = {}
        for topic in bag.topics():
            self._advertise(topic)
        if not self._bag_publishers:
            raise ValueError(f'{bag.path}: expected topics of installed types, got none')
        self._now = 0  # nanoseconds of the recording
        self._clock_period = 1 / clock_hz if clock_hz else None
        self._clock_publisher = self.create_publisher(Clock, '/clock', 10) if clock_hz else None
        self._next_tick = 0.0
        self.create_service(SetBool, '~/pause', self._pause)

    def toggle(self) -> None:
        """Pause, or go on."""
        if self._playing.is_set():
            self._playing.clear()
        else:
            self._playing.set()

    def play(self) -> int:
        """Publish all messages once; return how many."""
        count = 0
        due = time.monotonic()
        for message in self._messages():
            if not self._now or message.time < self._now:
                self._now = message.time
            due = self._wait(due, message.time)
            if not self.context.ok():
                break
            self._publish(self._bag_publishers[message.topic], message.data)
            count += 1
        self._now = 0
        return count

    def _messages(self) -> Iterator[Message]:
        return (one for one in self._bag.messages() if one.topic in self._bag_publishers)

    def _wait(self, due: float, until: int) -> float:
        """Let the time of the recording pass up to a moment; return when that was due."""
        while self.context.ok():
            self._tick()
            if not self._playing.is_set():
                self._playing.wait(STEP)
                due = time.monotonic()
                continue
            if self._now >= until:
                break
            step = min(STEP, (until - self._now) / SECOND / self._rate)
            if self._clock_period:
                step = min(step, self._clock_period)
            due += step
            time.sleep(max(0.0, due - time.monotonic()))
            self._now = min(until, self._now + max(1, round(step * self._rate * SECOND)))
        return max(due, time.monotonic() - 1)  # what was lost in a hiccup is not made up for

    def _tick(self) -> None:
        """Publish /clock where it is time to."""
        if self._clock_publisher and time.monotonic() >= self._next_tick and self.context.ok():
            self._next_tick = time.monotonic() + self._clock_period
            message = Clock()
            message.clock.sec, message.clock.nanosec = divmod(self._now, SECOND)
            self._publish(self._clock_publisher, message)

    def _publish(self, publisher: Publisher, message: Any) -> None:
        try:
            publisher.publish(message)
        except Exception:  # of whatever kind rclpy has for it
            if self.context.ok():  # else it was told to end just now
                raise

    def _advertise(self, topic: Topic) -> None:
        try:
            kind = get_message(topic.kind)
        except (AttributeError, ModuleNotFoundError, ValueError):
            self.get_logger().warning(
                f'{topic.name}: expected an installed type, got {topic.kind}; left out')
            return
        self._bag_publishers[topic.name] = self.create_publisher(
            kind, topic.name, quality(topic.qos))

    def _pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        (self._playing.clear if request.data else self._playing.set)()
        response.success = True
        response.message = 'paused' if request.data else 'playing'
        return response


def quality(recorded: tuple) -> QoSProfile:
    """Return the quality of service a topic was recorded with, as far as it is known."""
    profile = QoSProfile(depth=10)
    for name, known in POLICIES.items():
        policy = getattr(recorded[0], name).name if recorded else ''
        if policy in known:
            setattr(profile, name, type(getattr(profile, name))[policy])
    return profile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        'bag', type=Path, help='a folder with metadata.yaml, .mcap, .db3, or .bag of ROS 1')
    parser.add_argument('--rate', type=float, default=1.0, help='speed (default: %(default)g)')
    parser.add_argument('--loop', action='store_true', help='begin again at the end')
    parser.add_argument(
        '--clock', type=float, default=100.0, metavar='HZ',
        help='rate of /clock, 0 for none (default: %(default)g)')
    parser.add_argument(
        '--start-paused', action='store_true',
        help='wait for ~/pause (std_srvs/SetBool) or the space bar')
    parser.add_argument(
        '--delay', type=float, default=1.0, metavar='SECONDS',
        help='time for others to find the topics (default: %(default)g)')


@contextmanager
def watched_keys(player: Player) -> Iterator[None]:
    """Let the space bar pause, where there is a keyboard; leave the terminal as it was."""
    if not sys.stdin or not sys.stdin.isatty():
        yield
        return
    import termios
    import tty
    keyboard, done = sys.stdin.fileno(), threading.Event()
    before = termios.tcgetattr(keyboard)

    def watch() -> None:
        with suppress(OSError):  # a terminal that was closed
            key = b'\0'
            while key and not done.is_set():
                if select.select([keyboard], [], [], STEP)[0]:
                    key = os.read(keyboard, 1)
                    if key == b' ':
                        player.toggle()

    watcher = threading.Thread(target=watch)
    try:
        tty.setcbreak(keyboard)
        watcher.start()
        yield
    finally:
        done.set()
        watcher.join()
        with suppress(termios.error):  # likewise
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def main(args: list[str] | None = None) -> None:
    """Play a recording."""
    arguments = sys.argv if args is None else [sys.argv[0], *args]
    parser = argparse.ArgumentParser(description='Play a recording.')
    add_arguments(parser)
    options = parser.parse_args(remove_ros_args(arguments)[1:])
    for number in (signal.SIGINT, signal.SIGTERM):
        # no KeyboardInterrupt from just anywhere: rclpy's own handlers come on top of these
        signal.signal(number, lambda *_: None)
    rclpy.init(args=arguments)
    try:
        if not 0 < options.rate < 1e6:
            raise ValueError(f'rate: expected a positive number, got {options.rate:g}')
        if not 0 <= options.clock <= 1e4:
            raise ValueError(f'clock: expected a number from 0 to 10000, got {options.clock:g}')
        with reading(options.bag) as bag:
            run(Player(bag, options.rate, options.clock, options.start_paused), options)
    except (ValueError, OSError) as error:
        print(f'play_bag: {error}', file=sys.stderr)
        sys.exit(2)
    finally:
        rclpy.try_shutdown()


def run(player: Player, options: argparse.Namespace) -> None:
    """Play once, or again and again, until told to end; services are served meanwhile."""
    executor = SingleThreadedExecutor()
    executor.add_node(player)
    server = threading.Thread(target=serve, args=(executor,))
    server.start()
    try:
        with watched_keys(player):
            time.sleep(options.delay)
            count = player.play()
            while options.loop and count and player.context.ok():
                count += player.play()
        print(f'play_bag: {count} messages played', flush=True)
    finally:
        executor.shutdown()
        server.join()


def serve(executor: SingleThreadedExecutor) -> None:
    """Serve services until the executor or ROS is shut down."""
    with until_shutdown():
        executor.spin()


if __name__ == '__main__':
    main()
