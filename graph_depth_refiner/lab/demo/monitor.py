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
"""Node `demo_monitor`: compares what comes in with what comes out, and says so."""

from __future__ import annotations

import json
from pathlib import Path
import queue
import threading
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
import numpy as np
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Image

from graph_depth_refiner.files.pictures import jpeg
from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.demo.clouds import cloud, pixels_apart
from graph_depth_refiner.lab.demo.rerun_log import RerunLog
from graph_depth_refiner.lab.demo.score import (
    draw,
    dropped,
    format_rows,
    INPUT,
    is_better,
    is_exact,
    median,
    Observation,
    panel_file,
    REALSENSE,
    REFINED,
    score,
    Stamp,
)
from graph_depth_refiner.lab.demo.web import Shown, WebPanel
from graph_depth_refiner.lab.evaluation.realsense import RealsenseFilter
from graph_depth_refiner.messages.conversions import decode_depth, decode_image
from graph_depth_refiner.ros.spinning import until_shutdown

TOPICS = (
    'image', 'depth', 'camera_info', 'truth/depth', 'truth/normals', 'depth_refined/image',
    'normals/image')
QUEUE = 10
WARM_UP = 5  # frames before the temporal filters have settled
KEPT = 40  # frames that are scored, spread over the time
REDRAW = 0.4  # seconds between two panels in the browser
LONG = 60.0  # seconds; frames of more than that are not kept until the end
GRACE = 1.0  # seconds after which a depth image of which nothing came back counts as dropped
MAX_PIXELS = 2 ** 24


