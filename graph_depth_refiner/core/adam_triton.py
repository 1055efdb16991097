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
ADAM on the energy as Triton kernels: two launches a step, one with the NLTGV regulariser.

The first launch finds the norms over the neighbourhood of every pixel, the second the gradient,
which needs those of the neighbours too, and the step. Planes alternate between two buffers, as
neighbours are read while a step is written. A step that is not finite anywhere is noted, and
those after it do nothing; the planes before it are the result.
"""

from __future__ import annotations

from dataclasses import dataclass
import math

import torch
import triton
import triton.language as tl

from graph_depth_refiner.core.adam import BETA1, BETA2, EPSILON
from graph_depth_refiner.core.energy import REGULARISERS, SLOPE_SMOOTHING, SMOOTHING
from graph_depth_refiner.core.patch_graph import window_of
from graph_depth_refiner.core.triton_launch import BLOCK, launch, programs, scalar
from graph_depth_refiner.core.types import Memory, Terms

_PLANAR, _NLTGV, _NEIGHBOURHOOD = (
    tl.constexpr(number) for number, _ in enumerate(REGULARISERS))
_SMOOTHING, _SLOPE_SMOOTHING = tl.constexpr(SMOOTHING), tl.constexpr(SLOPE_SMOOTHING)
_BETA1, _BETA2, _EPSILON = tl.constexpr(BETA1), tl.constexpr(BETA2), tl.constexpr(EPSILON)
_LOG_BETA1, _LOG_BETA2 = tl.constexpr(math.log(BETA1)), tl.constexpr(math.log(BETA2))
_FAR = 1 << 30  # a step that no minimisation comes to


@dataclass
class State:
    """Where the minimisation stands, in noise units."""

    buffers: torch.Tensor  # 2 3 H W, planes after an even and after an odd number of steps
    first: torch.Tensor  # 3 H W
    second: torch.Tensor  # 3 H W
    norms: torch.Tensor  # 2 H W
    failed: torch.Tensor  # 1, number of the first step that was not finite
    w: torch.Tensor  # O H W
    d: torch.Tensor  # H W
    m: torch.Tensor  # H W
    unit: torch.Tensor | float
    terms: Terms
    count: torch.Tensor  # of ADAM, before these steps
    done: int = 0  # steps that were asked for


def init(x, w, d, m, unit, terms: Terms, memory: Memory | None = None) -> State:
    """Begin at the planes x; the memory of the frame before keeps the step sizes."""
    second = torch.zeros_like(x) if memory is None else memory.second.clone()
    return State(
        torch.stack((x / unit,) * 2), torch.zeros_like(x), second, torch.empty_like(x[:2]),
        torch.full((1,), _FAR, dtype=torch.int32, device=x.device), w, d / unit, m, unit, terms,
        torch.zeros((), dtype=torch.float64, device=x.device) if memory is None
        else scalar(memory.count, x))


def step(state: State, rate: float, slope_rate: float) -> None:
    """Take one ADAM step of about `rate` units in d, unless it would not be finite."""
    steps(state, [rate], slope_rate / rate)


def steps(state: State, rates: list[float], slope_share: float) -> None:
    """Take the steps one after the other."""
    for rate in rates:
        _one_step(state, rate, slope_share * rate)


def _one_step(state: State, rate: float, slope_rate: float) -> None:
    height, width = state.d.shape
    now, then = state.buffers[state.done % 2], state.buffers[1 - state.done % 2]
    kind = REGULARISERS.index(state.terms.regulariser)
    constants = {'reach': window_of(len(state.w)) // 2, 'kind': kind, 'block': BLOCK}
    grid = programs(height * width)
    if state.terms.regulariser != 'nltgv':
        launch(norms_kernel, grid, now, state.w, state.norms, state.failed, state.done, height,
               width, **constants)
    launch(step_kernel, grid, now, then, state.first, state.second, state.norms, state.failed,
           state.w, state.d, state.m, state.count, float(rate), float(slope_rate),
           state.terms.lam, state.terms.alpha, state.done, height, width, **constants)
    state.done += 1


def finite(state: State) -> torch.Tensor:
    """Tell whether all steps so far were finite."""
    return state.failed[0] >= state.done


def taken(state: State) -> torch.Tensor:
    """Return how many steps were taken."""
    return state.failed[0].clamp(max=state.done)


def energy(state: State, x: torch.Tensor | None = None, every: int = 1) -> torch.Tensor:
    """Return the energy in the scale of the input, of other planes x if given, by n-th rows."""
    z = _standing(state) if x is None else x / state.unit
    height, width = state.d.shape
    parts = state.d.new_empty(programs(height * width))
    kind = REGULARISERS.index(state.terms.regulariser)
    launch(energy_kernel, len(parts), z, state.w, state.d, state.m, parts, state.terms.lam,
           state.terms.alpha, height, width, every, reach=window_of(len(state.w)) // 2, kind=kind,
           block=BLOCK)
    return state.unit * parts.sum() * (height / len(range(every // 2, height, every)))


def planes(state: State) -> torch.Tensor:
    """Return the planes in the scale of the input."""
    return _standing(state) * state.unit  # 3 H W


def _standing(state: State) -> torch.Tensor:
    """Return the planes, 3 H W, after the last step that was finite."""
    return state.buffers.index_select(0, (taken(state) % 2).view(1))[0]


def memory(state: State) -> Memory:
    """Return what the next frame's minimisation may go on with."""
    return Memory(state.second, state.count + state.done)


