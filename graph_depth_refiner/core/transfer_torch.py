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

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
import math
from typing import Any, NamedTuple

import numpy as np
import torch

from graph_depth_refiner.core.noise import NoiseModel

_ALIGNMENT = 16  # bytes


def upload(arrays: list[np.ndarray], device: str) -> list[torch.Tensor]:
    """Copy arrays to a device, all of them at once."""
    if device.startswith('cuda') and torch.cuda.is_current_stream_capturing():
        raise RuntimeError('upload: expected before a capture, got one in it')
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
    leaves, rebuilt = _leaves(one())
    others, _ = _leaves(other())
    return rebuilt(iter(_chosen(condition, leaves, others)))


def _leaves(value: Any) -> tuple[list, Callable[[Iterator], Any]]:
    """Return what a nested result holds, and how it is put together again."""
    if is_dataclass(value) and not isinstance(value, type):
        names = [one.name for one in fields(value)]
        parts, rebuilt = _leaves(tuple(getattr(value, name) for name in names))
        return parts, lambda found: replace(value, **dict(zip(names, rebuilt(found))))
    if isinstance(value, tuple):
        some = [_leaves(one) for one in value]
        return ([leaf for parts, _ in some for leaf in parts],
                lambda found: tuple(rebuilt(found) for _, rebuilt in some))
    return [value], next


def _chosen(condition: torch.Tensor, one: list, other: list) -> list:
    """Choose between two lists, leaf by leaf, the numbers all at once."""
    if len(other) == 1 and other[0] is None:  # no memory: as one of nothing
        other = [0] * len(one)
    chosen = list(one)
    numbers = [place for place, pair in enumerate(zip(one, other))
               if pair[0] is not pair[1] and all(map(_is_number, pair))]
    for place, pair in enumerate(zip(one, other)):
        if pair[0] is not pair[1] and place not in numbers:
            chosen[place] = torch.where(condition, *pair)
    if numbers:
        found = torch.where(condition, *(
            stack([some[place] for place in numbers], condition) for some in (one, other)))
        for place, value in zip(numbers, found):
            chosen[place] = value
    return chosen


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) or (
        isinstance(value, torch.Tensor) and value.ndim == 0)


def stack(numbers: list, like: torch.Tensor) -> torch.Tensor:
    """Return numbers, on the device or not, as one tensor there, float64."""
    known = {one for one in numbers if not isinstance(one, torch.Tensor)}
    filled = {one: torch.full((), one, dtype=torch.float64, device=like.device) for one in known}
    there = [one if isinstance(one, torch.Tensor) else filled[one] for one in numbers]
    return torch.stack([one.double() for one in there])


def smaller(one: torch.Tensor | float, other: float) -> torch.Tensor | float:
    """Return the smaller of two numbers."""
    return one.clamp(max=other) if isinstance(one, torch.Tensor) else min(one, other)


class Packed(NamedTuple):
    """Numbers and then arrays as bytes, and what is in there."""

    values: torch.Tensor  # uint8
    numbers: int
    arrays: tuple[tuple[tuple[int, ...], torch.dtype], ...]  # shape and type: uint8 or float32


def pack(arrays: tuple[torch.Tensor, ...], numbers: tuple) -> Packed:
    """Return arrays and numbers, of the device or not, as bytes in one tensor there."""
    values = stack(list(numbers), arrays[0])
    return Packed(
        torch.cat([one.contiguous().view(-1).view(torch.uint8) for one in (values, *arrays)]),
        len(numbers), tuple((tuple(one.shape), one.dtype) for one in arrays))


def unpack(values: np.ndarray, packed: Packed) -> tuple[list[np.ndarray], list[float]]:
    """Return the arrays and numbers that were packed from their bytes on the host."""
    at, found = 8 * packed.numbers, []
    for shape, kind in packed.arrays:
        there = np.dtype(np.uint8 if kind == torch.uint8 else np.float32)
        size = math.prod(shape) * there.itemsize
        found.append(values[at:at + size].view(there).reshape(shape))
        at += size
    return found, values[:8 * packed.numbers].view(np.float64).tolist()
