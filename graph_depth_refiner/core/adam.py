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
"""ADAM (Kingma and Ba, ICLR 2015) on the energy."""

from __future__ import annotations

BETA1 = 0.9  # of the mean of the gradient
BETA2 = 0.999  # of the mean of its square
# Added to the root of the second moment; it acts on the gradient of the summed energy in noise
# units, and so is free of the scale of the scene. It is what a typical measurement pulls with:
# with much less, steps have full length also where the gradient is next to nothing.
EPSILON = 1.0
