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
Selection of one plane for every pixel among the candidate planes around it.

Candidates are the fitted and the warped planes of the pixel and of its neighbours. A plane
costs its distance to the measurements and to the warped planes in a window of support, each
capped and weighted by similarity of colour and by distance: adaptive support weights (Yoon and
Kweon, PAMI 2006) on slanted support windows (PatchMatch Stereo: Bleyer et al., BMVC 2011). Only
pixels whose candidates differ are looked at. Without `slopes` planes that differ in slope only
are taken as equal.
"""

from __future__ import annotations

RADIUS = 3  # pixels; the support is all pixels within 2, and 8 farther ones
SUPPORT = tuple(
    (dy, dx) for dy in range(-RADIUS, RADIUS + 1) for dx in range(-RADIUS, RADIUS + 1)
    if max(abs(dy), abs(dx)) < RADIUS or (dy % RADIUS == 0 and dx % RADIUS == 0))
# where candidates are looked for: fitted and warped planes near by, fitted ones farther off
NEAR = ((0, 0), (-1, 0), (0, -1), (0, 1), (1, 0))
FAR = ((-2, -2), (-2, 0), (-2, 2), (0, -2), (0, 2), (2, -2), (2, 0), (2, 2))
DIFFERENT = 1.5  # noise units: planes whose values differ by more are two ...
STEEP = 6.0  # ... pixels: and those whose slopes make a unit of difference over so many
CAP = 3.0  # noise units: what a pixel of the support costs at most, as it may be an outlier
WARPED_SHARE = 0.1  # weight of a warped plane for each frame it counts for
FAR_FADE = 0.08  # 1/px^2: how fast the weight of the support fades with distance
# The weight is (1 - t / FADED)^8 up to t = FADED, which is close to exp(-t) and cheap.
FADED = 8.0
