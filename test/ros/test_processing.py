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
"""What becomes of a job in the worker, without ROS around it."""

from threading import Event
from types import SimpleNamespace

from hostile import header, image
import numpy as np
import pytest

from graph_depth_refiner.config import NodeConfig, RefinerConfig
from graph_depth_refiner.core.kernels import Choice, torch_kernels
from graph_depth_refiner.frame import Status
from graph_depth_refiner.messages.assembly import Inputs
from graph_depth_refiner.refiner import DepthRefiner
from graph_depth_refiner.ros import preparation
from graph_depth_refiner.ros.processing import Job, Processor, Settings
from graph_depth_refiner.ros.shedding import STAGES

HEIGHT, WIDTH = 24, 32


class Outlet:
    """Keeps what is published, by topic."""

    def __init__(self, *topics):
        self.topics = topics
        self.heard = {}

    def wanted(self):
        return list(self.topics)

    def publish(self, topic, head, make):
        self.heard[topic] = make(np.empty)

    def forward(self, topic, message):
        self.heard[topic] = message


def message(encoding, pixels):
    """Return an Image message of an array."""
    return image(
        pixels.shape[1], pixels.shape[0], encoding, pixels.strides[0], pixels.tobytes())


def camera_info():
    """Return a calibration of the size of the frames."""
    return SimpleNamespace(
        header=header(), height=HEIGHT, width=WIDTH, distortion_model='plumb_bob', d=[0.0] * 5,
        k=[40.0, 0, 16, 0, 40, 12, 0, 0, 1], p=[40.0, 0, 16, 0, 0, 40, 12, 0, 0, 0, 1, 0],
        r=list(np.eye(3).ravel()), binning_x=0, binning_y=0,
        roi=SimpleNamespace(x_offset=0, y_offset=0, width=0, height=0))


def job(depth=2.0, period=0.1):
    """Return a noisy wall."""
    rng = np.random.default_rng(0)
    return Job(Inputs(
        message('mono8', rng.integers(0, 255, (HEIGHT, WIDTH), np.uint8)),
        message('32FC1', (depth * rng.normal(1, 0.01, (HEIGHT, WIDTH))).astype(np.float32)),
        camera_info()), 0.0, period, 0)


def alone(depth):
    """Return a depth that nothing came with."""
    return Job(Inputs(None, depth, None), 0.0, 0.1, 0)


def processor(outlet, doubts=None, enabled=True, places=None, **values):
    """Return a processor with some settings changed."""
    node = {name: values.pop(name) for name in list(values) if name in NodeConfig.tunables()}
    settings = Settings(
        RefinerConfig().with_values(**values),
        NodeConfig().with_values(device='cpu', **node), enabled)
    return Processor(lambda: settings, lambda: 1.0, outlet,
                     (doubts if doubts is not None else []).append, places)


def test_a_depth_alone_is_passed_on_as_it_is():
    outlet = Outlet('depth_refined/image', 'depth_refined/camera_info', 'points')
    depth = message('32FC1', np.zeros((HEIGHT, WIDTH), np.float32))
    work = processor(outlet, enabled=False)
    work.process(alone(depth))
    assert outlet.heard == {'depth_refined/image': depth}
    assert work.ledger.snapshot() == {'passed': 1}


def test_a_depth_that_came_alone_is_passed_on_even_if_refining_goes_on_meanwhile():
    outlet = Outlet('depth_refined/image')
    depth = message('32FC1', np.zeros((HEIGHT, WIDTH), np.float32))
    processor(outlet).process(alone(depth))
    assert outlet.heard == {'depth_refined/image': depth}


def test_unknown_disparity_is_passed_on_as_unknown_depth():
    outlet = Outlet('depth_refined/image')
    # 60 px of focal length, 1 m of baseline: 30 px are 2 m
    disparity = SimpleNamespace(
        header=header(), image=message('32FC1', np.array([[30, -1]], np.float32)),
        f=60.0, t=1.0, min_disparity=0.0, max_disparity=64.0)
    processor(outlet, enabled=False).process(alone(disparity))
    fields = outlet.heard['depth_refined/image']
    assert fields['encoding'] == '32FC1'
    np.testing.assert_array_equal(fields['data'].view(np.float32), [2, np.nan])


def test_the_cpu_serves_while_a_device_compiles(monkeypatch):
    """For a size that it has not seen; from then on the device computes."""
    pytest.importorskip('torch')
    compiled, asked = Event(), []

    def compile_slowly(config, device, shape):
        asked.append((device, shape))
        compiled.wait(60)
    monkeypatch.setattr(preparation, 'warm_up_all', compile_slowly)
    outlet = Outlet('depth_refined/image')
    work = processor(outlet)
    work.prepare()
    work.refiner._choice = Choice('torch', 'cuda:0')
    work.refiner._wanted_device = 'cuda:0'
    work.refiner.kernels = torch_kernels('cpu')
    seen, refine = [], DepthRefiner.refine

    def watched(self, frame):
        seen.append(self.device)
        return refine(self, frame)
    monkeypatch.setattr(DepthRefiner, 'refine', watched)
    work.process(job())
    work.process(job())
    assert seen == ['cpu', 'cpu']
    compiled.set()
    next(iter(work._preparation._threads.values())).join()
    work.process(job())
    assert seen[2:] == ['cuda:0']
    (device, shape), = asked
    assert device == 'cuda:0' and len(shape) == 2


