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
What the planes of the solved resolution predict at a pixel of the colour that it has.

Matchers err most at the edges of things, where a pixel's own measurement must not choose between
the planes of both sides. The image chooses: the prediction is the median of those of the cells
around, weighted by the similarity of their colour (joint weighted median, Ma et al., ICCV 2013).
"""

from __future__ import annotations

SIDE = 3  # cells along each axis
OWN = 0.5  # weight of the measurement, in that of a cell of the mean weight
CLOSE = 4.0  # standard deviations: cells that predict the same within them are one surface
COLOR_SIGMA = 0.05  # difference of a colour channel that counts as similar, image in [0, 1]
