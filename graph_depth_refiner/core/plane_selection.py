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
"""What the plain and the fused vote have in common."""

from __future__ import annotations

REACH = 3  # pixels; voters are all within 2 pixels, and 8 farther ones
VOTERS = tuple((dy, dx) for dy in range(-REACH, REACH + 1) for dx in range(-REACH, REACH + 1)
               if max(abs(dy), abs(dx)) < REACH or (dy % REACH == 0 and dx % REACH == 0))
NEAR = ((0, 0), (-1, 0), (0, -1), (0, 1), (1, 0))
FAR = ((-2, -2), (-2, 0), (-2, 2), (0, -2), (0, 2), (2, -2), (2, 0), (2, 2))
DIFFERENT = 1.5  # in noise units: planes whose values differ by more are two ...
STEEP = 6.0  # ... pixels: and those whose slopes make a unit of difference over so many
CAP = 3.0  # in noise units: what a voter minds at most
WARPED_SHARE = 0.1  # of a frame's evidence: what a carried plane's voice counts
FAR_FADE = 0.08  # 1/px^2: how fast a voter's weight fades with its distance
# A voter's weight is (1 - t / FADED)^8 up to t = FADED, which is close to exp(-t) and cheap.
FADED = 8.0
