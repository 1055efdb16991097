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
"""What must hold of every refined frame, whatever came in."""

from __future__ import annotations

from typing import Any

import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import camera
from graph_depth_refiner.core.observation import Measured
from graph_depth_refiner.frame import Frame, Provenance, Refined, Status


def input_planes(x: Any, d: Any, valid: Any) -> Any:
    """Return the planes x, 3 H W, with the inverse depth d wherever it is valid."""
    planes = x + 0  # a copy in numpy and torch alike
    if isinstance(planes, np.ndarray):
        np.copyto(planes[0], d, where=valid)
    else:
        planes[0] = d.where(valid, x[0])
    return planes


def known(d: np.ndarray, config: RefinerConfig) -> np.ndarray:
    """Return where inverse depth stands for a depth that the configuration calls valid."""
    return (d >= np.float32(1 / config.depth.max)) & (d <= np.float32(1 / config.depth.min))


def as_input(frame: Frame, measured: Measured, planes: np.ndarray, status: Status,
             energy: float, milliseconds: dict[str, float]) -> Refined:
    """Return the measurement as it came, no pixel moved or filled, and normals as they are."""
    valid = measured.d > 0
    normals = camera.normals(planes, measured.intrinsics).astype(np.float32)
    normals[~valid] = np.nan
    return Refined(
        np.where(valid, frame.depth, np.nan).astype(np.float32), normals, measured.m,
        np.where(valid, Provenance.MEASURED, Provenance.UNKNOWN).astype(np.uint8),
        status, 0, energy, milliseconds)
