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
"""A quick exp(-t) of one number, which compilers can vectorise: Cephes' expf."""

from __future__ import annotations

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
import numpy as np

from graph_depth_refiner.core.jit.options import INLINE
from graph_depth_refiner.core.patch_graph import FAINT

_LOG2E = np.float32(1.44269504)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)


@intrinsic
def _from_bits(typing, bits):
    """Read 32 bits as a float."""
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())
    return types.float32(types.int32), generate


@njit(**INLINE)
def fading(t):
    """Return exp(-t) for t >= 0, and 0 where that is too faint to count."""
    t0 = min(t, np.float32(FAINT))
    k = np.int32(t0 * _LOG2E + np.float32(0.5))
    f = (np.float32(k) * _LN2_HIGH - t0) + np.float32(k) * _LN2_LOW
    p = np.float32(1.9875691500e-4)
    p = p * f + np.float32(1.3981999507e-3)
    p = p * f + np.float32(8.3334519073e-3)
    p = p * f + np.float32(4.1665795894e-2)
    p = p * f + np.float32(1.6666665459e-1)
    p = p * f + np.float32(5.0000001201e-1)
    p = p * f * f + f + np.float32(1)
    return p * _from_bits(np.int32((127 - k) << 23)) if t < np.float32(FAINT) else np.float32(0)