def test_an_error_of_another_kind_keeps_the_refiner():
    work = processor(Outlet('depth_refined/image'))
    work.prepare()
    refiner = work.refiner

    def fail(frame):
        raise RuntimeError('of another kind')

    refiner.refine = fail
    with pytest.raises(RuntimeError, match='of another kind'):
        work.process(job())
    assert work.refiner is refiner


@pytest.mark.parametrize('mode, stage', [('realtime', 3), ('converged', 0)])
def test_converged_mode_claims_to_shed_nothing(mode, stage):
    work = processor(Outlet('depth_refined/image'),
                     **{'solver.mode': mode, 'solver.max_iterations': 1})
    work.shedder.stage = 3
    work.process(job())
    assert work.shedder.stage == stage


def test_how_the_last_frame_ended_is_known():
    work = processor(Outlet('depth_refined/image'))
    work.process(job(depth=2.0))
    assert work.last_status is Status.REFINED
    work.process(job(depth=float('nan')))
    assert work.last_status is Status.EMPTY
    work.process(alone(job().inputs.depth))
    assert work.last_status is None


def test_while_it_prepares_it_says_so(monkeypatch):
    work = processor(Outlet('depth_refined/image'))
    seen = []
    monkeypatch.setattr(
        'graph_depth_refiner.ros.processing.warm_up', lambda: seen.append(work.preparing))
    work.prepare()
    assert seen == [True]
    assert not work.preparing


@pytest.mark.parametrize('check', [True, False])
def test_frames_of_reference_are_checked_where_wanted(check):
    doubts, given = [], job()
    given.inputs.camera_info.header.frame_id = 'infrared'
    processor(Outlet('depth_refined/image'), doubts, check_frames=check).process(given)
    assert len(doubts) == check


def test_an_image_from_nobody_knows_where_is_refused():
    given = job()
    given.inputs.image.header.frame_id = 'infrared'
    with pytest.raises(ValueError, match="frame_id: expected .* or depth_in_image, got 'inf"):
        processor(Outlet('depth_refined/image')).process(given)
    outlet = Outlet('depth_refined/image')
    processor(outlet, check_frames=False).process(given)
    assert outlet.heard


def test_what_the_past_was_good_for_is_noted():
    work = processor(Outlet('depth_refined/image'))
    for _ in range(4):
        work.process(job(depth=2.0))
    assert work.recent.mean('has_history') == 0.75  # all but the first
    assert work.resets.snapshot() == {'first frame': 1}
    # four frames, whose weights by the derived confidence are 1 on average
    assert work.recent.newest('history_frames') == pytest.approx(4, rel=0.1)
    floor, share = work.recent.newest('noise_floor'), work.recent.newest('noise_share')
    work.process(job(depth=float('nan')))  # has no noise, and ends the history
    assert (work.recent.newest('noise_floor'), work.recent.newest('noise_share')) == (floor, share)
    work.process(job(depth=2.0))
    assert work.resets.snapshot() == {'first frame': 2, 'no valid depth': 1}


class Places:
    """Knows one pose after another."""

    wanted = True

    def __init__(self, *poses):
        self.poses = list(poses)

    def transform(self, target, source, stamp):
        return None

    def pose(self, frame, stamp):
        return self.poses.pop(0)


def test_what_became_of_poses_is_counted():
    nearer = np.eye(4)
    nearer[2, 3] = 0.5  # metres nearer to the wall, of which the depth knows nothing
    work = processor(Outlet('depth_refined/image'), places=Places(
        None, np.eye(4), np.eye(4), nearer, None))
    for _ in range(5):
        work.process(job())
    # no pose; none before it to compare with; as the frames say; not as they say; no pose
    assert work.poses.snapshot() == {'unknown': 2, 'not needed': 1, 'used': 1, 'corrected': 1}


def test_waiting_for_a_pose_is_no_load(monkeypatch):
    clock, times = [0.0], []

    class Late(Places):

        def pose(self, frame, stamp):
            clock[0] += 100

    work = processor(Outlet('depth_refined/image'), places=Late())
    monkeypatch.setattr(
        'graph_depth_refiner.ros.processing.time', SimpleNamespace(perf_counter=lambda: clock[0]))
    monkeypatch.setattr(work.shedder, 'observe', lambda period, busy: times.append(busy))
    work.process(job())
    assert times == [0.0]


def test_without_a_temporal_part_there_are_no_resets():
    work = processor(Outlet('depth_refined/image'), **{'temporal.enabled': False})
    work.process(job())
    assert work.resets.snapshot() == {}
    assert work.recent.newest('noise_share') > 0


def test_every_stage_of_shedding_is_prepared(monkeypatch):
    """So that no kernel is compiled when work is first shed."""
    seen = []
    monkeypatch.setattr(preparation.DepthRefiner, 'warm_up',
                        lambda refiner, shape: seen.append((refiner.config.solver, shape)))
    preparation.warm_up_all(RefinerConfig(), 'cpu', (480, 640))
    assert len({(solver.iterations, solver.scale) for solver, _ in seen}) == len(STAGES) - 1
    assert {shape for _, shape in seen} == {(480, 640)}
