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
The decoder of RVL, the lossless code of depth images by Wilson (ISS 2017), in numpy.

Compiled in `rvl_numba`, which needs less memory.
"""

from __future__ import annotations

import numpy as np

# an RVL value is a 16-bit difference or a run length, three bits a nibble
LONGEST_VALUE = 10


def decode_rvl(data: bytes, count: int) -> np.ndarray:
    """Decode `count` uint16 values of Wilson's RVL code, as compressedDepth has them."""
    values = _values(data)
    runs = _runs(values, count)  # R 3: first value, first pixel, length
    lengths = runs[:, 2]
    # position of every measured pixel within its run, all runs in a row
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    coded = values[np.repeat(runs[:, 0], lengths) + within]
    differences = (coded >> 1) ^ -(coded & 1)  # zigzag: 0 -1 1 -2 2 ...
    output = np.zeros(count, np.uint16)
    output[np.repeat(runs[:, 1], lengths) + within] = np.cumsum(differences).astype(np.uint16)
    return output


def _runs(values: np.ndarray, count: int) -> np.ndarray:
    """Find the runs of measured pixels: each is told by zeros before it and its length."""
    numbers = values.tolist()  # plain integers: the walk is three times as fast
    runs = []
    index = pixel = 0
    while pixel < count:
        if index + 2 > len(numbers):
            raise ValueError(f'depth: expected {count} RVL pixels, got {pixel}')
        zeros, measured = numbers[index], numbers[index + 1]
        index += 2
        pixel += zeros
        if pixel + measured > count or index + measured > len(numbers):
            raise ValueError(f'depth: expected RVL runs within {count} pixels, got an overrun')
        runs.append((index, pixel, measured))
        index += measured
        pixel += measured
    return np.array(runs, np.int64).reshape(-1, 3)


def _values(data: bytes) -> np.ndarray:
    """Return the numbers of an RVL stream: nibbles, high first, bit 3 says more to come."""
    words = np.frombuffer(data, '<u4', len(data) // 4)
    octets = words.astype('>u4').view(np.uint8)
    nibbles = np.empty(octets.size * 2, np.uint8)
    nibbles[::2] = octets >> 4
    nibbles[1::2] = octets & 15
    ends = np.flatnonzero(nibbles < 8)
    if not ends.size:
        return np.zeros(0, np.int32)
    starts = np.empty_like(ends)
    starts[0] = 0
    starts[1:] = ends[:-1] + 1
    longest = int((ends - starts).max()) + 1
    if longest > LONGEST_VALUE:
        raise ValueError(
            f'depth: expected RVL values of at most {LONGEST_VALUE} nibbles, got {longest}')
    values = (nibbles[starts] & 7).astype(np.int32)
    for place in range(1, longest):
        longer = np.flatnonzero(ends - starts >= place)
        values[longer] |= (nibbles[starts[longer] + place] & 7).astype(np.int32) << 3 * place
    return values
