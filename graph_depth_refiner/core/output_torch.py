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
"""From planes to what is published: the reference, on any torch device."""

from __future__ import annotations

import torch

from graph_depth_refiner.core import output as stage
from graph_depth_refiner.core.camera_torch import plane_vectors
from graph_depth_refiner.frame import Intrinsics


def describe(planes: torch.Tensor, d: torch.Tensor, m: torch.Tensor, frame_count: torch.Tensor,
             noise: tuple[float, float], intrinsics: Intrinsics, limits: tuple[float, float]
             ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return depth H W, normals H W 3, confidence H W and provenance H W of planes."""
    value = planes[0]
    known = (value >= limits[0]) & (value <= limits[1])
    depth = torch.where(known, 1 / value, torch.nan)
    q = plane_vectors(planes, intrinsics)  # 3 H W
    normals = torch.where(known, -q / q.square().sum(dim=0).sqrt(), torch.nan)
    held = frame_count / (1 + frame_count)
    corrected = (value - d).abs() > stage.CORRECTED_UNITS * (noise[0] + noise[1] * d)
    measured = (d > 0) & ~corrected
    confidence = torch.where(measured, torch.maximum(m, held), held)
    provenance = torch.where(corrected, stage.CORRECTED, stage.MEASURED)
    provenance = torch.where(d > 0, provenance, stage.FILLED)
    return (depth, normals.movedim(0, -1).contiguous(), torch.where(known, confidence, 0),
            torch.where(known, provenance, stage.UNKNOWN).to(torch.uint8))
