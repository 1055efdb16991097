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
"""What stages hand to each other; `Any` stands for an array of the kernels in use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graph_depth_refiner.core.energy import REGULARISERS
from graph_depth_refiner.frame import Status

# metadata of fields that only the host looks at: what a GPU replays has not even seen them
HOST = {'host': True}


@dataclass(frozen=True)
class Terms:
    """The weights and norms of the energy."""

    lam: float
    alpha: float
    regulariser: str = REGULARISERS[0]


@dataclass(frozen=True, eq=False)
class Memory:
    """What ADAM keeps from frame to frame, in noise units."""

    second: Any  # 3 H W second moment
    count: Any  # int, or a number of the device: steps taken so far


@dataclass(frozen=True, eq=False)
class Problem:
    """An energy to lower and the planes to begin at."""

    x: Any  # 3 H W planes to begin at
    w: Any  # O H W graph; None: no step is to be taken
    d: Any  # H W data
    m: Any  # H W weight of the data
    unit: Any  # float, or a number of the device: inverse depth that counts as the noise
    measured: Any = None  # H W, 0 where there is none; None: d where m is above 0
    guide: Any = None  # H W or C H W; None: no coarser levels are solved
    memory: Memory | None = None


@dataclass(frozen=True, eq=False)
class Solution:
    """Where the minimisation ended."""

    x: Any  # 3 H W
    how: Status  # the minimiser ended, unless its steps were not finite or led nowhere
    iterations: Any  # int, or a number of the device
    energy: Any  # float, or a number of the device; 0 without a graph
    memory: Memory | None
    finite: Any = True  # whether all steps were
    worse: Any = False  # the energy of the measurement itself is lower

    @property
    def status(self) -> Status:
        """Say how it ended; waits for the device."""
        return self.ended(bool(self.finite), bool(self.worse))

    def ended(self, finite: bool, worse: bool) -> Status:
        """Say how it ended where both are known."""
        return Status.WORSE if worse else self.how if finite else Status.DIVERGED
