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

from importlib import import_module
from typing import Any

import numpy as np

_PACKAGE = __package__


class Fused:
    """The numba kernels on a CPU; never imports torch."""

    name = 'fused'
    device = 'cpu'

    def __getattr__(self, stage: str) -> Any:
        """Import the stage module of that name when it is first asked for."""
        return _stage(self, f'{_PACKAGE}.fused.{stage}', stage)

    def array(self, values: np.ndarray) -> np.ndarray:
        """Return contiguous float32."""
        return np.ascontiguousarray(values, np.float32)

    def numpy(self, values: np.ndarray) -> np.ndarray:
        """Return the values as numpy."""
        return values


def select(device: str = 'auto', backend: str = 'auto') -> Fused:
    """Return the stages for a device, `auto`, `cpu` or `cuda`, and a backend."""
    return Fused()


def _stage(backend: Any, module: str, name: str) -> Any:
    if name.startswith('_'):
        raise AttributeError(name)
    try:
        stage = import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise AttributeError(f'{backend.name} has no stage {name}') from error
    setattr(backend, name, stage)
    return stage
