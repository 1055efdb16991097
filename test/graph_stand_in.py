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
A stand-in for CUDA graphs on a CPU: operations are recorded, and done again in the same memory.

As a CUDA graph it knows neither Python nor new tensors: numbers are as they were when they were
recorded, every operation reads and writes the tensors that it did then, and what it wrote holds
nothing until the recording is replayed. What a capture refuses is refused: values that are read
back, and tensors that come from outside, whose memory nobody keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from graph_depth_refiner.core import transfer_torch
from graph_depth_refiner.core.kernels import Kernels
from graph_depth_refiner.core.triton_launch import Launch, launch, listening

_recordings: list[Recording] = []  # under way


def as_of_a_device(k: Kernels) -> Kernels:
    """Return kernels for a CPU whose results are copied to the host, as those of a device are."""
    def read(values: torch.Tensor) -> np.ndarray:
        if _recordings:
            raise RuntimeError('capture: expected no value to be read, got an array')
        return values.clone().numpy()
    return k._replace(numpy=read, fetch=lambda packed: transfer_torch.unpack(
        read(packed.values), packed))


class Recording(TorchDispatchMode):
    """Notes every operation of torch and every launch of Triton, and does it."""

    def __init__(self, buffers: list[torch.Tensor]) -> None:
        """Take what may be read from the start on."""
        super().__init__()
        self.done: list[Callable[[], None]] = []
        self.made: dict[int, torch.Tensor] = {}
        self._known = {storage(one) for one in buffers}
        self._paused = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note one operation."""
        kwargs = kwargs or {}
        if self._paused:
            return func(*args, **kwargs)
        self._check(str(func), tensors((args, kwargs)))
        found = func(*args, **kwargs)
        given = {storage(one) for one in tensors((args, kwargs))}
        results = tensors(found)
        if isinstance(found, (bool, int, float)):
            raise RuntimeError(f'capture: expected no value to be read, got {func}')
        fresh = [one for one in results if storage(one) not in given]
        for one in fresh:
            self._known.add(storage(one))
            self.made[storage(one)] = one
        if fresh:
            self.done.append(lambda: renew(results, tensors(func(*args, **kwargs)), given))
        elif func._schema.is_mutable:
            self.done.append(lambda: func(*args, **kwargs))  # all others are views
        return found

    def launched(self, one: Launch) -> bool:
        """Note a launch of Triton, and start it."""
        self._check(str(one.kernel), tensors(one.arguments))

        def start() -> None:
            self._paused = True
            one.kernel[one.grid](*one.arguments, **one.constants)
            self._paused = False
        start()
        self.done.append(lambda: launch(one.kernel, one.grid, *one.arguments, **one.constants))
        return True

    def _check(self, name: str, given: list[torch.Tensor]) -> None:
        if any(storage(one) not in self._known for one in given):
            raise RuntimeError(f'capture: expected tensors in buffers, got another in {name}')


def capture(act: Callable[[], Any], buffers: list[torch.Tensor]
            ) -> tuple[Callable[[], None], Any]:
    """Record what a function does; return how that is done again, and the result."""
    recording = Recording(buffers)
    _recordings.append(recording)
    try:
        with recording, listening(recording.launched):
            result = act()
    finally:
        _recordings.remove(recording)
    for one in recording.made.values():  # nothing has been computed yet
        one.fill_(float('nan') if one.is_floating_point() else one.dtype is torch.bool or 77)

    def replay() -> None:
        for again in recording.done:
            again()
    return replay, result


def renew(results: list[torch.Tensor], again: list[torch.Tensor], given: set[int]) -> None:
    """Write new results over those that were recorded."""
    for old, new in zip(results, again):
        if storage(old) not in given:
            old.copy_(new)


def storage(tensor: torch.Tensor) -> int:
    """Return what identifies the memory of a tensor."""
    return tensor.untyped_storage()._cdata


def tensors(value: Any) -> list[torch.Tensor]:
    """Return all tensors in nested values."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for one in value for leaf in tensors(one)] if isinstance(
        value, (list, tuple)) else []
