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
"""Choose the implementation of the stages: fused kernels, plain torch or compiled torch."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
import logging
from pathlib import Path
import re
from typing import Any

import numpy as np

from graph_depth_refiner.compile_once import compile_once
from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.problem import Terms

_LOG = logging.getLogger(__name__)
_PACKAGE = __package__
# A CUDA device shows as one of these: looking is free, importing torch takes seconds.
_NODES = ('/dev/nvidia0', '/dev/nvidiactl', '/dev/nvhost-gpu', '/dev/dxg')
_WARM_SHAPE = (16, 24)


class Backend:
    """The stages as attributes, imported when they are first asked for."""

    name = ''
    device = 'cpu'

    def __getattr__(self, stage: str) -> Any:
        """Import a stage."""
        if stage.startswith('_'):
            raise AttributeError(stage)
        module = self._module(stage)
        if find_spec(module) is None:
            raise AttributeError(f'{self.name} backend: no stage {stage}')
        setattr(self, stage, import_module(module))
        return getattr(self, stage)

    def warm_up(self, config: RefinerConfig) -> None:
        """Compile or load the kernels of graph and solver before the first frame comes."""
        rng = np.random.default_rng(0)
        shape = (3, *_WARM_SHAPE) if config.graph_color else _WARM_SHAPE
        w = self.graph.build(self.array(rng.random(shape)), config)
        self.graph.symmetrise(w)
        d = self.array(rng.random(_WARM_SHAPE))
        problem = (
            self.array(rng.random((3, *_WARM_SHAPE))), w, d, self.array(d > 0.1), 1.0,
            Terms(config.reg_lambda, config.reg_alpha, config.regulariser))
        solver, steps = (
            (self.irls, (1,)) if config.solver == 'irls' else (self.solver, (0.1, 0.01)))
        state = solver.init(*problem)
        solver.step(state, *steps)
        solver.energy(state)
        solver.planes(state)


class Fused(Backend):
    """Numba kernels on a CPU; never imports torch."""

    name = 'fused'

    def _module(self, stage: str) -> str:
        compile_once()
        return f'{_PACKAGE}.fused.{stage}'

    def array(self, values: np.ndarray) -> np.ndarray:
        """Return float32 that kernels compiled once can take: contiguous and writable."""
        return np.require(values, np.float32, ('C', 'W'))

    def numpy(self, values: np.ndarray) -> np.ndarray:
        """Return the values as numpy."""
        return values


class Torch(Backend):
    """Plain torch on any device, with or without the compiled update."""

    def __init__(self, device: str, compiled: bool) -> None:
        """Import torch."""
        self.name = 'compiled' if compiled else 'torch'
        self.device = device
        self._stages = {'solver': 'compiled'} if compiled else {}
        self._torch = import_module('torch')

    def _module(self, stage: str) -> str:
        return f'{_PACKAGE}.{self._stages.get(stage, stage)}'

    def array(self, values: np.ndarray) -> Any:
        """Return a float32 tensor on the device."""
        return self._torch.from_numpy(np.require(values, np.float32, ('C', 'W'))).to(self.device)

    def numpy(self, values: Any) -> np.ndarray:
        """Return the values as numpy; waits for the device."""
        return values.cpu().numpy()


def select(device: str = 'auto', backend: str = 'auto') -> Backend:
    """Return the stages for a device (auto, cpu, cuda or cuda:N) and a backend."""
    if not re.fullmatch(r'auto|cpu|cuda(:\d+)?', device):
        raise ValueError(f'device: expected auto, cpu, cuda or cuda:N, got {device!r}')
    known = RefinerConfig.named('backend')
    known.check(backend)
    device = _found(device, backend)
    if backend == 'auto':
        backend = _best(device)
    if backend != 'fused':
        return Torch(device, backend == 'compiled')
    if device != 'cpu':
        raise ValueError(f'backend: expected torch or compiled on {device}, got fused')
    return Fused()


def _found(device: str, backend: str) -> str:
    """Return the device itself, and for `auto` a CUDA device if there is one."""
    if device == 'auto' and (
            backend == 'fused' or not any(Path(node).exists() for node in _NODES)
            or find_spec('torch') is None):
        return 'cpu'
    if device == 'cpu':
        return device
    if find_spec('torch') is None:
        raise ValueError(f'device: expected auto or cpu where torch is missing, got {device!r}')
    torch = import_module('torch')
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    number = int(device.partition(':')[2] or 0) if device != 'auto' else 0
    if number < there:
        return f'cuda:{number}'
    if device == 'auto':
        _warn_once('an NVIDIA device is there, but torch sees no CUDA: the CPU computes')
        return 'cpu'
    raise ValueError(f'device: expected one of {there} CUDA devices, got {device!r}')


def _best(device: str) -> str:
    if device != 'cpu':
        return 'compiled' if find_spec('triton') else 'torch'
    if find_spec('numba'):
        return 'fused'
    _warn_once('numba is not installed: plain torch on the CPU is about 50 times slower')
    return 'torch'


@cache
def _warn_once(sentence: str) -> None:
    _LOG.warning(sentence)
