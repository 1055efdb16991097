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
"""Planes of holes: from what was measured around them, along ways through the image."""

from __future__ import annotations

import numpy as np

from graph_depth_refiner.core.geodesic_fill import (
    APART,
    BACK,
    FITS,
    NO_WAY,
    ROUNDS,
    STEPS,
    STRAIGHT_ON,
)


def geodesic_fill(d: np.ndarray, m: np.ndarray, color: np.ndarray, sigma: float,
           planes: np.ndarray) -> None:
    """
    Give pixels of holes the plane at the end of the smoothest way through the image.

    A way costs the squared changes of colour along it, so that shading is cheap and the edge
    of an object dear. Windows see less of a small object than of what is behind it; where
    both lead to one surface the plane of the window stays, which is of more pixels.
    """
    y, x = np.nonzero(m <= 0)
    from_y, from_x = _geodesic_sources(m, np.abs(d - planes[0]) < FITS * sigma, color)
    found = planes[:, from_y, from_x]  # 3 N
    found[0] += STRAIGHT_ON * (found[1] * (x - from_x) + found[2] * (y - from_y))
    other = (found[0] > 0) & (np.abs(found[0] - planes[0, y, x]) > APART * sigma)
    planes[:, y[other], x[other]] = found[:, other]


def _geodesic_sources(m: np.ndarray, fits: np.ndarray, color: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column where the way to each pixel of a hole begins; its own if none."""
    stride = m.shape[1] + 2  # with a border that no way leads through
    cost = np.pad(np.where((m > 0) & fits, 0, NO_WAY), 1, constant_values=NO_WAY).ravel().tolist()
    color = np.pad(color.astype(int), ((0, 0), (1, 1), (1, 1)))
    steps = []
    for (dy, dx), price in zip(BACK, STEPS):
        change = np.square(color - np.roll(color, (-dy, -dx), (1, 2))).sum(axis=0)
        steps.append((dy * stride + dx, (price + change).ravel().tolist()))
    begins = list(range(len(cost)))
    holes = np.flatnonzero(np.pad(m <= 0, 1)).tolist()
    for sweep in range(2 * ROUNDS):
        side = 1 - 2 * (sweep % 2)  # back and forth
        for at in holes[::side]:
            for step, prices in steps:
                there = at + side * step
                total = cost[there] + prices[max(at, there)]
                if total < cost[at]:
                    cost[at], begins[at] = total, begins[there]
    y, x = np.divmod(np.array([begins[at] for at in holes], int), stride)
    return y - 1, x - 1
