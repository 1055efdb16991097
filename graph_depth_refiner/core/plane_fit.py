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
Planes fitted to the measurement in shiftable windows.

Every pixel takes the plane of the window that suits it best among nine around it, of several
sizes, so that no window has to reach over a depth edge (shiftable windows: Kang, Szeliski and
Chai, CVPR 2001). Least-squares fits come from integral images of the moments (Crow,
SIGGRAPH 1984). Thin structures, which fill no window, are refitted from the few neighbours that
agree; pixels of large holes take the plane of ever larger windows, and a measured pixel without
any plane keeps its value.
"""

from __future__ import annotations

CELL = 2  # pixels; fits are made on a lattice of cells, a window is a square of cells
NO_PLANE = 1e30  # variance of a window without a plane
LEAST_PIXELS = 4.0  # pixels' worth of weight that a plane needs
USED_SHARE = 0.75  # share of those that the three parameters of a plane use up
RIDGE = 1e-3  # pixels^2, keeps slopes finite
LEAST_SPREAD = 0.2  # pixels^2 by which the pixels of a window must spread in every direction
MISFIT_SHARE = 0.1  # what the misfit of the pixel counts against the variance of the window,
MISFIT_CAP = 16.0  # and at most, in squared noise units: it may be an outlier
GUIDE_SHARE = 0.3  # what a difference to the window's mean guide counts, in squared noise units

# thin structures: a pixel further than FAR from its plane, with neighbours close to its value
FAR = 4.0  # noise units
CLOSE = 3.0  # noise units
LEAST_AGREE = 4  # neighbours
FLAT = 4.0  # pixels^2, keeps the slope of a handful of points small
