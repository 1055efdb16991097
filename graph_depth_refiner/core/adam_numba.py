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
"""ADAM on the energy with the gradient and the update fused: CPU kernels."""

from __future__ import annotations

from dataclasses import dataclass

from numba import get_num_threads, njit, prange
import numpy as np

from graph_depth_refiner.core.adam import BETA1, BETA2
from graph_depth_refiner.core.adam_nearest_numba import adam_nearest, EDGES, REACH
from graph_depth_refiner.core.adam_packed_numba import adam_packed, pack, Packed
from graph_depth_refiner.core.energy import REGULARISERS
from graph_depth_refiner.core.energy_numba import energy as _energy
from graph_depth_refiner.core.jit.options import FUSED, INLINE
from graph_depth_refiner.core.patch_graph import window_of
from graph_depth_refiner.core.rows_numba import (
    NEIGHBOURHOOD,
    NLTGV,
    nltgv,
    planar,
    residual_norms,
    slope_norms,
    update_row,
    wide_enough,
    with_margin,
    without_margin,
)
from graph_depth_refiner.core.types import Memory, Terms

# With at least so many edges per pixel it pays to pack the graph before the first step.
MANY_EDGES = 48
# On a 3x3 window steps are taken together, as many as cost this share at the seams.
SEAMS = 0.04


@dataclass
class State:
    """Where the minimisation stands, in noise units; the planes have a margin."""

    z: np.ndarray  # 3 H+2r W+2r
    next: np.ndarray  # the same, where the next step goes
    first: np.ndarray  # 3 H W
    second: np.ndarray  # 3 H W
    bad: np.ndarray  # H, how many values were not finite in the last step
    w: np.ndarray  # O H W
    d: np.ndarray  # H W
    m: np.ndarray  # H W
    unit: float
    terms: Terms
    count: int  # of ADAM, which may run on from frame to frame
    width: int  # of the image; the arrays are never narrower than a run
    packed: Packed | None  # the graph once more, in the order of the steps
    start: tuple[np.ndarray, np.ndarray]  # planes in the scale of the input, second moment
    taken: int = 0


