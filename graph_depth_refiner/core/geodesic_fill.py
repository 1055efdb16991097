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
Planes of holes, from the measured pixels that are nearest by geodesic distance in the image.

A path costs the squared changes of colour along it, so that shading is cheap and the edge of an
object dear. It is found by raster sweeps back and forth (Toivanen, 1996; Criminisi et al.,
2010). Windows see less of a small object than of what is behind it; where both lead to one
surface the plane of the window stays, as it is of more pixels.
"""

from __future__ import annotations

FIT_LIMIT = 3.0  # noise units: a path begins where a plane is this close to the measurement
ROUNDS = 2  # sweeps over the pixels of holes, each back and forth
PREVIOUS = ((0, -1), (-1, -1), (-1, 0), (-1, 1))  # neighbours (dy, dx) before a pixel in a sweep
# what a step to each costs besides the squared change of its 8-bit colour: about 3:2 is sqrt(2)
STEP_COSTS = (6, 9, 6, 9)
UNREACHED = 1 << 30
APART = 6.0  # noise units: planes that differ by more in a hole are of two surfaces
SLOPE_SHARE = 0.5  # share of its slope with which a surface goes on into a hole
