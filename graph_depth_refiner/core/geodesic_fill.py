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
"""What the plain and the fused planes of holes have in common."""

from __future__ import annotations

FITS = 3.0  # noise units: a way begins where a plane is this close to the measurement
ROUNDS = 2  # over the pixels of holes, forth and back
BACK = ((0, -1), (-1, -1), (-1, 0), (-1, 1))  # neighbours (dy, dx) that come before a pixel
STEPS = (6, 9, 6, 9)  # what a step to each costs, besides the squared change of its 8-bit colour
NO_WAY = 1 << 30
APART = 6.0  # noise units: planes that differ by more in a hole are of two surfaces
STRAIGHT_ON = 0.5  # share of its slope with which a surface goes on into a hole