class DemoMonitor(Node):
    """Collects complete sets of messages by stamp; judges them at the end, or at once."""

    def __init__(self) -> None:
        """Subscribe to everything."""
        super().__init__('demo_monitor')
        self._seconds = self.declare_parameter('seconds', 8.0).value
        self._patience = self.declare_parameter('patience', 240.0).value
        rate = self.declare_parameter('rate', 10.0).value
        self._png = Path(self.declare_parameter('png', 'demo.png').value)
        self._result = self.declare_parameter('result', '').value
        port = self.declare_parameter('web', -1).value
        place = self.declare_parameter('rerun', '').value
        self._every = max(1, round(self._seconds * rate / KEPT))
        self._web = WebPanel(port) if port >= 0 else None
        if self._web:
            self.get_logger().info(f'watch it at {self._web.address}')
        self._sets: dict[Stamp, dict[str, Any]] = {}
        self._latencies: list[float] = []
        self._came: dict[Stamp, float] = {}  # when each depth image came
        self._refined: set[Stamp] = set()
        self._diagnostics: dict[str, str] = {}
        self._work: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._rerun = RerunLog(place) if place else None
        self._judge = _Judge(self._every, self._web, self._rerun)
        self._thread: threading.Thread | None = None
        self._started: float | None = None
        self._created = time.monotonic()
        self.finished = threading.Event()
        for topic in TOPICS:
            self.create_subscription(
                CameraInfo if topic == 'camera_info' else Image, topic,
                lambda message, topic=topic: self._collect(topic, message), QUEUE)
        self.create_subscription(DiagnosticArray, '/diagnostics', self._diagnose, QUEUE)
        self._timer = self.create_timer(0.2, self._look_at_the_clock)
        if self._web or self._seconds > LONG:
            self._judge_live()

    def _collect(self, topic: str, message: Any) -> None:
        time_of = message.header.stamp
        stamp = (time_of.sec, time_of.nanosec)
        if topic == 'depth':
            self._came[stamp] = time.monotonic()
        if topic == 'depth_refined/image':
            self._refined.add(stamp)
            now = self.get_clock().now().nanoseconds
            self._latencies.append((now - stamp[0] * 10 ** 9 - stamp[1]) * 1e-6)
        parts = self._sets.setdefault(stamp, {})
        parts[topic] = message
        if all(name in parts for name in TOPICS):
            # what is older and incomplete by now will stay so
            self._sets = {k: v for k, v in self._sets.items() if k > stamp}
            if self._started is None:
                self._started = time.monotonic()
            self._work.put({**parts, 'number': len(self._came)})

    def _diagnose(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith('Refinement'):
                self._diagnostics = {pair.key: pair.value for pair in status.values}
                if self._rerun:
                    self._rerun.figures(_seconds(message.header.stamp), self._diagnostics)

    def _look_at_the_clock(self) -> None:
        now = time.monotonic()
        if self._started is None:
            if now - self._created > self._patience:
                self.destroy_timer(self._timer)
                self.get_logger().error(self._what_is_missing())
                self._finish({'better': False, 'frames': 0})
        elif now - self._started > self._seconds:
            self.destroy_timer(self._timer)
            self._conclude()

    def _what_is_missing(self) -> str:
        seen = {topic for parts in self._sets.values() for topic in parts}
        missing = [topic for topic in TOPICS if topic not in seen]
        return (
            f'demo: expected a refined frame within {self._patience:g} s, got no message on '
            f'{", ".join(missing) or "topics with equal stamps"}')

    def _conclude(self) -> None:
        """Print the table, write the panel, tell whoever waits."""
        asked = time.monotonic()
        self._work.put(None)
        if self._thread:
            self._thread.join()
        else:
            self._judge.run(self._work)  # only now: it would take time from the refiner
        frames = self._judge.kept
        rows = {method: score(frames, method) for method in (INPUT, REALSENSE, REFINED)}
        rows[REALSENSE]['ms_per_frame'] = median(self._judge.milliseconds)
        rows[REFINED].update(
            ms_per_frame=_number(self._diagnostics.get('latency p50 (ms)')),
            latency_ms=median(self._latencies),
            drops=dropped(self._came, self._refined, self._started, asked - GRACE))
        print('\n' + format_rows(rows))
        if not is_exact(frames[-1]):
            print('no ground truth: median error at spots of the measurement that were withheld')
        self._png.write_bytes(panel_file(frames[-1]))
        better = is_better(rows)
        print(f'{self._judge.judged} frames; refined is '
              f'{"better" if better else "NOT better"} than the input; panel in {self._png}',
              flush=True)
        self._finish({'better': better, 'frames': self._judge.judged, 'rows': rows})

    def _finish(self, result: dict[str, Any]) -> None:
        if self._result:
            Path(self._result).write_text(json.dumps(result, allow_nan=False))
        if self._web is None or not result['frames']:
            if self._rerun:
                self._rerun.close()
            self.finished.set()
            return
        # the browser goes on until the user has seen enough
        self._judge = _Judge(10 ** 9, self._web, self._rerun)
        self._work = queue.Queue()
        self._judge_live()

    def _judge_live(self) -> None:
        self._thread = threading.Thread(target=self._judge.run, args=(self._work,), daemon=True)
        self._thread.start()


class _Judge:
    """Runs the rival filter on every frame, keeps some of them, shows the newest."""

    def __init__(self, every: int, web: WebPanel | None, rerun: RerunLog | None) -> None:
        self.kept: list[Observation] = []
        self.judged = 0
        self.milliseconds: list[float] = []
        self._every, self._web, self._rerun = every, web, rerun
        self._filter = RealsenseFilter()
        self._drawn = 0.0

    def run(self, work: queue.Queue) -> None:
        """Judge until None comes."""
        while (parts := work.get()) is not None:
            seen = self._observe(parts)
            if self.judged >= WARM_UP and (self.judged - WARM_UP) % self._every == 0:
                self.kept.append(seen)
            self.judged += 1
            if self._rerun:
                self._rerun.frame(_seconds(parts['depth'].header.stamp), seen)
            if self._web and time.monotonic() - self._drawn > REDRAW and work.empty():
                self._show(seen, parts['number'])
        if not self.kept and self.judged:
            self.kept.append(seen)

    def _observe(self, parts: dict[str, Any]) -> Observation:
        depth, _ = decode_depth(parts['depth'], MAX_PIXELS)
        start = time.perf_counter()
        rival = self._filter.filter(depth)
        self.milliseconds.append(1e3 * (time.perf_counter() - start))
        info = parts['camera_info']
        return Observation(
            decode_image(parts['image'], MAX_PIXELS),
            Intrinsics(info.k[0], info.k[4], info.k[2], info.k[5]),
            decode_depth(parts['truth/depth'], MAX_PIXELS)[0], _vectors(parts['truth/normals']),
            {INPUT: depth, REALSENSE: rival,
             REFINED: decode_depth(parts['depth_refined/image'], MAX_PIXELS)[0]},
            {REFINED: _vectors(parts['normals/image'])})

    def _show(self, seen: Observation, number: int) -> None:
        self._drawn = time.monotonic()
        rows = {method: score([seen], method) for method in seen.depths}
        clouds = (cloud(seen.depths[method], seen.image, seen.intrinsics)
                  for method in (INPUT, REFINED))
        focal = seen.intrinsics.fx / pixels_apart(seen.true_depth)
        self._web.show(Shown(number, format_rows(rows), jpeg(draw(seen)), *clouds, focal))


def _seconds(stamp: Any) -> float:
    return stamp.sec + 1e-9 * stamp.nanosec


def _vectors(message: Image) -> np.ndarray:
    """Return a 32FC3 image as H W 3."""
    return np.frombuffer(message.data, np.float32).reshape(message.height, message.width, 3)


def _number(text: str | None) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def main() -> int:
    """Run the node until it has said what it has to say."""
    rclpy.init()
    try:
        node = DemoMonitor()
        with until_shutdown():
            while rclpy.ok() and not node.finished.is_set():
                rclpy.spin_once(node, timeout_sec=0.1)
    except KeyboardInterrupt:
        pass
    except ValueError as error:
        rclpy.logging.get_logger('demo_monitor').error(str(error))
        return 2
    finally:
        rclpy.try_shutdown()
    return 0
