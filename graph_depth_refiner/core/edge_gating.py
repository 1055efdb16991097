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
Weights of graph edges after the planes at both ends.

`gate_depth_edges` fades edges by how badly the planes of both ends predict each other's value,
the worse of both directions, so that no edge crosses a depth jump. `relax_at_curvature` scales
down all edges of a pixel by the mean difference of its slopes to those around it.
"""

from __future__ import annotations

# Fainter edges are dropped: scaled to sum 1, the last of them would count fully.
LEAST_WEIGHT = 1e-6
