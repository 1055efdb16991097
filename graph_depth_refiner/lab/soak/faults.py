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
"""What robots do to a node: each fault is a function that goes on for some seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
import subprocess
import sys
from typing import Any

from rclpy.qos import QoSProfile

from graph_depth_refiner.lab.soak.bad_messages import BAD, BAD_COMPRESSED
from graph_depth_refiner.lab.soak.camera import Camera, KINDS, SIZES
from graph_depth_refiner.lab.soak.ledger import GOOD, LONE
from graph_depth_refiner.lab.soak.remote import bad_setting, good_setting, Remote
from graph_depth_refiner.messages.assembly import output_topics, OUTPUTS
from graph_depth_refiner.ros.messages import message_type

MAIN_OUTPUT = 'depth_refined/image'  # always listened to
MOST_LATE = 2  # periods; the node's queue holds five messages a topic
BURST = 4  # sets at once that the queue can hold
FLOOD = 14  # sets at once that it need not hold
SWITCH = 3.0  # seconds in which the node notices that a publisher came or went
HOG = 'while True: pass'

Fault = Callable[[Camera, Remote, Random, float], None]


def calm(camera: Camera, remote: Remote, rng: Random, seconds: float) -> None:
    """Send frames as a camera does."""
    camera.stream(seconds)


def dropped_topics(camera: Camera, remote: Remote, rng: Random, seconds: float) -> None:
    """Leave out a topic of every other frame."""
    def each() -> None:
        camera.send(without=[rng.choice(list(KINDS))] if rng.random() < 0.5 else ())
    camera.stream(seconds, each)


def reordered_topics(camera: Camera, remote: Remote, rng: Random, seconds: float) -> None:
    """Send the topics of a frame in any order, one of them some frames later."""
    def each() -> None:
        order = rng.sample(list(KINDS), len(KINDS))
        camera.send(order=order, late={rng.choice(order): rng.randint(0, MOST_LATE)})
    camera.stream(seconds, each)
    camera.flush()


def bursts(camera: Camera, remote: Remote, rng: Random, seconds: float) -> None:
    """Send several frames at once, then none for a while."""
    waiting = [0]

    def each() -> None:
        waiting[0] -= 1
        if waiting[0] > 0:
            return
        flood = rng.random() < 0.3
        waiting[0] = FLOOD if flood else BURST
        for _ in range(waiting[0]):
            camera.send(fates=GOOD | LONE if flood else None)
            camera.jump(camera.period)
    camera.stream(seconds, each)


def bad_messages(camera: Camera, remote: Remote, rng: Random, seconds: float) -> None:
    """Send every kind of bad message among good ones."""
    bad = BAD_COMPRESSED if camera.compressed else BAD
    names: list[str] = []

    def each() -> None:
        if rng.random() < 0.3:
            camera.send()
            return
        if not names:
            names.extend(rng.sample(list(bad), len(bad)))
        name = names.pop()
        topic, change, fates = bad[name]
        message = camera.frame()[topic]
        change(message, rng)
        camera.send({topic: message}, fates=fates, keep=topic if 'stamp' in name else '')
    camera.stream(seconds, each)


def resolutions(camera: Camera, remote: Remote, rng: Random, seconds: float) -> None:
    """Change the size of the images every few frames."""
    def each() -> None:
        if rng.random() < 0.3:
            camera.size = rng.choice(SIZES)
        camera.send()
    camera.stream(seconds, each)


def clock_jumps(camera: Camera, remote: Remote, rng: Random, seconds: float) -> None:
    """Let the stamps jump forward and back."""
    def each() -> None:
        if rng.random() < 0.1:
            jump = rng.choice([-3600.0, -30.0, -1.0, -0.3, 0.3, 5.0, 600.0])
            camera.jump(jump)
            if jump < 0:  # what waits is dropped with the queues, and the rest comes mixed
                camera.excuse('clock jumps', LONE, 0.5, 0.5)
        camera.send()
    camera.stream(seconds, each)


def parameter_storm(camera: Camera, remote: Remote, rng: Random, seconds: float) -> None:
    """Set parameters faster than frames come, good and bad values."""
    def each() -> None:
        for _ in range(rng.randint(1, 3)):
            good = rng.random() < 0.7
            remote.set(good_setting(rng) if good else bad_setting(rng), good)
        camera.send()
    camera.stream(seconds, each)
    remote.restore(camera.spin)


def stale_frames(camera: Camera, remote: Remote, rng: Random, seconds: float) -> None:
    """Ask for frames younger than is possible for a while."""
    stale = frozenset({'stale'})
    camera.excuse('max_age', stale, 0.5, seconds + 2)
    remote.set({'max_age': 1e-3}, True)
    camera.stream(seconds / 2)
    remote.restore(camera.spin)
    camera.stream(seconds / 2)


def confidence_leaves(camera: Camera, remote: Remote, rng: Random, seconds: float) -> None:
    """Stop publishing confidence for a while: the node has to go on without it."""
    camera.excuse('confidence leaves', LONE, 0.5, SWITCH)
    camera.withdraw('confidence')
    camera.stream(seconds + SWITCH)
    camera.excuse('confidence comes back', LONE, 0.5, SWITCH)
    camera.advertise('confidence')
    camera.wait_for_node()
    camera.stream(SWITCH)


def publishers_restart(camera: Camera, remote: Remote, rng: Random, seconds: float) -> None:
    """Take down a driver and start it again, topic by topic."""
    for _ in range(max(1, int(seconds / 3))):
        topic = rng.choice(['image', 'depth', 'camera_info'])
        camera.withdraw(topic)
        camera.stream(0.7)  # the others go on
        camera.advertise(topic)
        camera.wait_for_node()
        camera.stream(1.5)


def subscribers(camera: Camera, remote: Remote, rng: Random, seconds: float) -> None:
    """Listen to the other outputs, now to this and now to that."""
    heard: dict[str, Any] = {}

    def each() -> None:
        if rng.random() < 0.2:
            topic = rng.choice([t for t in output_topics(False) if t != MAIN_OUTPUT])
            if topic in heard:
                camera.node.destroy_subscription(heard.pop(topic))
            else:
                kind = message_type(OUTPUTS[topic].package, OUTPUTS[topic].type_name)
                heard[topic] = camera.node.create_subscription(
                    kind, topic, lambda _: None, QoSProfile(depth=2), raw=True)
        camera.send()
    camera.stream(seconds, each)
    for subscription in heard.values():
        camera.node.destroy_subscription(subscription)


def second_camera(camera: Camera, remote: Remote, rng: Random, seconds: float) -> None:
    """Let somebody else publish depth on the same topic."""
    def each() -> None:
        camera.send()
        camera.stray(camera.frame()['depth'], LONE)
    # nearer than slop to a set, a stray takes its place as well as not
    camera.excuse('second camera', LONE | GOOD, 0.2, seconds + 0.2)
    camera.stream(seconds, each)


def services(camera: Camera, remote: Remote, rng: Random, seconds: float) -> None:
    """Reset, switch off and on again."""
    def each() -> None:
        if rng.random() < 0.1:
            camera.excuse('reset', LONE, 0.5, 0.5)
            remote.reset()
        if rng.random() < 0.1:
            remote.enable(rng.random() < 0.5)
        camera.send()
    camera.excuse('switched off', frozenset({'passed'}), 0.5, seconds + 2)
    camera.stream(seconds, each)
    remote.enable(True)


def hogs(camera: Camera, remote: Remote, rng: Random, seconds: float) -> None:
    """Take the processor away."""
    with busy(rng.randint(2, 4)):
        camera.stream(seconds)


@contextmanager
def busy(number: int) -> Iterator[None]:
    """Run processes that do nothing but run."""
    processes = [subprocess.Popen([sys.executable, '-c', HOG]) for _ in range(number)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


FAULTS: dict[str, Fault] = {
    fault.__name__.replace('_', ' '): fault
    for fault in (
        dropped_topics, reordered_topics, bursts, bad_messages, resolutions, clock_jumps,
        parameter_storm, stale_frames, confidence_leaves, publishers_restart, subscribers,
        second_camera, services, hogs)
}
