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
"""What the plain and the fused plane start have in common."""

from __future__ import annotations

CELL = 2  # pixels; fits are made on a lattice of cells, a window is a square of cells
NONE = 1e30  # variance of a window without a plane
LEAST_PIXELS = 4.0  # pixels' worth of weight that a plane needs
SPENT = 0.75  # share of those that its three parameters use up
RIDGE = 1e-3  # pixels^2, keeps slopes finite
LEAST_SPREAD = 0.2  # pixels^2 by which the pixels of a window must spread in every direction
OWN_SHARE = 0.1  # what a pixel's own misfit counts against that of the window,
OWN_CAP = 16.0  # and at most, in squared noise units
SHADE_SHARE = 0.3  # what a difference of the image counts, in squared noise units

# thin things: a pixel further than FAR from its plane whose neighbours are on its side
FAR = 4.0  # noise units
CLOSE = 3.0  # noise units
LEAST_AGREE = 4  # neighbours
FLAT = 4.0  # pixels^2, keeps the slope of a handful of points tame
