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
"""How kernels are compiled, and the numbers that all of them share."""

from __future__ import annotations

import numpy as np

# Neither nnan nor ninf: numbers that are not finite must be noticed.
FAST = {'contract', 'reassoc', 'arcp', 'afn', 'nsz'}
FUSED = {'nogil': True, 'cache': True, 'fastmath': FAST, 'error_model': 'numpy'}
INLINE = {**FUSED, 'forceinline': True}
# Distances decide which edges are kept: bit for bit as in patch_graph_torch.py, so
# no contraction, no reassociation.
EXACT = {'nogil': True, 'cache': True, 'error_model': 'numpy'}
EXACT_INLINE = {**EXACT, 'forceinline': True}
# Unsigned indices cannot be negative, which spares numba a test at every access.
U = np.uint64
ZERO, ONE = np.float32(0), np.float32(1)
LIMIT = np.float32(1e30)  # beyond it a number is as good as infinite
