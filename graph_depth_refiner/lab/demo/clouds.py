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
"""Clouds of the demo as the browser draws them."""

from __future__ import annotations

import math

import numpy as np

from graph_depth_refiner.core.camera import points
from graph_depth_refiner.files.pictures import image_colors
from graph_depth_refiner.frame import Intrinsics

MAX_POINTS = 80_000  # of a cloud; of larger images every second or third pixel is shown
POINT = np.dtype([('xyz', '<f4', 3), ('rgba', 'u1', 4)])  # 16 bytes, as page.py reads them


def cloud(depth: np.ndarray, image: np.ndarray, intrinsics: Intrinsics) -> np.ndarray:
    """Return the known points of a depth map (H W) in metres with their colours, N of POINT."""
    step = pixels_apart(depth)
    space = points(depth, intrinsics)[::step, ::step]
    known = (depth[::step, ::step] > 0) & np.isfinite(space[..., 2])
    made = np.zeros(int(known.sum()), POINT)
    made['xyz'] = space[known]
    made['rgba'][:, :3] = image_colors(image)[::step, ::step][known]
    made['rgba'][:, 3] = 255
    return made


def pixels_apart(depth: np.ndarray) -> int:
    """Return the pixels between two points of the cloud of a depth map."""
    return max(1, math.ceil(math.sqrt(depth.size / MAX_POINTS)))


def pivot(cloud_points: np.ndarray) -> list[float]:
    """Return the point that the view turns around: the middle of a cloud, on the optical axis."""
    if not len(cloud_points):
        return [0.0, 0.0, 1.0]
    return [0.0, 0.0, float(np.median(cloud_points['xyz'][:, 2]))]
