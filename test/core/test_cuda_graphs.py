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
Parts of a frame that are captured once and replayed give what they give when they are called.

There is no GPU here: `graph_stand_in` records operations and does them again in the same memory,
and refuses what a capture refuses.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
import logging
from typing import Any

import cv2
import numpy as np
import pytest
from scenes import noisy_stream

torch = pytest.importorskip('torch')

from graph_stand_in import as_of_a_device, capture  # noqa: E402, I100, I202

from graph_depth_refiner.config import preset, RefinerConfig  # noqa: E402
from graph_depth_refiner.core import cuda_graphs  # noqa: E402
from graph_depth_refiner.core.cuda_graphs import CudaCapture, Graphs, mapped  # noqa: E402
from graph_depth_refiner.core.kernels import torch_kernels  # noqa: E402
from graph_depth_refiner.core.types import HOST  # noqa: E402
from graph_depth_refiner.frame import Frame, Intrinsics, Status  # noqa: E402
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream  # noqa: E402
from graph_depth_refiner.refiner import DepthRefiner, is_static  # noqa: E402

SIZE = (72, 54)
# without holes: their sweeps are tens of thousands of operations of plain torch
VALUES = {'backend': 'torch', 'holes.fill': 'none', 'solver.iterations': 3}
PARTS = 3  # of a frame


