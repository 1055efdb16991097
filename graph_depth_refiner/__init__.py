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
Joint graph-based depth refinement and normal estimation, in real time.

The public API. Its names are imported when they are first used, so that importing the package
costs nothing; numba or torch is imported when the first frame is refined.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, TYPE_CHECKING

if TYPE_CHECKING:
    from graph_depth_refiner.config import preset, RefinerConfig
    from graph_depth_refiner.frame import Frame, Intrinsics, Refined, Status
    from graph_depth_refiner.refiner import DepthRefiner

__all__ = [
    'DepthRefiner', 'Frame', 'Intrinsics', 'preset', 'Refined', 'RefinerConfig', 'Status',
]

_MODULES = {
    'DepthRefiner': 'refiner', 'Frame': 'frame', 'Intrinsics': 'frame', 'preset': 'config',
    'Refined': 'frame', 'RefinerConfig': 'config', 'Status': 'frame',
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    value = getattr(import_module(f'{__name__}.{_MODULES[name]}'), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names too, imported or not."""
    return sorted({*globals(), *__all__})
