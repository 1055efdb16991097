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
Parts of a frame as CUDA graphs: captured once, then started by one launch each.

A part is a function of nested values. Those of its arguments that are no tensors, their shapes
and types, and the configuration make its kind; every kind is captured on its own. A kind that is
new runs as usual, so that kernels are compiled and loaded before they are captured.

A graph reads and writes the same memory at every start. Every tensor therefore has a buffer of
its own, by its name: `history.d` of one part is `history.d` of another, and a result
called so is written there. An argument that does not lie in its buffer is copied into it, so that
it does not matter what ran before: a frame out of the ordinary, or none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
import logging
from threading import Lock
from typing import Any, NamedTuple, Protocol

import torch

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.frame import Intrinsics

WARM_UPS = 1  # times that a kind of part runs before it is captured
MOST_KINDS = 24  # that are captured, with memory of their own each: some of three parts
MOST_SEEN = 1000  # kinds that are counted: where every frame is another, none is captured
_ONE_AT_A_TIME = Lock()  # a process has one capture at a time

_LOG = logging.getLogger(__name__)
_Leaf = Callable[[str, Any], Any]


class Capture(Protocol):
    """Records what a function does with buffers; returns how to do it again, and its result."""

    def __call__(self, act: Callable[[], Any], buffers: list[torch.Tensor]
                 ) -> tuple[Callable[[], None], Any]: ...


class CudaCapture:
    """Records a CUDA graph."""

    def __init__(self, device: str) -> None:
        """Take the device that computes, cuda:N."""
        self._device = torch.device(device)

    def __call__(self, act: Callable[[], Any], buffers: list[torch.Tensor]
                 ) -> tuple[Callable[[], None], Any]:
        """Record what is launched; nothing of it runs before the graph is started."""
        graph = torch.cuda.CUDAGraph()
        # a failed capture leaves its stream behind: the outer context goes back to this one
        with _ONE_AT_A_TIME, torch.cuda.device(self._device), torch.cuda.stream(
                torch.cuda.current_stream(self._device)):
            with torch.cuda.graph(graph, stream=torch.cuda.Stream(self._device),
                                  capture_error_mode='thread_local'):
                result = act()
        return graph.replay, result


class Captured(NamedTuple):
    """One kind of a part."""

    replay: Callable[[], None]
    inputs: dict[str, torch.Tensor]  # buffers of the arguments, by name
    result: Any  # nested, in buffers