@pytest.fixture(autouse=True)
def one_thread():
    """Let small tensors be computed by one thread, which is quicker."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def said(monkeypatch):
    """Return what is said from now on."""
    heard = []
    handler = logging.Handler()  # caplog hears nothing where launch is imported
    handler.emit = lambda record: heard.append(record.getMessage())
    monkeypatch.setattr(cuda_graphs._LOG, 'handlers', [handler])
    cuda_graphs._warn_once.cache_clear()
    return heard


def pair(name='realtime', **values):
    """Return a refiner that calls the parts of a frame, and one that replays them."""
    config = preset(name, **{**VALUES, **values})
    called, replayed = DepthRefiner(config, 'cpu'), DepthRefiner(config, 'cpu')
    called.kernels = replayed.kernels = as_of_a_device(torch_kernels('cpu'))
    replayed.graphs = Graphs(capture)
    return called, replayed


def same(one, other):
    """Tell whether two refined frames are the same, bit for bit."""
    arrays = all(np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)
                 for name in ('depth', 'normals', 'confidence', 'provenance'))
    return arrays and all(getattr(one, name) == getattr(other, name) for name in (
        'status', 'iterations', 'energy', 'graph_hit_rate', 'history', 'reset',
        'history_frames', 'noise', 'pose'))


def refine_both(refiners, frames):
    """Refine frames twice; return how many graphs each started, and the last refined frame."""
    called, replayed = refiners
    launches = []
    for frame in frames:
        before, expected = replayed.graphs.launches, called.refine(frame)
        assert same(replayed.refine(frame), expected)
        launches.append(replayed.graphs.launches - before)
    assert replayed.graphs.failures == 0
    return launches, expected


def moving(number, pose=True, first=0, seed=3, size=SIZE):
    """Return frames of a camera that goes through a room."""
    stream = SyntheticStream(seed, size)
    frames = [stream.view(place).frame for place in range(first, first + number)]
    return frames if pose else [replace(frame, pose=None) for frame in frames]


def test_replayed_frames_are_those_that_are_called():
    """The image changes, and so do depth, confidence and, by what is on it, the motion."""
    refiners = pair()
    launches, refined = refine_both(refiners, noisy_stream(SIZE, 6))
    # the first two begin a stream, the third has another kind, all of which then is captured
    assert launches == [0, 0, 1, PARTS, PARTS, PARTS]
    assert refined.history > 0.5 and refined.reset == '' and refined.status is Status.REFINED


@pytest.mark.parametrize('pose', [True, False])
def test_frames_of_a_moving_camera_are_replayed(pose):
    # whether poses are corrected is another kind of frame: after some, both are captured
    launches, refined = refine_both(pair(), moving(10, pose))
    assert launches[-2:] == [PARTS] * 2
    assert refined.history > 0.5 and (refined.pose == 'used') == pose


def passing_by(places):
    """Return frames of a wall with texture, from places that are so many pixels apart."""
    width, height = SIZE
    texture = cv2.GaussianBlur(np.random.default_rng(0).normal(0, 1, (height, width)), (0, 0), 2)
    image = np.clip(128 + 300 * texture, 0, 255).astype(np.uint8)
    for number, place in enumerate(places):
        pose, rng = np.eye(4), np.random.default_rng(number)
        pose[0, 3] = 2.0 * place / width  # 2 m away, of a focal length as long as the image
        depth = rng.normal(2.0, 0.01, (height, width)).astype(np.float32)
        yield Frame(np.roll(image, -place, axis=1), depth, Intrinsics(
            float(width), float(width), width / 2, height / 2), stamp=float(number), pose=pose)


def test_a_camera_at_rest_and_a_moving_one_are_two_kinds():
    places = [0, 0, 0, 0, 0, 1, 2, 3, 3, 4, 4]
    launches, refined = refine_both(pair(), passing_by(places))
    assert launches[4] == PARTS  # at rest,
    assert launches[7] == PARTS  # moving,
    assert launches[-3:] == [PARTS] * 3  # and whichever of both
    assert refined.history > 0.5 and refined.pose == 'used'


def test_frames_out_of_the_ordinary_leave_replayed_ones_right():
    refiners = pair()
    frames = moving(10, pose=False)
    refine_both(refiners, frames[:5])
    strange = replace(moving(1, pose=False, seed=9)[0], stamp=frames[5].stamp)
    for odd in (strange, replace(frames[5], depth=0 * frames[5].depth),
                *moving(2, pose=False, size=(64, 50)), replace(frames[6], confidence=None)):
        refine_both(refiners, [odd])
    launches, refined = refine_both(refiners, frames[7:])
    assert launches[-1] == PARTS and refined.history > 0.5
    for refiner in refiners:
        refiner.reset()
    refine_both(refiners, frames[:2])


def test_another_configuration_is_captured_on_its_own():
    refiners, frames = pair(), moving(10, pose=False)
    refine_both(refiners, frames[:5])
    for iterations, some in ((4, frames[5:8]), (3, frames[8:10])):
        for refiner in refiners:
            refiner.configure(preset('realtime', **{**VALUES, 'solver.iterations': iterations}))
        launches, refined = refine_both(refiners, some)
        assert refined.iterations == iterations and launches[-1] == PARTS


def test_frames_without_a_memory_are_replayed():
    launches, _ = refine_both(pair(**{'temporal.enabled': False}), moving(5))
    assert launches == [0, 0, 1, PARTS, PARTS]


def test_a_result_that_is_worse_begins_the_stream_anew():
    # without a prior nothing has a lower energy than the measurement; see test_refiner_safety
    refiners = pair(**{
        'solver.learning_rate': 100.0, 'solver.rate_decay': 1.0, 'energy.reg_lambda': 0.0})
    launches, refined = refine_both(refiners, passing_by([0, 1, 2, 3]))
    assert refined.status is Status.WORSE
    assert launches == [0, 2, 2, 2]  # nothing is remembered


def test_a_warm_up_leaves_the_state_as_it_is():
    refiners, frames = pair(), moving(8, pose=False)
    refine_both(refiners, frames[:6])
    refiners[1].warm_up((50, 64))
    _, refined = refine_both(refiners, frames[6:])
    assert refined.history > 0.5


@pytest.mark.parametrize('name, static', [('realtime', True), ('stereo', False)])
def test_stages_of_the_host_are_never_replayed(name, static):
    assert is_static(preset(name)) == static
    assert not is_static(preset(name, **{'solver.time_budget_ms': 5.0}))
    assert not is_static(preset(name, **{'solver.method': 'irls'}))


# the parts themselves

def run(graphs, part, **given):
    return graphs.run(part, None, RefinerConfig(), None, **given)


@dataclass(frozen=True)
class Box:
    """Something with a tensor, and what only the host knows."""

    value: Any
    stamp: Any = field(default=None, metadata=HOST)


def test_every_argument_has_a_buffer_of_its_own():
    """Though at first both are the same tensor."""
    graphs = Graphs(capture)

    def difference(k, config, clock, one, other):
        return {'found': one.value - other.value}
    both = torch.ones(3)
    for _ in range(3):
        run(graphs, difference, one=Box(both), other=Box(both))
    found = run(graphs, difference, one=Box(5 * both), other=Box(3 * both))
    assert graphs.launches == 3 and found['found'].tolist() == [2, 2, 2]


def test_what_runs_as_usual_does_not_stay_in_a_buffer():
    """Or else the next frame would be written over what the last one has left."""
    graphs = Graphs(capture)

    def doubled(k, config, clock, now):
        return {'now': now, 'twice': 2 * now}

    def kept(k, config, clock, now, kind):
        return {'past': now}
    for number in (1.0, 2.0, 3.0):
        seen = run(graphs, doubled, now=torch.full((2,), number))
    past = run(graphs, kept, now=seen['now'], kind='new')
    run(graphs, doubled, now=torch.zeros(2))
    assert past['past'].tolist() == [3, 3]


def test_results_of_a_name_are_where_the_next_part_reads_them():
    graphs = Graphs(capture)

    def swapped(k, config, clock, one, other):
        return {'one': other, 'other': one}
    now = {'one': torch.zeros(2), 'other': torch.ones(2)}
    for number in range(6):
        now = run(graphs, swapped, **now)
        assert now['one'].tolist() == [1 - number % 2] * 2
        assert now['other'].tolist() == [number % 2] * 2
    assert graphs.launches == 5


def test_shapes_types_and_plain_values_make_kinds():
    graphs = Graphs(capture)

    def scaled(k, config, clock, one, by):
        return {'found': one.value * by}
    for one in (torch.ones(2), torch.ones(3), torch.ones(2, dtype=torch.float64)):
        for by in (2, 3.0):
            for stamp in (1.0, 2.0):
                found = run(graphs, scaled, one=Box(one, stamp), by=by)
                assert found['found'].tolist() == (one * by).tolist()
                assert found['found'].dtype == one.dtype
    assert graphs.launches == 6


def test_too_many_kinds_are_forgotten(monkeypatch):
    monkeypatch.setattr(cuda_graphs, 'MOST_KINDS', 2)
    graphs = Graphs(capture)

    def scaled(k, config, clock, one, by):
        return {'found': one * by}
    for by in (1, 1, 2, 2, 3, 3, 1, 1, 3):
        assert run(graphs, scaled, one=torch.ones(1), by=by)['found'].tolist() == [by]
    assert len(graphs._captured) <= 2


def test_where_every_frame_is_another_kind_none_is_captured(monkeypatch):
    monkeypatch.setattr(cuda_graphs, 'MOST_SEEN', 5)
    graphs = Graphs(capture)
    for number in range(20):
        run(graphs, lambda k, config, clock, one, by: {'found': one * by}, one=torch.ones(1),
            by=number)
    assert graphs.launches == 0 and len(graphs._runs) <= 5


def test_what_cannot_be_part_of_a_kind_is_told():
    with pytest.raises(TypeError, match='unhashable'):
        run(Graphs(capture), lambda *given, **more: None, one=np.ones(3))


def test_fields_of_the_host_are_not_seen():
    box = mapped({'one': [Box(torch.ones(2), 5.0)]}, lambda name, leaf: name)
    assert box == {'one': [Box('.one.0.value', None)]}


def reads(one):
    return one * float(one.sum())


def uploads(one):
    return one + torch.from_numpy(np.ones(3, np.float32))


def asks(one):
    return one if one.sum() > 0 else -one


kept_from_before = torch.ones(3)


def replaces(one):
    return one + kept_from_before


@pytest.mark.parametrize('wrong', [reads, uploads, asks, replaces])
def test_what_a_capture_refuses_is_called_as_before(wrong, said):
    graphs = Graphs(capture)

    def part(k, config, clock, one):
        return {'found': wrong(one)}
    for number in (1.0, 2.0, 3.0, 4.0):
        one = torch.full((3,), number)
        assert run(graphs, part, one=one)['found'].tolist() == wrong(one).tolist()
    run(again := Graphs(capture), part, one=one)
    run(again, part, one=one)  # of another refiner: the same need not be said twice
    assert (graphs.failures, again.failures, graphs.launches) == (1, 1, 0)
    assert len(said) == 1
    assert 'frames cannot be captured as CUDA graphs (RuntimeError: capture: expected' in said[0]


def test_a_number_of_python_would_be_noticed():
    """As a graph has it for ever: the stand-in then gives what a GPU would give."""
    graphs, numbers = Graphs(capture), iter((1.0, 2.0, 3.0))

    def part(k, config, clock, one):
        return {'found': one * next(numbers)}
    found = [run(graphs, part, one=torch.ones(1))['found'].item() for _ in range(4)]
    assert found == [1.0, 2.0, 2.0, 2.0]


@pytest.mark.skipif(torch.cuda.is_available(), reason='there is a GPU')
def test_without_a_gpu_nothing_can_be_captured_and_frames_are_right(said):
    called, replayed = pair()
    replayed.graphs = Graphs(CudaCapture('cuda:0'))
    for frame in moving(4, pose=False):
        assert same(called.refine(frame), replayed.refine(frame))
    assert replayed.graphs.failures == 1
    assert len(said) == 1 and 'launched one by one' in said[0]
