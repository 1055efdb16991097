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
"""Slopes of planes through every pixel, fitted over the graph by weighted least squares."""

from __future__ import annotations

# Share of the spread of a fit that is added to it, so that a line of pixels has slopes too.
RIDGE = 1e-4
# A pixel without edges is on its own: its plane faces the camera.
LEAST_SPREAD = 1e-9
