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
"""A real node in a process of its own, and a camera and a listener in the test's."""

from __future__ import annotations

from contextlib import contextmanager
import os
from pathlib import Path
import signal
import subprocess
import sys
import tempfile
import time

from diagnostic_msgs.msg import DiagnosticArray
import numpy as np
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import qos_profile_sensor_data, QoSProfile
from rclpy.time import Time
from sensor_msgs.msg import CameraInfo, Image

from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.lab.benchmarks.feeder import messages
from graph_depth_refiner.messages.assembly import output_topics, OUTPUTS
from graph_depth_refiner.ros.messages import message_type

PATIENCE = 60.0  # seconds; compiling for the first time takes long, nothing else does
INPUTS = {'image': Image, 'depth': Image, 'confidence': Image, 'camera_info': CameraInfo}


def frame(width=64, height=48, confidence=True):
    """Return a wall 2 m ahead, textured, with a hole and a little noise."""
    rng = np.random.default_rng(0)
    depth = (2 + rng.normal(0, 0.004, (height, width))).astype(np.float32)
    depth[height // 3:height // 2, width // 3:width // 2] = 0
    image = rng.integers(0, 256, (height, width, 3)).astype(np.uint8)
    return Frame(
        image, depth, Intrinsics(60.0, 60.0, width / 2, height / 2),
        np.ones(depth.shape, np.float32) if confidence else None)


class NodeProcess:
    """The executable, as a user starts it."""

    def __init__(self, *arguments, module='ros.refiner_node'):
        # in the folder that conftest.py removes at the end
        self.log = Path(tempfile.mkstemp(suffix='.log', dir=os.environ.get('ROS_LOG_DIR'))[1])
        with self.log.open('w') as log:
            self.process = subprocess.Popen(
                [sys.executable, '-m', f'graph_depth_refiner.{module}', *arguments],
                stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, 'PYTHONUNBUFFERED': '1'})

    @property
    def alive(self):
        return self.process.poll() is None

    @property
    def output(self):
        return self.log.read_text()

    def end(self, by=signal.SIGINT, within=20.0):
        """Send a signal; return exit code and seconds until the exit."""
        start = time.monotonic()
        self.process.send_signal(by)
        try:
            self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return self.process.returncode, time.monotonic() - start


class Bench:
    """A camera that sends what it is told, and ears on every output."""

    def __init__(self, namespace='', inputs=INPUTS, outputs=None):
        self.node = rclpy.create_node('bench', namespace=namespace)
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.publishers = {
            topic: self.node.create_publisher(kind, topic, qos_profile_sensor_data)
            for topic, kind in inputs.items()}
        self.heard = {}
        self.diagnostics = {}
        self.subscriptions = {
            topic: self._subscribe(topic) for topic in outputs or output_topics(False)}
        self.node.create_subscription(DiagnosticArray, '/diagnostics', self._diagnosed, 10)
        self.last_stamp = 0

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()

    def spin(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.executor.spin_once(max(0.0, end - time.monotonic()))

    def wait_for(self, condition, what, patience=PATIENCE):
        """Spin until something holds; fail with a word about it otherwise."""
        end = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < end, f'{what} did not happen within {patience} s'
            self.executor.spin_once(0.02)

    def now(self):
        """Return a stamp in nanoseconds that is later than all before."""
        self.last_stamp = max(self.last_stamp + 1, time.time_ns())
        return self.last_stamp

    def send(self, stamp=None, only=None, of=None, **changes):
        """
        Publish one set; return its stamp.

        `only` names the topics, `of` is another frame, and changes are fields of messages
        by topic: depth={'step': 1}.
        """
        stamp = stamp or self.now()
        found = messages(of or frame())
        for topic, message in found.items():
            if topic in self.publishers and (only is None or topic in only):
                message.header.stamp = Time(nanoseconds=stamp).to_msg()
                for name, value in changes.get(topic, {}).items():
                    setattr(message, name, value)
                self.publishers[topic].publish(message)
        return stamp

    def refines(self, topic='depth_refined/image', patience=PATIENCE, **options):
        """Send good frames until one comes back; return what came."""
        sent, end = set(), time.monotonic() + patience
        while time.monotonic() < end:
            sent.add(self.send(**options))
            self.spin(0.1)
            for stamp in sent & set(self.heard[topic]):
                return self.heard[topic][stamp]
        raise AssertionError(f'nothing came back on {topic} within {patience} s')

    def account(self, name):
        """Return one number of the newest diagnostics."""
        return int(self.diagnostics.get('Refinement', {}).get(name, 0))

    def _subscribe(self, topic):
        output = OUTPUTS[topic]
        heard = self.heard[topic] = {}

        def hear(message):
            heard[Time.from_msg(message.header.stamp).nanoseconds] = message

        return self.node.create_subscription(
            message_type(output.package, output.type_name), topic, hear, QoSProfile(depth=10))

    def _diagnosed(self, array):
        for status in array.status:
            values = {pair.key: pair.value for pair in status.values}
            self.diagnostics[status.name.split(': ')[-1]] = {**values, '': status.message}


@contextmanager
def running(*arguments, module='ros.refiner_node', **options):
    """Run a node with a bench around it."""
    rclpy.init()
    process = NodeProcess(*arguments, module=module)
    bench = Bench(**options)
    try:
        yield process, bench
    finally:
        bench.close()
        rclpy.try_shutdown()
        if process.alive:
            process.end()
        process.log.unlink()


def call(bench, kind, name, request):
    """Call a service and return the answer."""
    client = bench.node.create_client(kind, name)
    assert client.wait_for_service(PATIENCE)
    future = client.call_async(request)
    bench.wait_for(future.done, f'an answer of {name}')
    bench.node.destroy_client(client)
    return future.result()


def parameters(**values):
    """Return command line arguments that set parameters."""
    arguments = ['--ros-args']
    for name, value in values.items():
        arguments += ['-p', f'{name}:={value}']
    return arguments
