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
What hostile input looks like, and the only two outcomes it may have.

The normal suite tries a few hundred inputs, always the same ones. With the environment
variable GRAPH_DEPTH_REFINER_FUZZ=long many thousands are drawn anew in each run; a failing
one is printed with the line that brings it back.
"""

from __future__ import annotations

from array import array
from collections import Counter
import os
import re
import tracemalloc
from types import SimpleNamespace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture]
COMMON = {'deadline': None, 'database': None, 'suppress_health_check': SLOW}
settings.register_profile('short', max_examples=15, derandomize=True, **COMMON)
settings.register_profile('long', max_examples=2000, print_blob=True, **COMMON)
settings.load_profile(os.environ.get('GRAPH_DEPTH_REFINER_FUZZ', 'short'))

# What one decoded message may take, however large it says it is.
BYTES_PER_PIXEL = 64  # of max_pixels
BYTES_PER_BYTE = 256  # of its payload; RVL without numba needs it, all else a few
SLACK = 1 << 20

OUTCOMES: Counter[str] = Counter()  # of all inputs tried in this process
# `name: expected …, got …`, or `name: unknown name, expected one of …`
SENTENCE = re.compile(r'[^\n]*: [^\n]*\bexpected [^\n]+')


def outcome(call, *arguments, **named):
    """Return the result, or None where the input is refused in a sentence of ours."""
    try:
        result = call(*arguments, **named)
    except ValueError as error:
        assert SENTENCE.fullmatch(str(error)), f'not a sentence of ours: {error!r}'
        OUTCOMES['refused'] += 1
        return None
    OUTCOMES['accepted'] += 1
    return result


def bounded(max_pixels, payload, call, *arguments):
    """Return the outcome, and hold its memory against the bound."""
    bound = BYTES_PER_PIXEL * max_pixels + BYTES_PER_BYTE * payload + SLACK
    tracemalloc.start()
    try:
        result = outcome(call, *arguments)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= bound, f'{peak} bytes were taken, the bound is {bound}'
    return result


def octets(data: bytes) -> array:
    """Return bytes as rclpy hands them over."""
    return array('B', data)


def header(sec: int = 1, nanosec: int = 0, frame_id: str = 'camera') -> SimpleNamespace:
    """Return a message header."""
    return SimpleNamespace(
        stamp=SimpleNamespace(sec=sec, nanosec=nanosec), frame_id=frame_id)


def image(width, height, encoding, step, data, is_bigendian=0) -> SimpleNamespace:
    """Return an Image message."""
    return SimpleNamespace(
        header=header(), width=width, height=height, encoding=encoding, step=step,
        is_bigendian=is_bigendian, data=octets(data))


# A side of an image: mostly small, so that data can match it, else anything an uint32 holds.
sides = st.one_of(
    st.integers(1, 12), st.integers(0, 70),
    st.sampled_from([0, 2 ** 15, 2 ** 16 + 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1]),
    st.integers(0, 2 ** 32 - 1))
small_sides = st.integers(1, 12)
uint32 = st.one_of(st.integers(0, 64), st.integers(0, 2 ** 32 - 1))
doubles = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, width=64),
    st.sampled_from([0.0, 1.0, 100.0, -1.0, 5e-324, 1e-300, 1e300, 1e308]))
singles = st.floats(allow_nan=True, allow_infinity=True, width=32)


def tampered(data: bytes) -> st.SearchStrategy[bytes]:
    """Return strategies for a payload with a few bytes changed, cut, or put in."""
    def apply(edits, cut, tail):
        changed = bytearray(data)
        for at, value in edits:
            if changed:
                changed[at % len(changed)] = value
        return bytes(changed[:max(0, len(changed) - cut)]) + tail
    value = st.one_of(st.sampled_from([0, 255, 127, 128]), st.integers(0, 255))
    edit = st.tuples(st.integers(0, max(0, len(data) - 1)), value)
    return st.builds(
        apply, st.lists(edit, max_size=6),
        st.one_of(st.just(0), st.integers(0, 8), st.integers(0, len(data))),
        st.one_of(st.just(b''), st.binary(max_size=16)))


@st.composite
def image_messages(draw, encodings):
    """Draw an Image message that is whole, or wrong in one or several of its fields."""
    encoding = draw(st.one_of(
        st.sampled_from(list(encodings)),
        st.sampled_from(['32SC1', '16UC3', 'rgb16', 'bayer_rggb16', '8UC4', 'nv12', '', 'x' * 99]),
        st.text(max_size=12)))
    width, height = draw(sides), draw(sides)
    kind, channels = encodings.get(encoding, ('u1', 1))
    row = width * channels * int(kind[1:])
    step = draw(st.one_of(
        st.just(row), st.integers(0, 16).map(lambda pad: row + pad), uint32))
    whole = min(step * height, 1 << 16)
    length = draw(st.one_of(
        st.just(whole), st.just(whole), st.integers(0, whole), st.integers(0, 64)))
    seed = draw(st.binary(min_size=1, max_size=24))
    data = (seed * (length // len(seed) + 1))[:length]
    return image(width, height, encoding, step, data, draw(st.integers(0, 255)))
