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
"""Test that the warm-up loads every kernel that the first frames need."""

from dataclasses import replace
from importlib import import_module
import pkgutil

import numpy as np
import pytest

from graph_depth_refiner.cli import main
from graph_depth_refiner.config import preset, PRESETS
from graph_depth_refiner.lift import BIG
from graph_depth_refiner.refiner import DepthRefiner
from graph_depth_refiner.synthetic.stream import SyntheticStream

SMALL, LARGE = (96, 72), (480, 320)


def loaded():
    """Return the signatures that the kernels are loaded for, by module and name."""
    fused = import_module('graph_depth_refiner.fused')
    modules = [import_module(f'{fused.__name__}.{m.name}')
               for m in pkgutil.iter_modules(fused.__path__)]
    return {
        (module.__name__, name): len(kernel.signatures)
        for module in modules for name, kernel in vars(module).items()
        if hasattr(kernel, 'signatures')}


@pytest.fixture(scope='module')
def warm():
    pytest.importorskip('numba')
    assert main(['warm-up', '--device', 'cpu']) == 0
    return loaded()


@pytest.mark.parametrize('name', PRESETS)
@pytest.mark.parametrize('size', [SMALL, LARGE])
def test_the_first_frames_compile_nothing(warm, name, size):
    assert SMALL[0] * SMALL[1] < BIG < LARGE[0] * LARGE[1]
    stream = SyntheticStream(0, size)
    refiner = DepthRefiner(preset(name), 'cpu')
    for number in range(2):
        refiner.refine(stream.view(number).frame)
    frame = stream.view(0).frame
    refiner.reset()
    refiner.refine(replace(
        frame, image=np.ascontiguousarray(frame.image[..., 0]), confidence=None,
        intrinsics=replace(frame.intrinsics, baseline=0.1)))
    assert loaded() == warm
