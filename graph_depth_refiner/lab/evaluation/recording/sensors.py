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
How noisy a depth sensor is: what the reference, the bilateral filter and the average go by.

The deviation is a z + b z^2 metres: a share of the depth for what calibration and ToF leave, and
the square of the depth for triangulation. The figures are rough on purpose; they decide which
values belong to one surface, and no score is divided by them.
"""

from __future__ import annotations

from dataclasses import dataclass
import re

import numpy as np

from graph_depth_refiner.lab.evaluation.recording import alignment
from graph_depth_refiner.lab.evaluation.recording.sources import Recording

PROBED = 6  # pairs of frames that the noise is measured on
LEAST_PIXELS = 500  # of a range of depths that counts in it
SEEN_SHARE = 0.55  # of the modelled deviation shows from one frame to the next: the rest stays
RANGES = np.array([0.3, 0.6, 1.0, 1.5, 2.2, 3.2, 4.5, 6.5])  # metres, where the noise is compared


@dataclass(frozen=True)
class Sensor:
    """A kind of depth sensor."""

    name: str
    linear: float  # a, metres per metre
    quadratic: float  # b, metres per square metre
    words: str  # that give it away in names and descriptions, as a pattern
    ahead: int = 30  # frames behind the judged one that make its reference
    agreeing: int = 8  # values of a pixel that have to agree

    def noise(self, depth: np.ndarray) -> np.ndarray:
        """Return about the deviation of a measured depth, metres."""
        return self.linear * depth + self.quadratic * depth * depth


SENSORS = {sensor.name: sensor for sensor in (
    # Khoshelham and Elberink 2012: 1.4 mm / m^2 for the first Kinect
    Sensor('structured-light', 0.002, 0.0015,
           r'kinect.?v?1|structured|primesense|xtion|openni|astra|freiburg|tum'),
    # D400 data sheet: 2 % at 2 m at most; subpixel 0.1 px at f b = 25 to 30 px m
    Sensor('active-stereo', 0.002, 0.004, r'd4\d\d|d4xx|active.?stereo|realsense|aligned_depth'),
    # few frames show the same place where a ToF is slow, so more are taken and fewer must agree
    Sensor('tof', 0.004, 0.001, r'tof|time.?of.?flight|hololens|l515|azure|k4a|kinect.?v?2|femto',
           ahead=90, agreeing=4),
    # 0.25 px at f b = 40 px m
    Sensor('stereo', 0.002, 0.006, r'zed|oak|disparity|/stereo/|stereo'),
)}


def choose_sensor(recording: Recording, name: str) -> tuple[Sensor, str]:
    """Return the sensor of that name, or else the likeliest, and where that is known from."""
    if name:
        return SENSORS[name], 'as told'
    text = recording.description.lower()
    for kind in ('tof', 'structured-light', 'active-stereo', 'stereo'):
        found = re.search(rf'(?<![a-z])(?:{SENSORS[kind].words})(?![a-z])', text)
        if found:
            return SENSORS[kind], f'guessed from {found.group()!r}'
    depths, spread = measured_noise(recording)
    if not depths.size:
        return SENSORS['structured-light'], 'nothing tells which'
    off = {kind: float(np.median(np.abs(np.log(spread / (SEEN_SHARE * sensor.noise(depths))))))
           for kind, sensor in SENSORS.items()}
    level = ', '.join(f'{1e3 * s:.1f} mm at {z:.1f} m' for z, s in zip(depths, spread))
    return SENSORS[min(off, key=off.get)], (
        f'guessed from the noise from frame to frame, {level}; --sensor tells it better')


def measured_noise(recording: Recording) -> tuple[np.ndarray, np.ndarray]:
    """Return depths and the deviations from frame to frame there, both in metres."""
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for number in np.unique(np.linspace(0, len(recording) - 2, PROBED).round().astype(int)):
        before, now = recording.frame(int(number)), recording.frame(int(number) + 1)
        motion, share = alignment.Aligner(now).align(before, np.eye(4))
        if share < alignment.NEIGHBOUR_SHARE:
            continue
        moved, _ = alignment.warp(before.depth, motion, now.intrinsics)
        both = (moved > 0) & (now.depth > 0)
        found.append((now.depth[both], moved[both]))
    if not found:
        return np.zeros(0), np.zeros(0)
    now_depth, moved = (np.concatenate(part) for part in zip(*found))
    depths, spread = [], []
    for near, far in zip(RANGES, RANGES[1:]):
        inside = (now_depth >= near) & (now_depth < far)
        if inside.sum() < LEAST_PIXELS:
            continue
        change = (moved - now_depth)[inside]
        deviation = 1.4826 * np.median(np.abs(change - np.median(change))) / np.sqrt(2)
        if deviation > 0:
            depths.append(np.median(now_depth[inside]))
            spread.append(deviation)
    return np.array(depths), np.array(spread)
