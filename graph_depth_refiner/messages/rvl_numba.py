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
"""The decoder of RVL as one compiled walk; the reference is `rvl_numpy`."""

from __future__ import annotations

from numba import njit
import numpy as np

from graph_depth_refiner.core.jit.options import EXACT

MORE = 8  # bit of a nibble that says another one follows


def decode_rvl(data: bytes, count: int) -> np.ndarray:
    """Decode `count` uint16 values of Wilson's RVL code, as compressedDepth has them."""
    output = np.zeros(count, np.uint16)
    whole_words = np.frombuffer(data, np.uint8, len(data) // 4 * 4)
    if not _decode(whole_words, output):
        raise ValueError(f'depth: expected RVL runs that fill {count} pixels, got damaged ones')
    return output


@njit(**EXACT)
def _number(octets, at):
    """Read one number from nibble `at` on; return it and where the next begins, or -1."""
    number = 0
    place = 0
    while at < 2 * octets.size and place < 30:
        octet = np.int64(octets[at >> 1 ^ 3])  # little-endian words, high nibble first
        nibble = octet & 15 if at & 1 else octet >> 4
        number |= (nibble & 7) << place
        place += 3
        at += 1
        if nibble < MORE:
            return number, at
    return 0, -1


@njit(**EXACT)
def _decode(octets: np.ndarray, output: np.ndarray) -> bool:
    """Fill the zeroed uint16 output; return False where the code is damaged."""
    at = 0
    pixel = 0
    value = 0
    while pixel < output.size:
        zeros, at = _number(octets, at)
        if at < 0:
            return False
        measured, at = _number(octets, at)
        pixel += zeros
        if at < 0 or pixel + measured > output.size:
            return False
        for _ in range(measured):
            coded, at = _number(octets, at)
            if at < 0:
                return False
            value += (coded >> 1) ^ -(coded & 1)
            output[pixel] = value & 0xFFFF
            pixel += 1
    return True
