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
How far the warped history counts, and the running mean with it; residuals in noise units.

The gate weighs the history down where its residuals against the measurement, averaged around
a pixel, are biased or large, or where the image differs. What passes is averaged with the new
planes as a running mean, each pixel with the frames it counts for: a Kalman filter of a static
value under equal noise.
"""

from __future__ import annotations

RADIUS = 2  # pixels on either side of one whose residuals are averaged to judge it
IMAGE_RADIUS = 1  # the same for differences of the image
CLIP = 4.0  # noise units: a single residual counts at most this
# full weight below the first, none beyond the second:
BIAS = (0.7, 1.1)  # mean of residuals
MISFIT = (1.6, 2.2)  # mean of their absolute values
IMAGE = (0.04, 0.08)  # mean difference of the image in [0, 1]
SAME = 3.0  # noise units: a warped plane this close to the chosen one is the same ...
SAME_SLOPE = 6.0  # ... pixels: if their slopes make less than a unit over so many
OUTLIER = 4.0  # noise units: a measurement this far from the chosen plane is not used
