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
"""Planes of holes by geodesic distance in the image: the reference, on any torch device."""

from __future__ import annotations

import numpy as np
import torch

from graph_depth_refiner.core import geodesic_fill as stage


def geodesic_fill(d: torch.Tensor, m: torch.Tensor, color: torch.Tensor, sigma: float,
                  planes: torch.Tensor) -> None:
    """Give pixels of holes the plane of the measured pixel nearest in the image, in place."""
    height, width = d.shape
    fits = (m > 0) & ((d - planes[0]).abs() < stage.FIT_LIMIT * sigma)
    # one pixel depends on the one before it: this runs on the host
    sources = torch.from_numpy(_geodesic_sources(
        *(part.cpu().numpy() for part in (m <= 0, fits, color)))).to(d.device)  # H W
    y = torch.arange(height, device=d.device)[:, None]
    x = torch.arange(width, device=d.device)
    value, ux, uy = planes.flatten(1)[:, sources]  # H W each
    change = ux * (x - sources % width) + uy * (y - sources // width)
    value = value + stage.SLOPE_SHARE * change
    other = (m <= 0) & (value > 0) & ((value - planes[0]).abs() > stage.APART * sigma)
    planes.copy_(torch.where(other, torch.stack((value, ux, uy)), planes))


def _geodesic_sources(holes: np.ndarray, fits: np.ndarray, color: np.ndarray) -> np.ndarray:
    """Return for each pixel, H W, the number of the nearest pixel that fits; its own if none."""
    height, width = holes.shape
    stride = width + 2  # with a border that no path leads through
    unreached = stage.UNREACHED
    cost = np.pad(np.where(fits, 0, unreached), 1, constant_values=unreached).ravel().tolist()
    color = np.pad(color.astype(int), ((0, 0), (1, 1), (1, 1)))
    steps = []
    for (dy, dx), price in zip(stage.PREVIOUS, stage.STEP_COSTS):
        change = np.square(color - np.roll(color, (-dy, -dx), (1, 2))).sum(axis=0)
        steps.append((dy * stride + dx, (price + change).ravel().tolist()))
    numbers = np.pad(np.arange(holes.size).reshape(holes.shape), 1)
    sources = numbers.ravel().tolist()
    places = np.flatnonzero(np.pad(holes, 1)).tolist()
    for sweep in range(2 * stage.ROUNDS):
        side = 1 - 2 * (sweep % 2)  # back and forth
        for place in places[::side]:
            for step, prices in steps:
                other = place + side * step
                total = cost[other] + prices[max(place, other)]
                if total < cost[place]:
                    cost[place], sources[place] = total, sources[other]
    return np.array(sources).reshape(height + 2, stride)[1:-1, 1:-1].copy()
