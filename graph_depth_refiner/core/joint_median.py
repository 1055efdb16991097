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
A joint weighted median: pixels that similar ones contradict take their median.

The weights are of the colours (constant time weighted median: Ma et al., ICCV 2013). The support
is a square of pixels `stride` apart; a pixel that fewer than `share` of it are within `limit` of
is replaced if the median is not within `limit` either.

Of planes the values that they predict at the pixel count: slanted surfaces go on into holes.
"""

from __future__ import annotations

SIDE = 5  # pixels of the support along each axis,
PLANE_SIDE = 3  # and of that of planes
