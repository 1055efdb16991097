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
"""Both variants of every stage."""

from __future__ import annotations

import pytest

from graph_depth_refiner.core.kernels import Kernels, select


@pytest.fixture(params=['fused', 'torch'])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    """Return the kernels for a CPU, and the references on the CPU."""
    pytest.importorskip('numba' if request.param == 'fused' else 'torch')
    return select('cpu', request.param)


@pytest.fixture(scope='session')
def variants() -> tuple[Kernels, Kernels]:
    """Return both at once, to be compared: the kernels for a CPU and the references."""
    pytest.importorskip('numba')
    pytest.importorskip('torch')
    return select('cpu', 'fused'), select('cpu', 'torch')
