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
Morphology of masks, 64 pixels of a row at a time: CPU kernels.

A pixel is a bit of a word, the first of a row the lowest one. Masks have a margin all around:
what a window reaches beyond the image is as unset as its pixels.
"""

from __future__ import annotations

from numba import njit
import numpy as np

from graph_depth_refiner.core.jit.options import EXACT, EXACT_INLINE, U

WORD = 64  # pixels


def closable(measured: np.ndarray, there: np.ndarray, history_width: int, rims: tuple[int, ...],
             max_width: int, most: float) -> tuple[np.ndarray, np.ndarray]:
    """
    Return two masks, H W bool: known, and with it what narrow holes in that may be filled.

    Known is of what is there what is measured, in holes of it of up to `history_width`, or
    beside it: up to the widest of the rims, in pixels, that adds at `most` so many pixels, or
    the first. Holes are narrow up to `max_width`.
    """
    # wider windows reach beyond the image from everywhere: nothing is closed
    history_width, max_width = (
        width if width < 2 * min(measured.shape) else 0 for width in (history_width, max_width))
    margin = max(history_width + 1, 2 * rims[-1] + 1, max_width + 1)
    found = _closable(_packed(measured, margin), _packed(there, margin), measured.shape, margin,
                      history_width, np.array(rims), max_width, most)
    known, filled = (_unpacked(one, measured.shape, margin) for one in found)
    return known, filled


def _packed(mask: np.ndarray, margin: int) -> np.ndarray:
    """Return a mask as words with a margin of zeros."""
    height, width = mask.shape
    beside = margin // WORD + 1  # words
    bits = np.zeros((height + 2 * margin, -(-width // WORD) + 2 * beside), np.uint64)
    packed = np.packbits(mask, axis=1, bitorder='little')
    begin = beside * WORD // 8
    bits.view(np.uint8)[margin:margin + height, begin:begin + packed.shape[1]] = packed
    return bits


def _unpacked(bits: np.ndarray, shape: tuple[int, int], margin: int) -> np.ndarray:
    begin = (margin // WORD + 1) * WORD // 8
    inner = bits.view(np.uint8)[margin:margin + shape[0], begin:begin + -(-shape[1] // 8)]
    return np.unpackbits(inner, axis=1, count=shape[1], bitorder='little').view(np.bool_)


@njit(**EXACT)
def _closable(measured, there, shape, margin, history_width, rims, max_width, most):
    inside = _inside(measured, shape, margin)
    narrow = _closed(measured, inside, history_width)
    near = _dilate(measured, rims[0], rims[0])
    for k in range(1, len(rims)):
        wider = _dilate(near, rims[k] - rims[k - 1], rims[k] - rims[k - 1])
        if _count(wider & there & ~narrow) > most:
            break
        near = wider
    known = (narrow | near) & there
    return known, _closed(known, inside, max_width)


@njit(**EXACT)
def _count(bits):
    """Return how many bits are set, by sums of ever longer parts of a word."""
    total = U(0)
    for word in bits.flat:
        word = word - ((word >> U(1)) & U(0x5555555555555555))
        word = (word & U(0x3333333333333333)) + ((word >> U(2)) & U(0x3333333333333333))
        word = (word + (word >> U(4))) & U(0x0F0F0F0F0F0F0F0F)
        total += (word * U(0x0101010101010101)) >> U(56)
    return total


@njit(**EXACT)
def _inside(bits, shape, margin):
    """Return the mask of all pixels of the image."""
    height, width = shape
    inside = np.zeros_like(bits)
    for x in range(width):
        inside[margin, margin // WORD + 1 + x // WORD] |= U(1) << U(x % WORD)
    for y in range(margin, margin + height):
        inside[y] = inside[margin]
    return inside


@njit(**EXACT)
def _closed(mask, inside, width):
    """Return a mask with what is narrower than a width closed; beyond the image nothing is."""
    before, after = (width + 1) // 2, width - (width + 1) // 2
    gone = ~(_dilate(mask, before, after) & inside)
    return mask | (inside & ~_dilate(gone, before, after))


@njit(**EXACT_INLINE)
def _dilate(bits, before, after):
    """
    Return a mask with the pixels set that have a set one up to so many before or after, both ways.

    Rows follow one another: the margins between them are wider than any window.
    """
    words = bits.shape[1]
    here, there = bits.ravel().copy(), np.zeros(bits.size, np.uint64)
    reached, size = 1, before + after + 1  # of the windows that begin at every pixel
    while reached < size:
        step = min(reached, size - reached)
        aside, left, right = U(step // WORD), U(WORD - 1 - step % WORD), U(step % WORD)
        count = U(here.size) - aside - U(1)
        for i in range(count):
            there[i] = here[i] | (here[i + aside] >> right) \
                | (here[i + aside + U(1)] << U(1) << left)
        aside = U(step * words)
        for i in range(count - aside):
            here[i] = there[i] | there[i + aside]
        reached += step
    aside = U(before * words + before // WORD)
    left, right = U(before % WORD), U(WORD - 1 - before % WORD)
    for i in range(U(here.size) - aside - U(1)):
        there[i + aside + U(1)] = (here[i + U(1)] << left) | (here[i] >> U(1) >> right)
    return there.reshape(bits.shape)
