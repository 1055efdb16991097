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
"""Each pixel's vote between the planes around it: edges, thin things and creases."""

from __future__ import annotations

import numpy as np

from graph_depth_refiner.core.plane_selection import (
    CAP,
    DIFFERENT,
    FADED,
    FAR,
    FAR_FADE,
    NEAR,
    STEEP,
    VOTERS,
    WARPED_SHARE,
)


def select_planes(d: np.ndarray, m: np.ndarray, color: np.ndarray, start: np.ndarray,
         warped: np.ndarray, frame_count: np.ndarray, warped_color: np.ndarray, sigma: float,
         color_sigma: float, slopes: bool = True) -> np.ndarray:
    """
    Return for every pixel the plane, 3 H W, that suits its look-alikes best.

    The planes that stand for election are those of the start and the carried ones of the
    pixel and around it. Voters are the measurements and the carried planes in a window,
    weighted by the likeness of their colour (C H W, uint8). Without `slopes` planes that
    differ in slope only are taken as equal.
    """
    steep = STEEP if slopes else 0.0
    planes, is_candidate = _candidates(start, warped, frame_count, sigma, steep)  # N 3 H W, N H W
    is_candidate[1:] &= _ambiguous(start, warped, frame_count, sigma, steep)
    costs = np.where(is_candidate, 0, np.inf).astype(np.float32)  # N H W
    for dy, dx in VOTERS:
        there = planes[:, 0] + planes[:, 1] * dx + planes[:, 2] * dy  # N H W
        far = FAR_FADE * (dx * dx + dy * dy)
        for values, weights, look, share in (
                (d, m, color, 1.0), (warped[0], frame_count, warped_color, WARPED_SHARE)):
            alike = _color_weight(color, _moved(look, dy, dx), color_sigma, far)
            weight = share * alike * _moved(weights, dy, dx)  # H W
            costs += weight * np.minimum(np.abs(_moved(values, dy, dx) - there), CAP * sigma)
    best = np.argmin(costs, axis=0)
    return np.take_along_axis(planes, best[None, None], 0)[0].astype(np.float32)


def _candidates(start, warped, frame_count, sigma, steep):
    """Return the planes around each pixel and which of them are new; its own comes first."""
    planes, is_candidate = [], []
    for n, (dy, dx) in enumerate(NEAR + FAR):
        inside = _moved(np.ones(frame_count.shape, np.float32), dy, dx) > 0
        fields = [(start, inside), (warped, _moved(frame_count, dy, dx) > 0)]
        for field, known in fields[:2 if n < len(NEAR) else 1]:
            plane = _moved(field, dy, dx)  # 3 H W
            plane[0] -= plane[1] * dx + plane[2] * dy
            new = known & (plane[0] > 0)
            for other, was_candidate in zip(planes, is_candidate):
                new &= ~(was_candidate & _same(plane, other, sigma, steep))
            planes.append(plane)
            is_candidate.append(new)
    return np.stack(planes), np.stack(is_candidate)


def _ambiguous(start, warped, frame_count, sigma, steep):
    """Return where planes farther off, or the carried one, are not the pixel's own, H W."""
    differs = (frame_count > 0) & ~_same(start, warped, sigma, steep)
    for dy, dx in FAR:
        inside = _moved(np.ones(frame_count.shape, np.float32), dy, dx) > 0
        plane = _moved(start, dy, dx)
        plane[0] -= plane[1] * dx + plane[2] * dy
        differs |= inside & ~_same(start, plane, sigma, steep)
    return differs


def _same(one, other, sigma, steep):
    turn = np.abs(one[1:] - other[1:]).sum(0) * steep
    return (np.abs(one[0] - other[0]) <= DIFFERENT * sigma) & (turn <= sigma)


def _color_weight(color, other, color_sigma, far):
    color_distance = ((color.astype(np.float32) - other) ** 2).sum(0)  # H W
    faded = color_distance * (0.5 / (255.0 * color_sigma) ** 2) + far
    return np.maximum(0, 1 - faded / FADED) ** 8


def _moved(values: np.ndarray, dy: int, dx: int) -> np.ndarray:
    """Return the values of the neighbour at (dy, dx), 0 beyond the border."""
    height, width = values.shape[-2:]
    result = np.zeros(values.shape, np.float32)
    top, left = max(0, -dy), max(0, -dx)
    bottom, right = min(height, height - dy), min(width, width - dx)
    if top < bottom and left < right:
        result[..., top:bottom, left:right] = \
            values[..., top + dy:bottom + dy, left + dx:right + dx]
    return result