@triton.jit
def _rsqrt(square, smoothing: tl.constexpr):
    """Return the factor from a vector to the gradient of its smoothed norm."""
    return 1.0 / tl.sqrt(square + smoothing * smoothing)


@triton.jit
def _norm(square, smoothing: tl.constexpr):
    """Return the smoothed norm of which the square is given."""
    return square / (tl.sqrt(square + smoothing * smoothing) + smoothing)


@triton.jit
def _edge(w, place, valid, y, x, size, height, width, dy, dx, reach: tl.constexpr):
    """Return the weights of an edge and of its way back, the neighbour, and whether there is."""
    side: tl.constexpr = 2 * reach + 1
    number = (dy + reach) * side + dx + reach
    inside = valid & (y + dy >= 0) & (y + dy < height) & (x + dx >= 0) & (x + dx < width)
    inside = inside & ((dy != 0) | (dx != 0))
    number = number - (number > side * side // 2).to(tl.int32)  # the pixel itself has none
    other = place + dy * width + dx
    forth = tl.load(w + number * size + place, mask=inside, other=0.0)
    back = tl.load(w + (side * side - 2 - number) * size + other, mask=inside, other=0.0)
    return forth, back, other, inside


@triton.jit(do_not_specialize=['number', 'height', 'width'])
def norms_kernel(z, w, norms, failed, number, height, width, reach: tl.constexpr,
                 kind: tl.constexpr, block: tl.constexpr):
    """Write the factors of the norms over the neighbourhood of every pixel, 2 H W."""
    if tl.load(failed) < number:
        return
    size = height * width
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    y, x = place // width, place % width
    d = tl.load(z + place, mask=valid, other=0.0)
    ux = tl.load(z + size + place, mask=valid, other=0.0)
    uy = tl.load(z + 2 * size + place, mask=valid, other=0.0)
    residuals = tl.zeros([block], tl.float32)
    slopes = tl.zeros([block], tl.float32)
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            forth, _, other, inside = _edge(
                w, place, valid, y, x, size, height, width, dy, dx, reach)
            r = forth * (tl.load(z + other, mask=inside, other=0.0) - d - ux * dx - uy * dy)
            residuals += r * r
            if kind == _NEIGHBOURHOOD:
                a = forth * (tl.load(z + size + other, mask=inside, other=0.0) - ux)
                b = forth * (tl.load(z + 2 * size + other, mask=inside, other=0.0) - uy)
                slopes += a * a + b * b
    tl.store(norms + place, _rsqrt(residuals, _SMOOTHING), mask=valid)
    if kind == _NEIGHBOURHOOD:
        tl.store(norms + size + place, _rsqrt(slopes, _SLOPE_SMOOTHING), mask=valid)


@triton.jit(do_not_specialize=['number', 'height', 'width'])
def step_kernel(z, new, first, second, norms, failed, w, data, m, count, rate, slope_rate, lam,
                alpha, number, height, width, reach: tl.constexpr, kind: tl.constexpr,
                block: tl.constexpr):
    """Write the planes after a step, and update the moments in place."""
    if tl.load(failed) < number:
        return
    size = height * width
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    y, x = place // width, place % width
    d = tl.load(z + place, mask=valid, other=0.0)
    ux = tl.load(z + size + place, mask=valid, other=0.0)
    uy = tl.load(z + 2 * size + place, mask=valid, other=0.0)
    norm, slope_norm = d, d  # read where they are used
    if kind != _NLTGV:
        norm = tl.load(norms + place, mask=valid, other=0.0)
    if kind == _NEIGHBOURHOOD:
        slope_norm = tl.load(norms + size + place, mask=valid, other=0.0)
    gd, gx, gy = tl.zeros_like(d), tl.zeros_like(d), tl.zeros_like(d)
    sx, sy = tl.zeros_like(d), tl.zeros_like(d)
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            forth, back, other, inside = _edge(
                w, place, valid, y, x, size, height, width, dy, dx, reach)
            value = tl.load(z + other, mask=inside, other=0.0)
            vx = tl.load(z + size + other, mask=inside, other=0.0)
            vy = tl.load(z + 2 * size + other, mask=inside, other=0.0)
            outgoing = value - d - ux * dx - uy * dy
            incoming = d - value + vx * dx + vy * dy
            a, b = ux - vx, uy - vy
            if kind == _NLTGV:
                outgoing = forth * outgoing * _rsqrt(outgoing * outgoing, _SMOOTHING)
                incoming = back * incoming * _rsqrt(incoming * incoming, _SMOOTHING)
                sx += (forth + back) * a * _rsqrt(a * a, _SLOPE_SMOOTHING)
                sy += (forth + back) * b * _rsqrt(b * b, _SLOPE_SMOOTHING)
            else:
                outgoing = forth * forth * outgoing * norm
                incoming = back * back * incoming * tl.load(
                    norms + other, mask=inside, other=0.0)
                factor = (forth + back) * _rsqrt(a * a + b * b, _SLOPE_SMOOTHING)
                if kind == _NEIGHBOURHOOD:
                    factor = forth * forth * slope_norm + back * back * tl.load(
                        norms + size + other, mask=inside, other=0.0)
                sx += factor * a
                sy += factor * b
            gd += incoming - outgoing
            gx -= outgoing * dx
            gy -= outgoing * dy
    e = d - tl.load(data + place, mask=valid, other=0.0)
    gd = tl.load(m + place, mask=valid, other=0.0) * e * _rsqrt(e * e, _SMOOTHING) + lam * gd
    steps = tl.load(count) + number + 1
    one = (1.0 / (1.0 - tl.exp(steps * _LOG_BETA1))).to(tl.float32)  # free of the bias of
    two = (1.0 / (1.0 - tl.exp(steps * _LOG_BETA2))).to(tl.float32)  # moments that began at 0
    bad = _moved(gd, d, first, second, rate * one, two, place, valid, new)
    gx = lam * (gx + alpha * sx)
    bad = bad | _moved(gx, ux, first + size, second + size, slope_rate * one, two, place, valid,
                       new + size)
    gy = lam * (gy + alpha * sy)
    bad = bad | _moved(gy, uy, first + 2 * size, second + 2 * size, slope_rate * one, two, place,
                       valid, new + 2 * size)
    if tl.max(bad.to(tl.int32), axis=0) > 0:
        tl.atomic_min(failed, number)


@triton.jit
def _moved(g, value, first, second, rate, unbias, place, valid, new):
    """Take the step of one component; return where it is not finite."""
    one = tl.load(first + place, mask=valid, other=0.0) * _BETA1 + (1 - _BETA1) * g
    two = tl.load(second + place, mask=valid, other=0.0) * _BETA2 + (1 - _BETA2) * g * g
    length = rate / (tl.sqrt(two * unbias) + _EPSILON)
    moved = value - length * one
    tl.store(first + place, one, mask=valid)
    tl.store(second + place, two, mask=valid)
    tl.store(new + place, moved, mask=valid)
    return valid & ~(tl.abs(moved) < float('inf'))  # also where it is not a number


@triton.jit(do_not_specialize=['height', 'width', 'every'])
def energy_kernel(z, w, data, m, parts, lam, alpha, height, width, every, reach: tl.constexpr,
                  kind: tl.constexpr, block: tl.constexpr):
    """Write the energy of the pixels of every program, in every n-th row."""
    size = height * width
    place = tl.program_id(0) * block + tl.arange(0, block)
    valid = place < size
    y, x = place // width, place % width
    d = tl.load(z + place, mask=valid, other=0.0)
    ux = tl.load(z + size + place, mask=valid, other=0.0)
    uy = tl.load(z + 2 * size + place, mask=valid, other=0.0)
    residuals, slopes = tl.zeros_like(d), tl.zeros_like(d)
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            forth, _, other, inside = _edge(
                w, place, valid, y, x, size, height, width, dy, dx, reach)
            r = tl.load(z + other, mask=inside, other=0.0) - d - ux * dx - uy * dy
            a = tl.load(z + size + other, mask=inside, other=0.0) - ux
            b = tl.load(z + 2 * size + other, mask=inside, other=0.0) - uy
            if kind == _NLTGV:
                residuals += forth * _norm(r * r, _SMOOTHING)
                slopes += forth * (
                    _norm(a * a, _SLOPE_SMOOTHING) + _norm(b * b, _SLOPE_SMOOTHING))
            else:
                residuals += forth * forth * r * r
                if kind == _PLANAR:
                    slopes += forth * _norm(a * a + b * b, _SLOPE_SMOOTHING)
                else:
                    slopes += forth * forth * (a * a + b * b)
    if kind != _NLTGV:
        residuals = _norm(residuals, _SMOOTHING)
    if kind == _NEIGHBOURHOOD:
        slopes = _norm(slopes, _SLOPE_SMOOTHING)
    e = d - tl.load(data + place, mask=valid, other=0.0)
    total = tl.load(m + place, mask=valid, other=0.0) * _norm(e * e, _SMOOTHING)
    total += lam * (residuals + alpha * slopes)
    counts = valid & (y % every == every // 2)
    tl.store(parts + tl.program_id(0), tl.sum(tl.where(counts, total, 0.0), axis=0))
