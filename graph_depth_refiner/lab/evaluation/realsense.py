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
"""The spatial and temporal post-processing that depth cameras ship with, as documented."""

from __future__ import annotations

import numpy as np

SPATIAL_ALPHA, SPATIAL_ROUNDS = 0.5, 2
TEMPORAL_ALPHA = 0.4
DELTA = 20.0  # in 1/32 pixels of disparity, of the spatial and the temporal filter
PERSISTENCE = (4, 2)  # a hole keeps the old value if it was valid in 2 of the last 4 frames
FOCAL_BASELINE = 13.6  # pixels times metres: 5 cm at 320x240, of the disparity meant


class RealsenseFilter:
    """Spatial, then temporal filter in the disparity domain, both as documented."""

    def __init__(self, focal_baseline: float = FOCAL_BASELINE) -> None:
        """Start without history; focal length times baseline, px m, says what disparity is."""
        self._scale = 32 * focal_baseline
        self.reset()

    def reset(self) -> None:
        """Forget all earlier frames."""
        self._last: np.ndarray | None = None
        self._valid: list[np.ndarray] = []

    def filter(self, depth: np.ndarray) -> np.ndarray:
        """Return the filtered depth in metres, NaN in holes, H W."""
        valid = np.isfinite(depth) & (depth > 0)
        disparity = np.zeros(depth.shape)
        np.divide(self._scale, depth, out=disparity, where=valid)
        disparity = self._temporal(_spatial(disparity))
        filtered = np.full(depth.shape, np.nan, np.float32)
        np.divide(self._scale, disparity, out=filtered, where=disparity > 0,
                  casting='same_kind')
        return filtered

    def _temporal(self, disparity: np.ndarray) -> np.ndarray:
        """Blend with the last frame where it is close; hold what was there in holes."""
        valid = disparity > 0
        result = disparity
        if self._last is not None and self._last.shape == disparity.shape:
            known = self._last > 0
            close = valid & known & (np.abs(disparity - self._last) < DELTA)
            blended = TEMPORAL_ALPHA * disparity + (1 - TEMPORAL_ALPHA) * self._last
            frames, needed = PERSISTENCE
            steady = np.sum(self._valid[-frames:], axis=0) >= needed
            result = np.where(close, blended, np.where(~valid & known & steady, self._last,
                                                       disparity))
        else:
            self._valid = []
        self._last = result
        self._valid = [*self._valid[-PERSISTENCE[0]:], valid]
        return result


def _spatial(disparity: np.ndarray) -> np.ndarray:
    """Smooth recursively along rows and columns, both ways, within steps of DELTA."""
    result = disparity.copy()
    for _ in range(SPATIAL_ROUNDS):
        for lines in (result.T, result.T[::-1], result, result[::-1]):
            _recurse(lines)
    return result


def _recurse(lines: np.ndarray) -> None:
    """Run y = alpha x + (1 - alpha) y over the first axis, in place; restart at jumps."""
    state = lines[0].copy()
    for line in lines[1:]:
        close = (line > 0) & (state > 0) & (np.abs(line - state) < DELTA)
        line[close] = SPATIAL_ALPHA * line[close] + (1 - SPATIAL_ALPHA) * state[close]
        state = line.copy()