class Graphs:
    """Runs parts of a frame, and from the second time on starts what was captured of them."""

    def __init__(self, capture: Capture) -> None:
        """Know no part yet."""
        self._capture = capture
        self._runs: Counter = Counter()  # by kind
        self._captured: dict[tuple, Captured] = {}  # by kind
        self._buffers: dict[tuple, torch.Tensor] = {}  # by name, shape and type
        self.failures = 0  # captures that failed: after one, all runs as usual
        self.launches = 0  # of graphs

    def run(self, part: Callable, k: Any, config: RefinerConfig, clock: Any, **given: Any) -> Any:
        """Return what a part makes of the arguments that are given, nested values."""
        tensors, kind = _described(part, config, given)
        if self.failures:
            return part(k, config, clock, **given)
        if kind not in self._captured and self._runs[kind] >= WARM_UPS:
            self._capture_part(kind, lambda there: part(k, config, clock, **there), given)
        captured = self._captured.get(kind)
        if captured is None:
            if len(self._runs) >= MOST_SEEN:
                self._runs.clear()
            self._runs[kind] += 1
            return self._out_of_buffers(part(k, config, clock, **given))
        for name, buffer in captured.inputs.items():
            if not _same(buffer, tensors[name]):
                buffer.copy_(tensors[name])
        captured.replay()
        self.launches += 1
        return mapped(captured.result, lambda name, leaf: leaf)  # lists may be added to

    def forget(self) -> None:
        """Let go of all graphs and buffers; what lies in these stays as it is."""
        self._runs.clear()
        self._captured.clear()
        self._buffers.clear()

    def _capture_part(self, kind: tuple, act: Callable[[dict], Any], given: dict) -> None:
        if len(self._captured) >= MOST_KINDS:
            self.forget()
        inputs: dict[str, torch.Tensor] = {}

        def placed(name: str, leaf: Any) -> Any:
            if isinstance(leaf, torch.Tensor):
                place = _place(name, leaf)
                if place not in self._buffers:
                    self._buffers[place] = leaf.clone()
                leaf = inputs[name] = self._buffers[place]
            return leaf
        there = mapped(given, placed)
        try:
            replay, result = self._capture(
                lambda: self._into_buffers(act(there)), list(self._buffers.values()))
        except Exception as error:  # of whatever kind: without graphs all goes on, or tells why
            self.failures += 1
            self.forget()
            reason = f'{type(error).__name__}: {" ".join(str(error).split())[:200]}'
            _warn_once(f'frames cannot be captured as CUDA graphs ({reason}): their kernels are '
                       'launched one by one, which is slower')
            return
        self._captured[kind] = Captured(replay, inputs, result)

    def _into_buffers(self, result: Any) -> Any:
        """Write every tensor of a result into its buffer; one without becomes its own."""
        owned = {_storage(one) for one in self._buffers.values()}
        moves: list[tuple[torch.Tensor, torch.Tensor]] = []

        def buffered(name: str, leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            place = _place(name, leaf)
            if place not in self._buffers:
                self._buffers[place] = leaf.clone() if _storage(leaf) in owned else leaf
                owned.add(_storage(self._buffers[place]))
            elif not _same(self._buffers[place], leaf):
                moves.append((self._buffers[place], leaf))
            return self._buffers[place]
        found = mapped(result, buffered)
        written = {_storage(buffer) for buffer, _ in moves}
        sources = [one.clone() if _storage(one) in written else one for _, one in moves]
        for (buffer, _), source in zip(moves, sources):
            buffer.copy_(source)
        return found

    def _out_of_buffers(self, result: Any) -> Any:
        """Copy what lies in the buffer of another name, which may be written to any time."""
        owned = {_storage(one) for one in self._buffers.values()}

        def apart(name: str, leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor) or _storage(leaf) not in owned:
                return leaf
            buffer = self._buffers.get(_place(name, leaf))
            return leaf if buffer is not None and _same(buffer, leaf) else leaf.clone()
        return mapped(result, apart) if owned else result


@cache
def _warn_once(sentence: str) -> None:
    _LOG.warning(sentence)


def mapped(value: Any, act: _Leaf, name: str = '') -> Any:
    """Return nested values with every leaf replaced; those of the host become None."""
    if isinstance(value, (torch.Tensor, Intrinsics)):
        return act(name, value)
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(**{
            one: None if host else mapped(getattr(value, one), act, f'{name}.{one}')
            for one, host in _fields(type(value))})
    if isinstance(value, dict):
        return {one: mapped(leaf, act, f'{name}.{one}') for one, leaf in value.items()}
    if isinstance(value, tuple) and hasattr(value, '_fields'):
        return type(value)(*(
            mapped(leaf, act, f'{name}.{one}') for one, leaf in zip(value._fields, value)))
    if isinstance(value, (tuple, list)):
        return type(value)(
            mapped(leaf, act, f'{name}.{one}') for one, leaf in enumerate(value))
    return act(name, value)


@cache
def _fields(kind: type) -> list[tuple[str, bool]]:
    """Return the names of the fields of a dataclass, and whether they are of the host alone."""
    return [(one.name, 'host' in one.metadata) for one in fields(kind)]


def _described(part: Callable, config: RefinerConfig, given: dict
               ) -> tuple[dict[str, torch.Tensor], tuple]:
    """Return the tensors that are given, by name, and what kind of part this is."""
    tensors: dict[str, torch.Tensor] = {}
    others: list[tuple] = []

    def noted(name: str, leaf: Any) -> None:
        if isinstance(leaf, torch.Tensor):
            tensors[name] = leaf
            others.append(_place(name, leaf))
        else:
            others.append((name, type(leaf), leaf))
    mapped(given, noted)
    return tensors, (part.__name__, config, *others)


def _place(name: str, tensor: torch.Tensor) -> tuple:
    return name, tuple(tensor.shape), tensor.dtype


def _storage(tensor: torch.Tensor) -> int:
    """Return what identifies the memory that a tensor lies in, as long as that is kept."""
    return tensor.untyped_storage()._cdata


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Tell whether two tensors of the same shape and type are the same memory."""
    return one is other or (
        _storage(one) == _storage(other) and one.storage_offset() == other.storage_offset()
        and one.stride() == other.stride())
