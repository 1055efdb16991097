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
"""Lists of stamped files and poses, as TUM RGB-D writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from graph_depth_refiner.files.reading import read_text

MAX_GAP = 0.02  # seconds between two stamps that belong together, as the data set's own tool


def associate(root: Path) -> dict[str, tuple[float, str, str]]:
    """Return stamp, image and depth file of each pair, by the name of its depth file."""
    path = root / 'associations.txt'
    if path.is_file():
        rows = _rows(path, 4)
        return {Path(row[3]).stem: (_stamp(path, row[2]), row[1], row[3]) for row in rows}
    images = [(_stamp(root, s), name) for s, name in _rows(root / 'rgb.txt', 2)]
    depths = [(_stamp(root, s), name) for s, name in _rows(root / 'depth.txt', 2)]
    pairs = {}
    for stamp, depth in depths:
        gap, image = min(((abs(s - stamp), name) for s, name in images), default=(np.inf, ''))
        if gap <= MAX_GAP:
            pairs[Path(depth).stem] = (stamp, image, depth)
    return pairs


def read_trajectory(path: Path) -> np.ndarray:
    """Return stamps and poses (tx ty tz qx qy qz qw) as N 8, or 0 8 where there is no file."""
    if not path.is_file():
        return np.zeros((0, 8))
    return np.array([[_stamp(path, v) for v in row] for row in _rows(path, 8)]).reshape(-1, 8)


def pose_near(trajectory: np.ndarray, stamp: float) -> np.ndarray | None:
    """Return the pose at a stamp as a matrix from camera to world, or None where none is near."""
    if not len(trajectory):
        return None
    nearest = trajectory[np.argmin(np.abs(trajectory[:, 0] - stamp))]  # 8
    if abs(nearest[0] - stamp) > MAX_GAP:
        return None
    x, y, z, w = nearest[4:] / np.linalg.norm(nearest[4:])
    pose = np.eye(4)
    pose[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]
    pose[:3, 3] = nearest[1:4]
    return pose


def _rows(path: Path, columns: int) -> list[list[str]]:
    if not path.is_file():
        raise ValueError(f'{path}: expected a list of stamped files, got nothing there')
    lines = [line.split() for line in read_text(path).splitlines()]
    rows = [row for row in lines if row and not row[0].startswith('#')]
    for row in rows:
        if len(row) != columns:
            raise ValueError(f'{path}: expected {columns} columns, got {" ".join(row)!r}')
    return rows


def _stamp(path: Path, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f'{path}: expected a number, got {text!r}') from None
