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
"""The noise of a sensor: CPU kernels."""

from __future__ import annotations

from numba import njit, prange
import numpy as np

from graph_depth_refiner.core.jit.options import EXACT, FUSED, ONE, U, ZERO
from graph_depth_refiner.core.noise import (
    BINS,
    COMMON,
    learn,
    NoiseModel,
    REPEATED,
    SAME,
    SAMPLES,
)
from graph_depth_refiner.core.statistics import stride_for
from graph_depth_refiner.core.statistics_numba import upper_median

_COMMON, _SAME = np.float32(COMMON), np.float32(SAME)
_DIGIT = 11  # bits of a number that are sorted by at once


def known_sigma(noise: NoiseModel, d: np.ndarray, frames: np.ndarray, unit: float) -> np.ndarray:
    """Return the deviation, H W, of means d of so many frames; a unit where nothing is known."""
    sigma = np.empty_like(d)
    _known_sigma(d, frames, np.float32(noise.floor), np.float32(noise.share), np.float32(unit),
                 sigma)
    return sigma


@njit(parallel=True, **FUSED)
def _known_sigma(d, frames, floor, share, unit, sigma):
    height, width = d.shape
    for y in prange(height):
        for x in range(U(width)):
            value = d[y, x]
            known = (share * value + floor) * np.sqrt(
                _COMMON + (ONE - _COMMON) / max(frames[y, x], ONE))
            sigma[y, x] = known if value > ZERO else unit


def learn_noise(model: NoiseModel, d: np.ndarray, m: np.ndarray, history: np.ndarray,
                frames: np.ndarray, gate: float) -> NoiseModel:
    """Return the model after the residuals of some pixels, H W, of those within the gate."""
    step = stride_for(d.shape, SAMPLES)
    samples = np.empty((3, -(-d.shape[0] // step) * -(-d.shape[1] // step)), np.float32)
    count, both, same = _collect(
        d, m, history, frames, np.float32(model.floor), np.float32(model.share),
        np.float32(gate), step, samples)
    if same > REPEATED * both:
        return model  # the same frame again, as slow cameras send it, tells nothing
    d, residual, behind = samples[:, :count]
    return learn(model, d, residual, behind, binned)


@njit(**EXACT)
def _collect(d, m, history, frames, floor, share, gate, step, samples):
    """
    List d, residual and frames of some pixels that have a history, of those within the gate.

    Return how many these are, how many have a history, and how many of these are the same again.
    """
    height, width = d.shape
    count = both = same = 0
    for y in range(0, height, step):
        for x in range(0, width, step):
            if m[y, x] > ZERO and history[y, x] > ZERO and frames[y, x] > ZERO:
                residual = d[y, x] - history[y, x]
                samples[0, count], samples[1, count] = d[y, x], residual
                samples[2, count] = frames[y, x]
                sigma = (floor + share * d[y, x]) * np.sqrt(ONE + ONE / max(frames[y, x], ONE))
                both += 1
                same += abs(residual) <= _SAME * d[y, x]
                count += abs(residual) <= gate * sigma
    return count, both, same


def binned(d: np.ndarray, residual: np.ndarray, frames: np.ndarray
           ) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the typical inverse depth of N samples, and mean and median residual of each bin."""
    mean, spread = np.empty(len(d), np.float32), np.empty(len(d), np.float32)
    _of_all_frames(d, residual, frames, mean, spread)
    means, spreads = np.empty(BINS), np.empty(BINS)
    _bins(mean, spread.view(np.uint32), rising_order(mean), means, spreads)
    return float(upper_median(d.view(np.uint32).copy())), means, spreads


@njit(**EXACT)
def _of_all_frames(d, residual, frames, mean, spread):
    """Give the mean of all frames, and the residual in deviations of one."""
    for i in range(d.size):
        behind = max(frames[i], ONE)
        mean[i] = d[i] - residual[i] * behind / (ONE + behind)
        spread[i] = abs(residual[i]) / np.sqrt(ONE + ONE / behind)


@njit(**EXACT)
def _bins(mean, spread, rising, means, spreads):
    """Give the mean, and the median of the spread, in bits, of bins of equally many samples."""
    size, more, begin = rising.size // BINS, rising.size % BINS, 0
    keys = np.empty(size + 1, np.uint32)
    for part in range(BINS):
        count = size + (part < more)
        total = 0.0
        for k in range(count):
            total += mean[rising[begin + k]]
            keys[k] = spread[rising[begin + k]]
        means[part], spreads[part] = total / count, upper_median(keys[:count])
        begin += count


def rising_order(values: np.ndarray) -> np.ndarray:
    """Return the places of N float32 above 0 in rising order, equal ones as they come."""
    return _radix_order(values.view(np.uint32))  # numbers above 0 rise as their bits do


@njit(**EXACT)
def _radix_order(keys):
    """Sort keys together with their places, the bits of both in a number, by one digit a pass."""
    both, other = np.empty(keys.size, np.uint64), np.empty(keys.size, np.uint64)
    for i in range(U(keys.size)):
        both[i] = (U(keys[i]) << U(32)) | i
    mask = U((1 << _DIGIT) - 1)
    for digit in range(32, 64, _DIGIT):
        places, before = np.zeros(1 << _DIGIT, np.int64), 0
        for i in range(U(both.size)):
            places[(both[i] >> U(digit)) & mask] += 1
        for value in range(places.size):
            count = places[value]
            places[value] = before
            before += count
        for i in range(U(both.size)):
            value = (both[i] >> U(digit)) & mask
            other[U(places[value])] = both[i]
            places[value] += 1
        both, other = other, both
    order = np.empty(keys.size, np.int64)
    for i in range(U(order.size)):
        order[i] = both[i] & U(0xFFFFFFFF)
    return order
