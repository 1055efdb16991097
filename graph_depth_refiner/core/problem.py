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
"""What the energy and its minimisers have in common, with or without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# A norm |v| is minimised as sqrt(|v|^2 + s^2) - s, so that its gradient exists at 0 and
# is 0 there; s in multiples of the noise unit (per pixel for slopes).
SMOOTHING = 1e-3

# Betas of ADAM and the constant added to the root of its second moment, which acts on
# the gradient of the summed energy in noise units and so is free of the scale too.
BETA1 = 0.9
BETA2 = 0.999
EPSILON = 0.08

# A weight exp(-t) with t beyond this, 1e-10 of the largest there can be, is 0: nobody would
# notice it but the processor, which is slow at numbers as small as its square.
FAINT = 23.0

REGULARISERS = ('planar', 'nltgv', 'neighbourhood')


def offsets(window: int) -> list[tuple[int, int]]:
    """Return the steps (dy, dx) to the neighbours, row-major; the mirror of o is -1 - o."""
    reach = range(-(window // 2), window // 2 + 1)
    return [(dy, dx) for dy in reach for dx in reach if (dy, dx) != (0, 0)]


def window_of(edges: int) -> int:
    """Return the side of the window that has so many neighbours."""
    return round((edges + 1) ** 0.5)


@dataclass(frozen=True, eq=False)
class Memory:
    """What ADAM carries from frame to frame, in noise units."""

    second: Any  # 3 H W second moment
    count: int  # steps taken so far


@dataclass(frozen=True)
class Terms:
    """The weights and norms of the energy."""

    lam: float
    alpha: float
    regulariser: str = REGULARISERS[0]
