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
"""Stages of a device that are compared with their references on the CPU at every call."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
import time
from typing import Any

import torch

from graph_depth_refiner.core.kernels import Kernels
from graph_depth_refiner.core.triton_launch import listening

TOLERANCE = 1e-3  # of the largest value of a result
FLIPPED = 0.01  # share of values that may differ by more: choices between equals fall either way
# what moves data or is no stage of its own
_PASSED = {'name', 'device', 'array', 'arrays', 'zeros', 'motion', 'noise', 'numpy', 'pack',
           'fetch', 'inverse_depth', 'weigh', 'where', 'either', 'adam', 'irls',
           'normal_equations', 'band_changes'}


@dataclass
class Stage:
    """What is known of one stage after some calls."""

    calls: int = 0
    launches: int = 0  # of Triton
    seconds: float = 0.0
    size: int = 0  # bytes of arguments and results
    off: float = 0.0  # largest share of values that differ

    @property
    def milliseconds(self) -> float:
        """Return the time of a call."""
        return 1e3 * self.seconds / max(1, self.calls)

    @property
    def gb_per_s(self) -> float:
        """Return how fast memory would be if all were read or written once."""
        return self.size / max(self.seconds, 1e-9) / 1e9

    @property
    def agrees(self) -> bool:
        """Tell whether the results are those of the reference."""
        return self.off <= FLIPPED


def checked(k: Kernels, reference: Kernels) -> tuple[dict[str, Stage], Kernels]:
    """Return kernels that compare every stage with the reference, and what they find."""
    stages: dict[str, Stage] = {}
    wrapped = {}
    for name in set(k._fields) - _PASSED:
        stages[name] = Stage()
        wrapped[name] = _compared(getattr(k, name), getattr(reference, name), stages[name])
    stages['adam'] = Stage()
    wrapped['adam'] = CheckedAdam(k.adam, reference.adam, stages['adam'])
    return stages, k._replace(**wrapped)


def _compared(stage: Any, reference: Any, note: Stage) -> Any:
    def run(*arguments: Any, **more: Any) -> Any:
        given = [to_cpu(one) for one in arguments]
        expected = reference(*given, **{name: to_cpu(one) for name, one in more.items()})
        found = _timed(note, stage, *arguments, **more)
        changed = (arguments, given) if found is None else (found, expected)  # in place
        note.off = max(note.off, difference(*changed))
        note.size += sum(one.numel() * one.element_size() for one in tensors((arguments, found)))
        return found
    return run


def _timed(note: Stage, call: Any, *arguments: Any, **more: Any) -> Any:
    """Call something and book its time and launches."""
    heard: list = []
    device = next((one.device for one in tensors(arguments)), None)
    wait = torch.cuda.synchronize if device is not None and device.type == 'cuda' else None
    if wait:
        wait(device)
    start = time.perf_counter()
    with listening(heard.append):
        found = call(*arguments, **more)
    if wait:
        wait(device)
    note.seconds += time.perf_counter() - start
    note.calls += 1
    note.launches += len(heard)
    return found


class CheckedAdam:
    """ADAM on a device that is compared with the reference after its steps."""

    def __init__(self, adam: Any, reference: Any, note: Stage) -> None:
        """Take both variants and where to note what they come to."""
        self._adam, self._reference, self._note = adam, reference, note
        self._twin: Any = None
        self.step, self.finite, self.taken = adam.step, adam.finite, adam.taken
        self.energy, self.planes, self.memory = adam.energy, adam.planes, adam.memory

    def init(self, *arguments: Any) -> Any:
        """Begin with both."""
        self._twin = self._reference.init(*map(to_cpu, arguments))
        return self._adam.init(*arguments)

    def steps(self, state: Any, rates: list[float], slope_share: float) -> None:
        """Take the steps of both, and compare the planes."""
        _timed(self._note, self._adam.steps, state, rates, slope_share)
        self._reference.steps(self._twin, rates, slope_share)
        self._note.off = max(self._note.off, difference(
            self._adam.planes(state), self._reference.planes(self._twin)))


def to_cpu(value: Any) -> Any:
    """Return a copy of nested values with all tensors on the CPU."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone()
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{
            one.name: to_cpu(getattr(value, one.name)) for one in fields(value)})
    if isinstance(value, tuple) and hasattr(value, '_replace'):
        return type(value)(*map(to_cpu, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(to_cpu, value))
    return value


def tensors(value: Any) -> list[torch.Tensor]:
    """Return all tensors in nested values."""
    if isinstance(value, torch.Tensor):
        return [value]
    if is_dataclass(value) and not isinstance(value, type):
        return [leaf for one in fields(value) for leaf in tensors(getattr(value, one.name))]
    return [leaf for one in value for leaf in tensors(one)] if isinstance(
        value, (list, tuple)) else []


def difference(found: Any, expected: Any) -> float:
    """Return the largest share of values of any tensor that differ by more than the tolerance."""
    shares = [0.0]
    for one, other in zip(tensors(found), tensors(expected)):
        one, other = one.detach().cpu().double(), other.detach().cpu().double()
        scale = other[other.isfinite()].abs().max().item() if other.isfinite().any() else 1.0
        same = (one == other) | (one.isnan() & other.isnan()) | (
            (one - other).abs() <= TOLERANCE * scale)
        shares.append(1 - same.double().mean().item() if one.numel() else 0.0)
    return max(shares)
