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
"""ADAM in compiled torch: `adam_torch` with its update compiled into a few kernels."""

from __future__ import annotations

from functools import cache

import torch

from graph_depth_refiner.core import adam_torch
from graph_depth_refiner.core.adam_torch import energy, finite, init, memory, planes, State, taken

__all__ = [
    'energy', 'finite', 'init', 'memory', 'planes', 'State', 'step', 'steps', 'taken', 'update']

MOST_KINDS = 8  # of torch, per function
_kinds: set[tuple] = set()


@cache
def update(compiler: str = 'inductor'):
    """Return the compiled update; `fullgraph` refuses whatever would wait for the device."""
    return torch.compile(adam_torch.adam, fullgraph=True, dynamic=False, backend=compiler)


def step(state: State, rate: float, slope_rate: float) -> None:
    """Take one ADAM step of about `rate` units in d, unless it would not be finite."""
    _make_room(state)
    adam_torch.step(state, rate, slope_rate, update())


def steps(state: State, rates: list[float], slope_share: float) -> None:
    """Take the steps one after the other."""
    _make_room(state)
    adam_torch.steps(state, rates, slope_share, update())


def _make_room(state: State) -> None:
    """Forget what was compiled for other sizes before torch refuses to compile any more."""
    kind = (state.w.shape, state.z.dtype, state.z.device, state.terms.regulariser)
    if kind not in _kinds:
        if len(_kinds) >= MOST_KINDS:
            torch.compiler.reset()
            _kinds.clear()
        _kinds.add(kind)
