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
Forward warping of inverse depth along a rigid motion, with a z-buffer.

A plane <q, P> = 1 becomes q' = R q / (1 + <R q, t>) under P' = R P + t, exactly, and is looked
at in the middle of the pixel it lands on. Its slopes are those of the solved resolution: they
only say how inverse depth goes on by less than a pixel. Of the planes that land on a pixel the
nearest stays (z-buffer). A crack between them takes the nearest of its four neighbours if planes
landed on two opposite sides of it, or the mean with the one opposite if both are of one surface,
and counts for little: beside a depth edge it may be of another surface.
"""

from __future__ import annotations

EDGE_ON = 0.8  # a plane half a pixel aside differs less than this from its point, as a ratio
CRACK_SHARE = 0.25  # of the frames of a plane that are left to it where it fills a crack
CRACK_STEP = 0.02  # of the inverse depth, between both sides of a crack: more is a depth edge