def init(x, w, d, m, unit: float, terms: Terms, memory: Memory | None = None) -> State:
    """Begin at the planes x; the memory of the frame before keeps the step sizes."""
    width = d.shape[1]
    second = np.zeros(x.shape, np.float32) if memory is None else memory.second
    x, w, d, m, second = wide_enough(x, w, d, m, second)
    z = with_margin(x, unit, window_of(len(w)) // 2)
    return State(
        z, np.zeros_like(z), np.zeros(x.shape, np.float32), second.copy(),
        np.zeros(len(d), np.int64), w, d * np.float32(1 / unit), m, unit, terms,
        0 if memory is None else memory.count, width,
        pack(w) if len(w) >= MANY_EDGES and terms.regulariser == 'planar' else None,
        (x, second))


def step(state: State, rate: float, slope_rate: float) -> None:
    """Take one ADAM step of about `rate` units in d, unless it would not be finite."""
    _take(state, np.array([rate]), np.array([slope_rate]))


def steps(state: State, rates: list[float], slope_share: float) -> None:
    """Take the steps one after the other, as `step` does, without coming back in between."""
    _take(state, np.array(rates), np.array(rates) * slope_share)


def _take(state, rates, slope_rates):
    """Take steps as long as they are finite."""
    if not finite(state):
        return
    # steps taken together overwrite each other: only from the start is there a way back
    together = 1
    if _nearest(state) and state.taken == 0:
        together += int(SEAMS * len(state.d) / (REACH * get_num_threads()))
    taken = _steps(state, rates, slope_rates, together)
    if taken < len(rates) and together > 1:
        x, second = state.start
        state.z[...] = with_margin(x, state.unit, 1)
        state.first[...], state.second[...], state.bad[...] = 0, second, 0
        taken = _steps(state, rates, slope_rates, 1)
    if taken % 2:
        state.z, state.next = state.next, state.z
    state.count += taken
    state.taken += taken


def _steps(state, rates, slope_rates, together):
    """Take steps from z to next and back again; return how many were finite."""
    counts = state.count + 1.0 + np.arange(len(rates))
    one, two = 1 / (1 - BETA1 ** counts), 1 / (1 - BETA2 ** counts)
    height, terms = len(state.d), state.terms
    planes_and_moments = (
        state.z, state.d, state.m, state.first, state.second, state.next, state.bad,
        max(1, min(height // (2 * REACH * together), get_num_threads())), np.float32(terms.lam),
        np.float32(terms.alpha), np.float32(rates * one), np.float32(slope_rates * one),
        np.float32(two))
    if state.packed is not None:
        return adam_packed(len(state.w), *state.packed.arrays(), *planes_and_moments)
    if _nearest(state):
        return adam_nearest(state.w, together, *planes_and_moments)
    return _adam(state.w, REGULARISERS.index(terms.regulariser), *planes_and_moments)


def _nearest(state):
    return len(state.w) == EDGES and state.terms.regulariser == 'planar'


def finite(state: State) -> bool:
    """Tell whether all steps so far were finite."""
    return not state.bad.any()


def taken(state: State) -> int:
    """Return how many steps were taken."""
    return state.taken


def energy(state: State, x: np.ndarray | None = None, every: int = 1) -> float:
    """Return the energy in the scale of the input, of other planes x if given; see `_energy`."""
    terms = state.terms
    r = (state.z.shape[1] - len(state.d)) // 2
    z = state.z if x is None else with_margin(wide_enough(x)[0], state.unit, r)
    return state.unit * _energy(
        z, state.w, state.d, state.m, terms.lam, terms.alpha, terms.regulariser, every)


def planes(state: State) -> np.ndarray:
    """Return the planes in the scale of the input."""
    return without_margin(state.z, state.unit, (len(state.d), state.width))


def memory(state: State) -> Memory:
    """Return what the next frame's minimisation may go on with."""
    return Memory(state.second[:, :, :state.width], state.count)


@njit(parallel=True, **FUSED)
def _adam(
        w, regulariser, z, d, m, first, second, out, bad, strips, lam, alpha, rates,
        slope_rates, twos):
    """Step from z to out and back again; return how many steps were finite."""
    height = d.shape[0]
    r = (z.shape[1] - height) // 2
    for k in range(rates.size):
        centre, other = (z, out) if k % 2 == 0 else (out, z)
        rate, slope_rate, two = rates[k], slope_rates[k], twos[k]
        for strip in prange(strips):
            top, end = height * strip // strips, height * (strip + 1) // strips
            _strip(
                top, end, r, w, regulariser, centre, d, m, first, second, other, bad, lam, alpha,
                rate, slope_rate, two)
        if bad.any():
            return k
    return rates.size


@njit(**INLINE)
def _strip(
        top, end, r, w, regulariser, z, d, m, first, second, out, bad, lam, alpha, rate,
        slope_rate, two):
    """Step the rows from `top` to before `end`."""
    height = d.shape[0]
    rows = 2 * r + 1
    # of the rows around the present one: own gradient, inverse norms, whole gradient
    outgoing = np.zeros((rows, 3, z.shape[2]), np.float32)
    residual_norm = np.zeros((rows, z.shape[2]), np.float32)
    slope_norm = np.zeros((rows, z.shape[2]), np.float32)
    g = np.empty((3, z.shape[2]), np.float32)
    for y in range(top - r, end + r):
        if 0 <= y < height and regulariser != NLTGV:
            residual_norms(z, w, y, r, outgoing[y % rows], residual_norm[y % rows])
            if regulariser == NEIGHBOURHOOD:
                slope_norms(z, w, y, r, slope_norm[y % rows])
        if y - r < top:
            continue
        if regulariser == NLTGV:
            nltgv(z, w, y - r, r, alpha, g)
        else:
            planar(
                z, w, y - r, r, alpha, outgoing[(y - r) % rows], residual_norm, slope_norm,
                regulariser == NEIGHBOURHOOD, g)
        bad[y - r] = update_row(
            z, d, m, y - r, r, g, first, second, out, lam, rate, slope_rate, two)
