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

# Threads that wait for the next kernel sleep: OpenMP's default is to spin for ever. But waking
# one takes 0.1 ms, as long as some kernels do, so it first spins for some 0.3 ms, which is more
# than the time from one kernel of a frame to the next. The node asks for less.
os.environ.setdefault('OMP_WAIT_POLICY', 'passive')
os.environ.setdefault('GOMP_SPINCOUNT', '15000')
cache.settle()
