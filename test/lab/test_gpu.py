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
"""What a frame asks of a GPU is counted, and its kernels are compiled, without one."""

from __future__ import annotations

from dataclasses import replace
import json
import os

os.environ['TRITON_INTERPRET'] = '1'  # read when triton is imported

import numpy as np  # noqa: E402, I100, I202
import pytest  # noqa: E402
from scenes import noisy_stream  # noqa: E402
import torch  # noqa: E402

pytest.importorskip('triton')

from torch._subclasses.fake_tensor import (  # noqa: E402
    DataDependentOutputException,
    FakeTensorMode,
)

from graph_depth_refiner.cli.main import main  # noqa: E402
from graph_depth_refiner.config import preset  # noqa: E402
from graph_depth_refiner.core import output_triton  # noqa: E402
from graph_depth_refiner.core.kernels import torch_kernels, triton_kernels  # noqa: E402
from graph_depth_refiner.core.triton_launch import listening  # noqa: E402
from graph_depth_refiner.lab.benchmarks import gpu, gpu_compile, gpu_plan  # noqa: E402
from graph_depth_refiner.lab.benchmarks.gpu_check import checked, difference  # noqa: E402
from graph_depth_refiner.refiner import DepthRefiner  # noqa: E402

TARGETS = (75, 120)  # the oldest and the newest; `benchmark gpu --dry-run` compiles for all


@pytest.fixture(scope='module')
def plans():
    """Return what frames of a VGA camera ask for."""
    return gpu_plan.plan_frames(preset('realtime'), (640, 480))


def test_a_frame_stays_within_its_limits(plans):
    assert len(plans) == 6
    for plan in plans:
        assert plan.launches <= gpu.MOST_LAUNCHES
        assert plan.uploads <= gpu.MOST_UPLOADS
        assert plan.waits <= gpu.MOST_WAITS
        assert plan.waits == plan.downloads
        assert plan.hidden_uploads == 0
    # depth, normals, confidence, provenance: 4 + 12 + 4 + 1 bytes a pixel, and a few numbers
    assert all(0 <= plan.bytes_down - 21 * 640 * 480 < 300 for plan in plans)


def test_a_wait_inside_a_stage_is_noticed(monkeypatch):
    stage = output_triton.describe

    def impatient(planes, *rest):
        planes.max().item()
        return stage(planes, *rest)
    monkeypatch.setattr(gpu_plan, 'triton_kernels', lambda device: triton_kernels(
        device)._replace(describe=impatient))
    with pytest.raises(DataDependentOutputException):
        gpu_plan.plan_frames(preset('realtime'), (64, 48))


def test_an_unplanned_copy_back_is_noticed(monkeypatch):
    monkeypatch.setattr(
        gpu_plan._Answers, 'arrays', lambda answers, *values: answers._numpy(torch.zeros(3)))
    with pytest.raises(ValueError, match='wait: expected one of the planned ones'):
        gpu_plan.plan_frames(preset('realtime'), (64, 48))


def test_kernels_compile_without_spills(plans):
    """All kernels of a frame; windows 5 and 9 have the same code with more turns of its loops."""
    plans = plans + gpu_plan.plan_frames(preset('stereo'), (160, 120))[:1]
    kernels = gpu_compile.distinct([one for plan in plans for one in plan.kernels])
    compiled = gpu_compile.compile_all(kernels, TARGETS)
    assert len(compiled) == len(TARGETS) * len(kernels) > 40
    assert [one for one in compiled if one['stack'] or one['local']] == []
    assert gpu_compile.spills(compiled) == 0
    assert gpu_compile.spills([{'stack': 8, 'local': 0}]) == 1


def kernels_asked_for(act, **answers):
    """Return the kernels that a refiner launches, each as text."""
    plan = gpu_plan.Plan('')
    with FakeTensorMode(), listening(plan.kernels.append):
        refiner = DepthRefiner(preset('realtime', backend='torch'), 'cpu')
        refiner.kernels = gpu_plan._Answers(plan, **answers).kernels()
        act(refiner)
    return {json.dumps(one, sort_keys=True) for one in gpu_compile.distinct(plan.kernels)}


@pytest.mark.parametrize('trusted', [True, False])
@pytest.mark.parametrize('pose', [None, np.eye(4)], ids=['none', 'poses'])
@pytest.mark.parametrize('channels', [1, 3])
def test_no_frame_asks_for_a_kernel_that_the_warm_up_has_not_compiled(trusted, pose, channels):
    """Nor one whose motion is not trusted, which is searched for coarse to fine."""
    frame = gpu_plan._frame((160, 120), pose)
    frame = replace(frame, image=frame.image[..., :channels].squeeze())

    def stream(refiner):
        for _ in range(3):
            refiner.refine(frame)
    ready = kernels_asked_for(lambda refiner: refiner.warm_up((120, 160)))
    asked = kernels_asked_for(stream, trusted=trusted, read=True)
    assert asked - ready == set()


def test_what_does_not_compile_is_told(plans):
    launch = next(one for one in plans[0].kernels if one.kernel is output_triton.describe_kernel)
    wrong = gpu_compile.request(launch)
    wrong['types'][0] = 'i32'  # no pointer
    with pytest.raises(RuntimeError, match='kernels: expected to compile, got'):
        gpu_compile.compile_all([wrong], TARGETS[:1])


def test_the_dry_run_writes_its_numbers(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpu_compile, 'compile_all', lambda kernels: [
        {'kernel': 'one', 'constants': {}, 'target': 75, 'registers': 40, 'stack': 0, 'local': 0}])
    file = tmp_path / 'plan.json'
    assert main(['benchmark', 'gpu', '--dry-run', '--size', '160x120', '--json', str(file)]) == 0
    record = json.loads(file.read_text())
    assert {'launches', 'uploads', 'downloads', 'waits', 'bytes_up', 'bytes_down',
            'kernels_compiled', 'spills'} <= set(record)
    assert capsys.readouterr().out.count('estimate, not measured') == len(gpu_plan.DEVICES)


def test_without_a_gpu_the_way_out_is_said(capsys):
    if torch.cuda.is_available():
        pytest.skip('there is a GPU')
    assert main(['benchmark', 'gpu', '--size', '160x120']) == 2
    assert 'CUDA device' in capsys.readouterr().err


def test_stages_are_compared_with_their_references():
    """Here both are the reference; one that is wrong at a border is found."""
    k = torch_kernels('cpu')
    stages, same = checked(k, k)
    wrong_stages, wrong = checked(
        k._replace(gate_depth_edges=lambda *given: 1.1 * k.gate_depth_edges(*given)), k)
    for kernels in (same, wrong):
        refiner = DepthRefiner(preset('realtime', **{'solver.iterations': 2}), 'cpu')
        refiner.kernels = kernels
        for frame in noisy_stream((44, 34), 2):
            refiner.refine(frame)
    assert all(stage.agrees for stage in stages.values())
    assert stages['adam'].calls == 2 and stages['warp'].calls <= 1
    assert [name for name, stage in wrong_stages.items() if not stage.agrees] == [
        'gate_depth_edges']
    assert difference(torch.ones(3), torch.tensor([1.0, 1.0, torch.nan])) > 0.3
