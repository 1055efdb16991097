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
The one way by which Triton kernels are started, so that they can be counted and compiled ahead.

With tensors of a CUDA device a kernel runs there, with tensors of a CPU in Triton's interpreter
(TRITON_INTERPRET=1). Fake tensors have no values: then a launch is only noted, which is how
`benchmark gpu --dry-run` knows what a frame launches, and with which types, without a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
import os
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor

# pixels of one program; the interpreter takes about as long for many as for few
BLOCK = 1024 if os.environ.get('TRITON_INTERPRET') == '1' else 256


class Launch(NamedTuple):
    """One start of a kernel."""

    kernel: Any  # of triton.jit
    grid: tuple[int, ...]
    arguments: tuple
    constants: dict[str, Any]


_listeners: list[Callable[[Launch], Any]] = []


@contextmanager
def listening(listener: Callable[[Launch], Any]):
    """Let somebody hear of every launch; who returns True has started the kernel already."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def launch(kernel: Any, grid: int | tuple[int, ...], *arguments: Any, **constants: Any) -> None:
    """Start so many programs of a kernel; nothing is waited for."""
    grid = grid if isinstance(grid, tuple) else (grid,)
    started = [listener(Launch(kernel, grid, arguments, constants)) for listener in _listeners]
    if True in started or any(isinstance(one, FakeTensor) for one in arguments):
        return
    with _on_device_of(arguments):
        kernel[grid](*arguments, **constants)


def programs(pixels: int, block: int = BLOCK) -> int:
    """Return how many programs it takes for so many pixels."""
    return -(-pixels // block)


def scalar(value: torch.Tensor | float, like: torch.Tensor) -> torch.Tensor:
    """Return a number on the device of a tensor, float64; one that is there already stays."""
    if isinstance(value, torch.Tensor):
        return value.double()
    return torch.full((), value, dtype=torch.float64, device=like.device)


def _on_device_of(arguments: tuple) -> Any:
    """Return a context in which the device of the tensors is the current one."""
    tensor = next(one for one in arguments if isinstance(one, torch.Tensor))
    return torch.cuda.device(tensor.device if tensor.is_cuda else -1)
