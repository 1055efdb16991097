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
"""What the CPU kernels stand on: where they are kept, how they are compiled, SIMD."""

import os

from graph_depth_refiner.core.jit import cache

# For the node, the commands and the library alike, before anything loads OpenMP: threads that
# wait for the next kernel spin for some 0.05 ms and then sleep. OpenMP's default is to spin for
# ever, on a core that others want: with other work on the cores an empty parallel region takes
# 1 ms after 15000 rounds of spinning, 0.1 ms after 1500 (35 of them are a frame).
os.environ.setdefault('OMP_WAIT_POLICY', 'passive')
os.environ.setdefault('GOMP_SPINCOUNT', '1500')
cache.settle()
