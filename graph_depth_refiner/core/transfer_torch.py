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
What goes to a device and comes back: inputs packed into one copy, results into another.

In between nothing is asked of the device, as asking waits for it. Where the result decides what
is done next, `either` computes both ways and lets the device choose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import torch

from graph_depth_refiner.core.noise import NoiseModel

_ALIGNMENT = 16  # bytes


def upload(arrays: list[np.ndarray], device: str) -> list[torch.Tensor]:
    """Copy arrays to a device, all of them at once."""
    starts, end = [], 0
    for one in arrays:
        starts.append(end)
        end += -(-one.nbytes // _ALIGNMENT) * _ALIGNMENT
    staged = torch.empty(end, dtype=torch.uint8, pin_memory=device.startswith('cuda'))
    for start, one in zip(starts, arrays):
        staged.numpy()[start:start + one.nbytes] = one.reshape(-1).view(np.uint8)
    packed = staged.to(device, non_blocking=True)
    return [packed[start:start + one.nbytes].view(_dtype(one)).view(one.shape)
            for start, one in zip(starts, arrays)]


def _dtype(array: np.ndarray) -> torch.dtype:
    return torch.from_numpy(array[:0]).dtype


def noise_on(device: str, model: NoiseModel) -> NoiseModel:
    """Return a model of the noise whose numbers are on a device."""
    numbers, = upload([np.array(
        [model.floor, model.share, model.independent, *model.matrix, *model.vector])], device)
    floor, share, independent, a, b, c, p, q = numbers
    return replace(model, floor=floor, share=share, independent=independent,
                   matrix=(a, b, c), vector=(p, q))


def either(condition: Any, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """Return one result if a condition holds, else the other; on a device it has both."""
    if not isinstance(condition, torch.Tensor):
        return one() if condition else other()
    return _chosen(condition, one(), other())


def _chosen(condition: torch.Tensor, one: Any, other: Any) -> Any:
    """Choose between two results of the same structure; None is 0, as it stands for no memory."""
    if one is other:
        return one
    if is_dataclass(one):
        values = {field.name: _chosen(condition, getattr(one, field.name), getattr(
            other, field.name, None)) for field in fields(one)}
        return replace(one, **values)
    if isinstance(one, tuple):
        return tuple(_chosen(condition, *pair) for pair in zip(one, other))
    return torch.where(condition, one, 0 if other is None else other)


def smaller(one: torch.Tensor | float, other: float) -> torch.Tensor | float:
    """Return the smaller of two numbers."""
    return one.clamp(max=other) if isinstance(one, torch.Tensor) else min(one, other)


def pack(arrays: tuple[torch.Tensor, ...], numbers: list) -> torch.Tensor:
    """Return arrays and then numbers, of the device or not, as bytes in one tensor."""
    like = arrays[0]
    values = torch.stack([
        one.double() if isinstance(one, torch.Tensor)
        else torch.full((), one, dtype=torch.float64, device=like.device) for one in numbers])
    return torch.cat([one.contiguous().view(-1).view(torch.uint8) for one in (values, *arrays)])


def unpack(packed: np.ndarray, arrays: tuple[torch.Tensor, ...], count: int
           ) -> tuple[list[np.ndarray], list[float]]:
    """Return arrays, shaped as those given, and so many numbers from bytes on the host."""
    at, found = 8 * count, []
    for one in arrays:
        size = one.numel() * one.element_size()
        kind = np.uint8 if one.dtype == torch.uint8 else np.float32
        found.append(packed[at:at + size].view(kind).reshape(tuple(one.shape)))
        at += size
    return found, packed[:8 * count].view(np.float64).tolist()
