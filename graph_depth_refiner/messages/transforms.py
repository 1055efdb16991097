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
Transforms between frames: from messages and texts, interpolated in time, and along a tree.

A transform is a matrix (4 4) that takes points of a child frame to its parent: P' = R P + t.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
import math
from typing import Any

import numpy as np

from graph_depth_refiner.config import transform_numbers

# seconds; poses further apart say little about what lies between them
LONGEST_GAP = 0.5
ROW = 7  # x y z of the position, x y z w of the orientation
ALIKE = 1e-9  # sine of an angle between rotations below which they are interpolated linearly


def matrix_of(row: np.ndarray) -> np.ndarray:
    """Return the matrix (4 4) of x y z and a quaternion x y z w of length 1."""
    x, y, z, w = row[3:]
    matrix = np.eye(4)
    matrix[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]
    matrix[:3, 3] = row[:3]
    return matrix


def checked(name: str, numbers: Any) -> np.ndarray:
    """Return x y z and a quaternion x y z w, made of length 1; ValueError if it is none."""
    row = np.asarray(numbers, float)
    length = np.linalg.norm(row[3:])
    if not (np.isfinite(length) and length > 0.5):
        raise ValueError(f'{name}.orientation: expected a quaternion, got {row[3:].tolist()}')
    if not np.isfinite(row).all():
        raise ValueError(f'{name}.position: expected finite numbers, got {row[:3].tolist()}')
    row[3:] /= length
    return row


def pose_row(name: str, pose: Any) -> np.ndarray:
    """Return the numbers of a Pose message."""
    p, q = pose.position, pose.orientation
    return checked(name, (p.x, p.y, p.z, q.x, q.y, q.z, q.w))


def transform_row(name: str, transform: Any) -> np.ndarray:
    """Return the numbers of a Transform message."""
    p, q = transform.translation, transform.rotation
    return checked(name, (p.x, p.y, p.z, q.x, q.y, q.z, q.w))


def parse_transform(name: str, text: str) -> np.ndarray | None:
    """Return the matrix (4 4) of a text 'x y z qx qy qz qw', None where it is empty."""
    numbers = transform_numbers(name, text)
    return matrix_of(checked(name, numbers)) if numbers else None


def interpolated(before: np.ndarray, after: np.ndarray, share: float) -> np.ndarray:
    """Return the numbers between two poses: positions linearly, rotations by slerp."""
    cosine = float(before[3:] @ after[3:])
    angle = math.acos(min(1.0, abs(cosine)))
    shares = np.array([1 - share, share])
    if math.sin(angle) > ALIKE:  # Shoemake, 1985
        shares = np.sin(shares * angle) / math.sin(angle)
    row = (1 - share) * before + share * after
    # of the two quaternions of a rotation the one that is near
    row[3:] = shares[0] * before[3:] + math.copysign(shares[1], cosine) * after[3:]
    row[3:] /= np.linalg.norm(row[3:])
    return row


class Track:
    """One transform over time, in any order of arrival; the oldest go where there are too many."""

    def __init__(self, most: int = 0) -> None:
        """Start empty; `most` are kept, all if that is 0."""
        self._stamps, self._rows, self._most = array('d'), array('d'), most

    def add(self, stamp: float, row: np.ndarray) -> None:
        """Take in what `checked` returns; a second one of the same stamp is left out."""
        at = bisect_left(self._stamps, stamp)
        if at < len(self._stamps) and self._stamps[at] == stamp:
            return
        self._stamps.insert(at, stamp)
        self._rows[at * ROW:at * ROW] = array('d', row.tobytes())
        if self._most and len(self._stamps) > self._most:
            del self._stamps[0], self._rows[:ROW]

    @property
    def newest(self) -> float:
        """Return the newest stamp, minus infinity where there is none."""
        return self._stamps[-1] if self._stamps else -math.inf

    def at(self, stamp: float) -> np.ndarray | None:
        """Return the matrix (4 4) at a moment between two poses; None outside and in gaps."""
        at = bisect_left(self._stamps, stamp)
        if at == len(self._stamps):
            return None
        if self._stamps[at] == stamp:
            return matrix_of(self._row(at))
        gap = self._stamps[at] - self._stamps[at - 1] if at else math.inf
        if gap > LONGEST_GAP:
            return None
        share = (stamp - self._stamps[at - 1]) / gap
        return matrix_of(interpolated(self._row(at - 1), self._row(at), share))

    def clear(self) -> None:
        """Forget all."""
        del self._stamps[:], self._rows[:]

    def _row(self, at: int) -> np.ndarray:
        return np.array(self._rows[at * ROW:(at + 1) * ROW])


class TransformTree:
    """The transforms of /tf and /tf_static."""

    def __init__(self) -> None:
        """Start without frames."""
        self._static: dict[str, tuple[str, np.ndarray]] = {}  # by child: parent, matrix
        self._tracks: dict[str, tuple[str, Track]] = {}

    def add(self, message: Any, stamp: float, static: bool) -> None:
        """Take in a TransformStamped message; raises ValueError where it is none."""
        parent, child = bare(message.header.frame_id), bare(message.child_frame_id)
        row = transform_row(f'tf {parent} to {child}', message.transform)
        if static:
            self._static[child] = parent, matrix_of(row)
            return
        known = self._tracks.get(child)
        if known is None or known[0] != parent:
            known = self._tracks[child] = parent, Track()
        known[1].add(stamp, row)

    def lookup(self, target: str, source: str, stamp: float) -> np.ndarray | None:
        """Return the matrix (4 4) from `source` to `target` at a moment, None where unknown."""
        to_target, to_source = self._to_root(target, stamp), self._to_root(source, stamp)
        common = next((frame for frame in to_source if frame in to_target), None)
        if common is None:
            return None
        return np.linalg.inv(to_target[common]) @ to_source[common]

    def _to_root(self, frame: str, stamp: float) -> dict[str, np.ndarray]:
        """Return the matrices from a frame to itself and to each of its ancestors."""
        frame, matrix = bare(frame), np.eye(4)
        found = {frame: matrix}
        while (step := self._step(frame, stamp)) is not None:
            frame, matrix = step[0], step[1] @ matrix
            if frame in found:  # a loop is no tree
                break
            found[frame] = matrix
        return found

    def _step(self, frame: str, stamp: float) -> tuple[str, np.ndarray] | None:
        if frame in self._static:
            return self._static[frame]
        if frame not in self._tracks:
            return None
        parent, track = self._tracks[frame]
        matrix = track.at(stamp)
        return None if matrix is None else (parent, matrix)


def bare(frame: str) -> str:
    """Return the name of a frame without the slash that it had before tf2."""
    return frame.lstrip('/')
