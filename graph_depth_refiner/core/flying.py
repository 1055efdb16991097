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
Flying pixels: single values between the two sides of a depth edge.

A beam or a matching window that sees two surfaces measures a mixture of both (Sabov and Krueger,
SCCG 2008). Such a pixel agrees with hardly any plane around it, and has planes in front of it and
behind it; what is in front of all planes around it is a thin thing, and stays. The solver takes
a flying pixel for a hole, so that it ends on the side that it looks like, and the history
forgets it. Only single pixels are looked at: where blocks are solved for they take the side of
most of theirs, and single pixels go with their block as they are upsampled.
"""

from __future__ import annotations

from dataclasses import replace

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.downsampling import Guide, Level
from graph_depth_refiner.core.history import Present
from graph_depth_refiner.core.kernels import Array, Kernels

REACH = 2  # pixels on either side whose planes are looked at
SUPPORT = 2  # of these planes may agree: mixtures lie side by side along an edge
WIDTH = 5.0  # standard deviations within which a plane agrees


def drop_flying(k: Kernels, planes: Array, level: Level, present: Present, guide: Guide,
                config: RefinerConfig) -> tuple[Array, Level, Present]:
    """Return planes, 3 H W, level and present with flying pixels as unknown as holes are."""
    if guide.scale > 1 or not config.planes.start:
        return planes, level, present
    kept = k.not_flying(planes, level.d, level.frames, WIDTH * level.sigma)  # H W, 0 or 1
    return (planes * kept, replace(level, d=level.d * kept, frames=level.frames * kept),
            present._replace(frames=present.frames * kept))
