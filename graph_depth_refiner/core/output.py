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
"""What the plain and the fused description of a result have in common."""

from __future__ import annotations

from graph_depth_refiner.frame import Provenance

UNKNOWN, MEASURED = int(Provenance.UNKNOWN), int(Provenance.MEASURED)
CORRECTED, FILLED = int(Provenance.CORRECTED), int(Provenance.FILLED)
CORRECTED_UNITS = 3.0  # noise units: further from its measurement a pixel is corrected
