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
From planes of inverse depth to depth, normals, confidence and provenance.

A pixel's confidence is n / (1 + n) after n frames, as of a running mean, or that of the
sensor where that is higher and the measurement was kept. The frame count may be of a
resolution a whole number of times lower; inverse depth outside the limits is unknown.
"""

from __future__ import annotations

import numpy as np

from graph_depth_refiner.core import camera
from graph_depth_refiner.core.observation import Measured
from graph_depth_refiner.core.types import Solution
from graph_depth_refiner.frame import Frame, Provenance, Refined

UNKNOWN, MEASURED = int(Provenance.UNKNOWN), int(Provenance.MEASURED)
CORRECTED, FILLED = int(Provenance.CORRECTED), int(Provenance.FILLED)
CORRECTED_UNITS = 3.0  # noise units: further from the measurement a pixel is corrected


def as_measured(frame: Frame, measured: Measured, planes: np.ndarray, solution: Solution,
                milliseconds: dict[str, float]) -> Refined:
    """Return the measurement as it came, no pixel moved or filled, with normals of planes."""
    valid = measured.d > 0
    normals = camera.normals(planes, measured.intrinsics).astype(np.float32)
    normals[~valid] = np.nan
    return Refined(
        np.where(valid, frame.depth, np.nan).astype(np.float32), normals, measured.m,
        np.where(valid, Provenance.MEASURED, Provenance.UNKNOWN).astype(np.uint8),
        solution.status, 0, solution.energy, milliseconds)
