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
What a frame launches on a torch device does not depend on its values.

So it can be captured once, as CUDA graphs between the two waits, and replayed for any frame.
"""

from __future__ import annotations

import numpy as np
import pytest
from scenes import noisy_stream

from graph_depth_refiner.config import preset
from graph_depth_refiner.core.camera import image_flow
from graph_depth_refiner.core.kernels import torch_kernels
from graph_depth_refiner.core.statistics import positive_median
from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.refiner import DepthRefiner

torch = pytest.importorskip('torch')
dispatch = pytest.importorskip('torch.utils._python_dispatch')


class Recorder(dispatch.TorchDispatchMode):
    """Notes every operation: its name, the shapes and types of tensors, and plain numbers."""

    def __init__(self):
        """Begin with nothing."""
        super().__init__()
        self.heard = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Note one operation, and do it."""
        self.heard.append((str(func), shape_of((args, kwargs or {}))))
        return func(*args, **(kwargs or {}))


def shape_of(value):
    """Return what a graph would have fixed of a nested argument."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype
    if isinstance(value, dict):
        return tuple((name, shape_of(one)) for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(shape_of, value))
    return repr(value)


def launches(name, size, number):
    """Return what each of some frames asks for, without the first two, which begin the stream."""
    # without holes: their sweeps are tens of thousands of operations of plain torch
    config = preset(name, backend='torch', **{'holes.fill': 'none'})
    refiner = DepthRefiner(config, device='cpu')
    found = []
    for frame in noisy_stream(size, number):
        with Recorder() as recorder:
            refined = refiner.refine(frame)
        found.append((refined.history > 0.5, recorder.heard))
    assert all(continued for continued, _ in found[1:]) == preset(name).temporal.enabled
    return [heard for _, heard in found[2:]]


@pytest.mark.parametrize('name, size', [('realtime', (160, 120)), ('paper', (53, 37))])
def test_frames_launch_the_same_whatever_they_show(name, size):
    """In a stream whose motion is trusted at first: the other ways wait for the host."""
    first, *others = launches(name, size, 5)
    assert len(first) > 100
    for other in others:
        assert [pair for pair in zip(first, other) if pair[0] != pair[1]] == []
        assert len(first) == len(other)


def test_a_number_of_the_host_would_be_noticed():
    heard = []
    for number in (1.0, 2.0):
        with Recorder() as recorder:
            _ = torch.ones(3) * number
        heard.append(recorder.heard)
    assert heard[0] != heard[1]


def test_the_motion_of_the_image_is_the_same_on_host_and_device():
    rng = np.random.default_rng(0)
    d = rng.uniform(0.2, 1.0, (37, 53)).astype(np.float32)
    camera, motion = Intrinsics(60.0, 58.0, 27.3, 17.8), np.eye(4)
    motion[:3, :3] += 0.01 * rng.standard_normal((3, 3))
    motion[:3, 3] = 0.1, -0.05, 0.2
    expected = image_flow(motion, camera, d.shape, positive_median(d))
    found = torch_kernels('cpu').flow(
        expected, torch.from_numpy(motion), camera, torch.from_numpy(d))
    assert expected > 1
    assert float(found) == pytest.approx(expected, rel=1e-6)
