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
What a frame asks of a GPU, counted without one.

The frame runs under fake tensors, which have shapes and types but no values: whatever would wait
for a value raises. Uploads and the two planned waits are answered here, and counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
import math
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core import cleaning, transfer_torch
from graph_depth_refiner.core.cuda_graphs import Graphs, WARM_UPS
from graph_depth_refiner.core.kernels import Kernels, triton_kernels
from graph_depth_refiner.core.noise import NoiseModel
from graph_depth_refiner.core.triton_launch import Launch, listening
from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.refiner import DepthRefiner

# operations of torch that start nothing on a device
_FREE = {'aten::empty', 'aten::empty_like', 'aten::new_empty', 'aten::empty_strided',
         'aten::new_empty_strided', 'aten::detach', 'aten::alias', 'aten::_unsafe_view',
         'aten::sym_size', 'aten::is_pinned'}
# a tensor made of Python's numbers is copied to the device, which waits for it
_HIDDEN_UPLOADS = {'aten::lift_fresh', 'aten::lift_fresh_copy', 'aten::lift'}
MOTION = 17  # numbers that are read where a motion is searched for


@dataclass
class Plan:
    """What one frame asks of a device."""

    frame: str
    uploads: int = 0
    downloads: int = 0
    waits: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    bytes_moved: int = 0  # by kernels, to and from the memory of the device, at most
    hidden_uploads: int = 0
    graphs: int = 0  # CUDA graphs that are started instead, once its parts are captured,
    beside_graphs: int = 0  # and launches that are left: copies into their buffers
    operations: Counter = field(default_factory=Counter)  # of torch, by name
    kernels: list[Launch] = field(default_factory=list)  # of Triton

    @property
    def launches(self) -> int:
        """Return how many kernels are started; torch may start two for one operation."""
        return sum(self.operations.values()) + len(self.kernels)


