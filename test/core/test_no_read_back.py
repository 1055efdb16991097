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
"""No stage on a torch device waits for it: fake tensors have shapes, but no values to read."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from graph_depth_refiner.config import preset
from graph_depth_refiner.core.kernels import torch_kernels
from graph_depth_refiner.core.noise import NoiseModel
from graph_depth_refiner.core.odometry import Aligned, Alignment, PLAN, Target
from graph_depth_refiner.frame import Intrinsics

SHAPE = (24, 40)
CAMERA = Intrinsics(40.0, 40.0, 20.0, 12.0)
NOISE = NoiseModel(1e-3, 1e-3, 1e-3)


def stages(k):
    """Return a call of every stage by its name."""
    one, x = torch.ones(SHAPE), torch.ones(3, *SHAPE)
    color, reliable = torch.ones((3, *SHAPE), dtype=torch.uint8), one > 0
    w = torch.ones(24, *SHAPE)
    large, blocks, sums = torch.ones(50, 81), torch.ones(3, 5), torch.ones(2, 3, 5)
    large_color = torch.ones((3, 50, 81), dtype=torch.uint8)
    motion, number, config = torch.eye(4, dtype=torch.float64), torch.ones(()), preset('realtime')
    target = Target(one, one, one, number, CAMERA)
    problem = Alignment(Aligned(x, one, one), one, target, number, [(one, one)])
    return {
        'merge_blocks': lambda: k.merge_blocks(one, one, 0.1),
        'upsample_planes': lambda: k.upsample_planes(
            x, one, large, large, NOISE, number, 2),
        'predict_by_color': lambda: k.predict_by_color(
            x, color, large_color, large, 2, 0.1, 0.05),
        'build_graph': lambda: k.build_graph(one, preset('paper')),
        'band_changes': lambda: k.band_changes(one, one),
        'symmetrise': lambda: k.symmetrise(w),
        'normalise': lambda: k.normalise(w),
        'first_slopes': lambda: k.first_slopes(one, one, one),
        'fit_local_planes': lambda: k.fit_local_planes(one, one, one, x[1:], 1),
        'not_flying': lambda: k.not_flying(x, one, one, one),
        'atrous_pass': lambda: k.atrous_pass(x, one, one, 2),
        'plane_mismatch': lambda: k.plane_mismatch(x, one, one, 2),
        'geodesic_fill': lambda: k.geodesic_fill(one, one, color, number, x),
        'fill_background': lambda: k.fill_background(one, reliable),
        'fill_occluded': lambda: k.fill_occluded(one, reliable, x),
        'joint_weighted_median': lambda: k.joint_weighted_median(one, x, 3, 1.0, 0.5, 0.05),
        'joint_plane_median': lambda: k.joint_plane_median(x, one, x, 3, 0.05),
        'fit_slopes': lambda: k.fit_slopes(one, w),
        'normal_equations': lambda: k.normal_equations(
            x, one, one, one, one, one, 4, motion, motion[0, :2], CAMERA, number, 0.01, number),
        'blurred': lambda: k.blurred((one, one), 0.8),
        'halved': lambda: k.halved((one, one)),
        'search_motion': lambda: k.search_motion(problem, motion, PLAN, 0.1),
        'warp': lambda: k.warp(one, one, color, x[1:], motion, CAMERA),
        'flow': lambda: k.flow(1.0, motion, CAMERA, one),
        'bias_field': lambda: k.bias_field(sums, 1.0),
        'positive_median': lambda: k.positive_median(one),
        'known_median': lambda: k.known_median(one, reliable),
        'fused_unit': lambda: k.fused_unit(NOISE, number, number),
        'known_sigma': lambda: k.known_sigma(NOISE, one, one, number),
        'learn_noise': lambda: k.learn_noise(NOISE, one, one, one, one, 6.0),
        'smaller': lambda: k.smaller(number, 1.0),
        'either': lambda: k.either(number > 0, lambda: (one, NOISE), lambda: (x[0], NOISE)),
        'renew_graph': lambda: k.renew_graph(one, w[:8], one, config),
        'fillable': lambda: k.fillable(one, reliable, number, config),
        'keep_planes': lambda: k.keep_planes(x + 0, one),
        'median3': lambda: k.median3(one),
        'bias_sums': lambda: k.bias_sums(one, one, one, one, NOISE),
        'fuse': lambda: k.fuse(
            one, one, color[0], one, one, color[0], number, blocks, NOISE, 1.0, 20.0, 0.5),
        'exposure_gain': lambda: k.exposure_gain(color[0], color[0], one),
        'gate_depth_edges': lambda: k.gate_depth_edges(w, x, 0.1),
        'relax_at_curvature': lambda: k.relax_at_curvature(w, x, 0.1),
        'pack': lambda: k.pack((one, color), (number, 1.0)),
        'describe': lambda: k.describe(x, one, one, one, (0.1, 0.1), CAMERA, (0.01, 100.0)),
        'upsample_and_describe': lambda: k.upsample_and_describe(
            (x, one, large, large, NOISE, number, 2), large > 0,
            (large, large, large, (0.1, 0.1), CAMERA, (0.01, 100.0))),
    }


HOST = {'name', 'device', 'array', 'arrays', 'zeros', 'motion', 'noise', 'numpy', 'fetch',
        'inverse_depth', 'weigh', 'where', 'adam', 'irls'}


def test_all_stages_are_looked_at():
    k = torch_kernels('cpu')
    assert set(stages(k)) == set(k._fields) - HOST


@pytest.mark.parametrize('name', list(stages(torch_kernels('cpu'))))
def test_a_stage_never_reads_back(name):
    with FakeTensorMode():
        stages(torch_kernels('cpu'))[name]()


def tensors(value):
    """Return the tensors in a nested result."""
    if isinstance(value, torch.Tensor):
        return [value]
    if is_dataclass(value):
        value = [getattr(value, one.name) for one in fields(value)]
    return [one for some in value for one in tensors(some)] if isinstance(
        value, (list, tuple)) else []


@pytest.mark.parametrize('name', list(stages(torch_kernels('cpu'))))
def test_a_stage_stays_on_its_device(name):
    """As on cuda:N: here the device is `meta`, which other tensors cannot be mixed with."""
    with torch.device('meta'):
        given = stages(torch_kernels('meta'))
    found = given[name]()
    assert {one.device.type for one in tensors(found)} <= {'meta'}


def test_reading_back_would_be_noticed():
    with FakeTensorMode(), pytest.raises(DataDependentOutputException):
        bool(torch.ones(()) > 0)
