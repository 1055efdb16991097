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
"""Judge methods on one recording, without ground truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from graph_depth_refiner.lab.evaluation.recording import alignment
from graph_depth_refiner.lab.evaluation.recording.methods import Output, Setting, stream
from graph_depth_refiner.lab.evaluation.recording.reference import Reference, ReferenceCache
from graph_depth_refiner.lab.evaluation.recording.regions import find_regions, NAMES, Regions
from graph_depth_refiner.lab.evaluation.recording.scores import (
    jitter,
    LEAST_PIXELS,
    MEASURES,
    score,
)
from graph_depth_refiner.lab.evaluation.recording.sensors import Sensor
from graph_depth_refiner.lab.evaluation.recording.sources import Recording

LEAST_LATER = 16  # frames after the last judged one
LEAST_KNOWN = 0.1  # share of the pixels that a reference must know
FEW_ALIGNED = 0.5  # share of the later frames below which it is said how few there are
HARDLY_MOVES = 2.0  # px; less than this leaves the sensor's fixed pattern in a reference
UNCERTAIN = 1 / 3  # of the input's error: a reference as uncertain as this cannot judge finely

Row = dict  # recording, frame, method and every measure there is


@dataclass(frozen=True)
class Schedule:
    """Which frames are judged, each as the last of a stream from the first frame on."""

    first: int = 20  # earlier frames are history only
    every: int = 8
    frames: int = 6  # at most
    ahead: int = 0  # later frames for a reference; 0: what the sensor needs

    def judged(self, recording: Recording, sensor: Sensor) -> dict[int, range]:
        """Return the frames to judge, each with the later frames for its reference."""
        length, ahead = len(recording), self.ahead or sensor.ahead
        needed = self.first + 1 + min(LEAST_LATER, ahead)
        if length < needed:
            raise ValueError(
                f'{recording.name}: expected at least {needed} frames ({self.first} before the '
                f'first judged one and {needed - self.first - 1} after it), got {length}')
        last = max(self.first, length - 1 - ahead)
        numbers = range(self.first, last + 1, self.every)[:self.frames]
        return {n: range(n + 1, min(n + 1 + ahead, length)) for n in numbers}


@dataclass(frozen=True, eq=False)
class JudgedFrame:
    """One frame with what is known about it."""

    number: int
    reference: Reference
    regions: Regions
    motion: np.ndarray  # 4 4, of the frame before to this one


@dataclass(eq=False)
class Verdict:
    """What came out for one recording."""

    recording: str
    sensor: str
    sensor_reason: str
    at_rest: bool
    frames: list[int]
    notes: list[str] = field(default_factory=list)  # where the reference is poor
    rows: list[Row] = field(default_factory=list)
    history: dict[str, float] = field(default_factory=dict)  # percent of frames, by method

    def table(self) -> dict[str, dict[str, float]]:
        """Return the mean of every measure over the frames that have it, by method."""
        methods = dict.fromkeys(row['method'] for row in self.rows)
        table = {}
        for method in methods:
            rows = [row for row in self.rows if row['method'] == method]
            table[method] = {
                key: float(np.mean(values)) for key in MEASURES
                if (values := [row[key] for row in rows if key in row])}
            if method in self.history:
                table[method]['history'] = self.history[method]
        return table


Seen = Callable[[JudgedFrame, str, Output], None]


def judge(setting: Setting, sensor_reason: str, schedule: Schedule, cache: ReferenceCache,
          methods: list[str], seen: Seen = lambda frame, method, output: None) -> Verdict:
    """Judge methods on a recording; `seen` is shown every result that is judged."""
    recording = setting.recording
    wanted = schedule.judged(recording, setting.sensor)
    frames, notes = _judged_frames(setting, wanted, cache)
    verdict = Verdict(
        recording.name, setting.sensor.name, sensor_reason, setting.at_rest, list(frames), notes)
    for method in methods:
        _judge_method(setting, method, frames, verdict, seen)
    return verdict


def _judge_method(setting: Setting, method: str, frames: dict[int, JudgedFrame],
                  verdict: Verdict, seen: Seen) -> None:
    camera = setting.recording.camera
    wanted = sorted({n - 1 for n in frames} | set(frames))
    last: Output | None = None
    history: list[bool] = []
    for output in stream(method, setting, wanted):
        if output.number and output.history is not None:
            history.append(output.history)
        frame = frames.get(output.number)
        if frame is not None:
            row = {'recording': verdict.recording, 'frame': output.number, 'method': method,
                   **score(output.estimate, frame.regions, camera, setting.at_rest),
                   'ms': output.milliseconds}
            if last is not None and last.number == output.number - 1:
                row.update(jitter(output.estimate.depth, last.estimate.depth, frame.motion,
                                  frame.regions, camera))
            verdict.rows.append(row)
            seen(frame, method, output)
        last = output
    if history:
        verdict.history[method] = float(100 * np.mean(history))


def _judged_frames(setting: Setting, wanted: dict[int, range],
                   cache: ReferenceCache) -> tuple[dict[int, JudgedFrame], list[str]]:
    """Return the frames that can be judged, and sentences about what cannot."""
    recording, at_rest = setting.recording, setting.at_rest
    frames: dict[int, JudgedFrame] = {}
    notes, aligned = [], 0
    steps = {} if at_rest else alignment.steps(recording, max(wanted))
    if at_rest:
        notes.append(
            'the camera stands still, so that later frames repeat the fixed pattern of the '
            'sensor: planes are judged against planes fitted to them, other smooth surfaces are '
            'not judged')
    for number, later in wanted.items():
        reference = cache.reference(recording, number, later, setting.sensor, at_rest)
        aligned += reference.aligned
        known = np.isfinite(reference.depth).mean()
        notes += [f'frame {number}: {note}' for note in _doubts(reference, len(later), at_rest)]
        if known < LEAST_KNOWN:
            notes.append(
                f'frame {number}: not judged, the later frames agree on {100 * known:.0f} % of '
                f'the pixels and {100 * LEAST_KNOWN:.0f} % are needed')
            continue
        regions = find_regions(reference, recording.frame(number), at_rest)
        motion = np.eye(4) if at_rest else np.linalg.inv(steps[number])
        frames[number] = JudgedFrame(number, reference, regions, motion)
    if not frames:
        why = 'no later frame could be aligned to any judged one' if not aligned else (
            f'the later frames agree on less than {100 * LEAST_KNOWN:.0f} % of the pixels')
        raise ValueError(
            f'{recording.name}: expected later frames that show the same places, got none: {why}')
    return frames, notes + _region_notes(recording, frames, at_rest)


def _doubts(reference: Reference, later: int, at_rest: bool) -> list[str]:
    if at_rest:
        return []
    doubts = []
    if reference.aligned < FEW_ALIGNED * later:
        doubts.append(f'only {reference.aligned} of {later} later frames could be aligned')
    if reference.aligned and reference.shift < HARDLY_MOVES:
        doubts.append(
            f'the camera moves by {reference.shift:.1f} px only in the frames after it, which '
            'leaves the fixed pattern of the sensor in the reference')
    return doubts


def _region_notes(recording: Recording, frames: dict[int, JudgedFrame],
                  at_rest: bool) -> list[str]:
    """Say which regions are missing or known too poorly."""
    notes = []
    for name in NAMES:
        if at_rest and name == 'curved':
            continue  # said already
        small = [n for n, frame in frames.items()
                 if frame.regions.judged(name).sum() < LEAST_PIXELS]
        if small:
            notes.append(
                f'{name}: not judged in frame{"s" if len(small) > 1 else ""} '
                f'{", ".join(map(str, small))}, fewer than {LEAST_PIXELS} pixels with a reference')
        if name == 'hole' or (at_rest and name == 'plane'):
            continue  # nothing was measured there, or the reference is a plane
        pairs = [_certainty(recording, frame, name) for n, frame in frames.items()
                 if n not in small]
        unsure, off = np.mean(pairs, axis=0) if pairs else (0.0, 0.0)
        if unsure > UNCERTAIN * off:
            notes.append(
                f'{name}: the reference is uncertain by {unsure:.2f} % where the input is off by '
                f'{off:.2f} %; differences smaller than that mean nothing')
    return notes


def _certainty(recording: Recording, frame: JudgedFrame, name: str) -> tuple[float, float]:
    """Return median uncertainty of the reference and error of the input, both in percent."""
    area = frame.regions.judged(name) & np.isfinite(frame.reference.uncertainty)
    if not area.any():
        return 100.0, 0.0
    truth = frame.reference.depth[area]
    off = np.abs(recording.frame(frame.number).depth[area] - truth) / truth
    return (100 * float(np.median(frame.reference.uncertainty[area] / truth)),
            100 * float(np.median(off)))
