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
"""Nearest-neighbour sampling between the levels of a pyramid, numpy and torch alike."""

from __future__ import annotations

from typing import Any


def coarser(values: Any, ratio: int) -> Any:
    """Keep one pixel of ratio x ratio, of the last two axes; the sides are rounded down."""
    height, width = (side // ratio * ratio for side in values.shape[-2:])
    return values[..., :height:ratio, :width:ratio] + 0  # contiguous


def finer(values: Any, ratio: int, like: Any) -> Any:
    """Repeat every pixel ratio x ratio times, and the last ones up to the shape of `like`."""
    out = like + 0
    height, width = values.shape[-2:]
    for y in range(ratio):
        for x in range(ratio):
            out[..., y:height * ratio:ratio, x:width * ratio:ratio] = values
    out[..., height * ratio:, :] = out[..., height * ratio - 1:height * ratio, :]
    out[..., :, width * ratio:] = out[..., :, width * ratio - 1:width * ratio]
    return out
