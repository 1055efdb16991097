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
The energy of the paper (Rossi et al., CVPR 2020) and its rivals.

Everything is in noise units: planes z = (d, ux, uy), 3 H W; data d with weight m, H W;
graph w and its transpose, O H W. With r_ij = d_j - d_i - <u_i, j - i> the energy is

  sum_i m_i |d_i - data_i| + lambda (residual term + alpha slope term)

  planar         sum_i |w_ij r_ij|_2 over j        sum_ij w_ij |u_j - u_i|_2
  nltgv          sum_ij w_ij |r_ij|                sum_ij w_ij |u_j - u_i|_1
  neighbourhood  sum_i |w_ij r_ij|_2 over j        sum_i |w_ij (u_j - u_i)|_2 over j
"""

from __future__ import annotations

REGULARISERS = ('planar', 'nltgv', 'neighbourhood')
# A norm |v| is minimised as sqrt(|v|^2 + s^2) - s, so that its gradient exists at 0 and is 0
# there; s in noise units, and in noise units per pixel for slopes. Each is about the last step
# of a frame, 0.12 to 0.24 and 0.006 to 0.012: with less, ADAM steps over the minimum to and fro,
# and grows what rounding leaves by some ten times a step.
SMOOTHING = 0.1
SLOPE_SMOOTHING = 1e-2