class _Counting(TorchDispatchMode):
    """Counts the operations of torch that start a kernel."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        name = func._schema.name
        if name in _HIDDEN_UPLOADS:
            self.plan.hidden_uploads += 1
        elif not (func.is_view or name in _FREE or name.startswith('prim::')):
            self.plan.operations[name] += 1
            self.plan.bytes_moved += size_of((args, kwargs or {}, found))
        return found


def size_of(values: Any) -> int:
    """Return the bytes of all tensors in some nested values."""
    if isinstance(values, torch.Tensor):
        return values.numel() * values.element_size()
    if isinstance(values, dict):
        return size_of(list(values.values()))
    return sum(map(size_of, values)) if isinstance(values, (list, tuple)) else 0


class _Answers:
    """
    Stands for the way to a device and back, and counts what goes over it.

    Motions are said to be trusted or not; values that the host works on are read or refused.
    """

    def __init__(self, plan: Plan, trusted: bool = True, read: bool = False) -> None:
        self.plan, self.trusted, self.read = plan, trusted, read
        self._plain: dict[int, float] = {}  # numbers that the host knows, by their place

    def kernels(self) -> Kernels:
        """Return the kernels of a device with this way to it."""
        return triton_kernels('cpu')._replace(
            array=lambda values: self.arrays(values)[0], arrays=self.arrays, motion=self._motion,
            noise=self._noise, numpy=self._numpy, pack=self._pack,
            fetch=self._fetch)

    def arrays(self, *values: np.ndarray) -> list[torch.Tensor]:
        kinds = [one.dtype if one.dtype in (np.uint8, np.bool_) else np.float32 for one in values]
        there = [torch.empty(one.shape, dtype=getattr(torch, np.dtype(kind).name))
                 for one, kind in zip(values, kinds)]
        self._up(size_of(there))
        return there

    def _up(self, size: int) -> None:
        self.plan.uploads += 1
        self.plan.bytes_up += size

    def _down(self, size: int) -> None:
        self.plan.downloads += 1
        self.plan.waits += 1
        self.plan.bytes_down += size

    def _motion(self, matrix: np.ndarray) -> torch.Tensor:
        self._up(8 * matrix.size)
        return torch.empty(matrix.shape, dtype=torch.float64)

    def _noise(self, model: NoiseModel) -> NoiseModel:
        numbers = torch.empty(8, dtype=torch.float64)
        self._up(size_of(numbers))
        floor, share, independent, *rest = numbers
        return replace(model, floor=floor, share=share, independent=independent,
                       matrix=tuple(rest[:3]), vector=tuple(rest[3:]))

    def _numpy(self, values: torch.Tensor) -> np.ndarray:
        self._down(size_of(values))
        if tuple(values.shape) == (MOTION,):  # a small step aside, to be trusted
            motion = np.eye(4)
            motion[0, 3] = 0.01
            return np.append(motion, float(self.trusted))
        if values.dtype == torch.bool and not values.shape:  # the pose fits
            return np.array(True)
        if self.read:
            return np.ones(tuple(values.shape), str(values.dtype).partition('.')[2])
        raise ValueError(f'wait: expected one of the planned ones, got {tuple(values.shape)}')

    def _pack(self, arrays: tuple, numbers: tuple) -> transfer_torch.Packed:
        self._plain = {place: float(one) for place, one in enumerate(numbers)
                       if isinstance(one, (int, float))}
        return transfer_torch.pack(arrays, numbers)

    def _fetch(self, packed: transfer_torch.Packed) -> tuple[list[np.ndarray], list[float]]:
        self._down(size_of(packed.values))
        found = [self._plain.get(place, 1.0) for place in range(packed.numbers)]
        if len(found) > 1:
            found[:2] = 1.0, 0.0  # finite, and not worse
        return [np.ones(shape, np.float32) for shape, _ in packed.arrays], found


def plan_frames(config: RefinerConfig, size: tuple[int, int]) -> list[Plan]:
    """Return what frames of a size (width, height) ask of a device: the first ones, and on."""
    plans = []
    with FakeTensorMode():
        for kind, pose in (('motion from the frames', None), ('poses', np.eye(4))):
            refiner, frame = _refiner(config), _frame(size, pose)
            for number in ('first', 'second', 'any other'):
                plan = Plan(f'{number}, {kind}')
                _count(plan, refiner, frame)
                plans.append(plan)
            _count_graphs(plan, _refiner(config), frame)
    return plans


def _refiner(config: RefinerConfig) -> DepthRefiner:
    return DepthRefiner(config.with_values(backend='torch'), 'cpu')


def _count(plan: Plan, refiner: DepthRefiner, frame: Frame) -> None:
    """Refine a frame and count what it asks for."""
    refiner.kernels = _Answers(plan, read=cleaning.is_on(refiner.config)).kernels()
    with _Counting(plan), listening(lambda one: _note(plan, one)):
        refiner.refine(frame)


def _count_graphs(plan: Plan, refiner: DepthRefiner, frame: Frame) -> None:
    """Count what is launched of a frame once its parts are captured."""
    refiner.graphs = graphs = Graphs(lambda act, buffers: (lambda: None, act()))
    # two frames to begin with, the kind of the third runs before it is captured, and is replayed
    for _ in range(2 + WARM_UPS + 2):
        before, replayed = graphs.launches, Plan('')
        _count(replayed, refiner, frame)
    plan.graphs, plan.beside_graphs = graphs.launches - before, replayed.launches


def _note(plan: Plan, launch: Launch) -> None:
    plan.kernels.append(launch)
    plan.bytes_moved += size_of(launch.arguments)


def _frame(size: tuple[int, int], pose: np.ndarray | None) -> Frame:
    """Return a rough wall."""
    width, height = size
    rng = np.random.default_rng(0)
    return Frame(
        rng.integers(0, 255, (height, width, 3), np.uint8),
        rng.normal(1.0, 0.01, (height, width)).astype(np.float32),
        Intrinsics(float(width), float(width), width / 2, height / 2),
        rng.random((height, width), np.float32), pose=pose)


@dataclass(frozen=True)
class Device:
    """A device as its data sheet has it; a rough model of the time of a frame on it."""

    name: str
    memory_gb_per_s: float
    copy_gb_per_s: float
    launch_us: float  # from the start of a kernel to that of the next

    def milliseconds(self, plan: Plan) -> float:
        """Estimate the time of a frame: launches or memory, what takes longer, and copies."""
        copies = (plan.bytes_up + plan.bytes_down) / self.copy_gb_per_s / 1e6
        work = max(1e-3 * self.launch_us * plan.launches,
                   plan.bytes_moved / self.memory_gb_per_s / 1e6)
        return math.fsum((work, copies))


DEVICES = (
    Device('Jetson AGX Orin', 204.8, 30.0, 10.0),
    Device('desktop card (RTX 4070)', 504.0, 20.0, 5.0),
)
