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
"""Every Triton kernel, run by Triton's interpreter, against the torch reference of its stage."""

from __future__ import annotations

import os

os.environ['TRITON_INTERPRET'] = '1'  # read when triton is imported

import numpy as np  # noqa: E402, I100, I202
import pytest  # noqa: E402
from scenes import noisy_stream  # noqa: E402

torch = pytest.importorskip('torch')
pytest.importorskip('triton')

from graph_stand_in import capture  # noqa: E402, I100

from graph_depth_refiner.config import preset  # noqa: E402
from graph_depth_refiner.core.cuda_graphs import Graphs  # noqa: E402
from graph_depth_refiner.core.energy import REGULARISERS  # noqa: E402
from graph_depth_refiner.core.kernels import torch_kernels, triton_kernels  # noqa: E402
from graph_depth_refiner.core.noise import NoiseModel  # noqa: E402
from graph_depth_refiner.core.odometry import (  # noqa: E402
    Aligned,
    Alignment,
    Target,
)
from graph_depth_refiner.core.types import Memory, Terms  # noqa: E402
from graph_depth_refiner.frame import Intrinsics, Status  # noqa: E402
from graph_depth_refiner.refiner import DepthRefiner  # noqa: E402

SHAPE = (37, 53)  # neither side is one that blocks or groups of pixels divide
SIGMA = 2e-3
NOISE = NoiseModel(SIGMA, 1e-3, SIGMA)
CAMERA = Intrinsics(60.0, 58.0, 27.3, 17.8)
BOTH = torch_kernels('cpu'), triton_kernels('cpu')


def rough_wall(seed=0, shape=SHAPE):
    """Return inverse depth with a step and noise, and weights with holes, one at the border."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:shape[0], :shape[1]]
    d = 0.5 + 2e-3 * x - 1e-3 * y + 0.2 * (x > shape[1] // 2)
    d = d + SIGMA * rng.standard_normal(shape)
    m = rng.uniform(0.5, 2.0, shape)
    m[5:14, shape[1] // 3:shape[1] // 2 + 6] = m[-6:, :9] = 0
    m[rng.random(shape) < 0.05] = 0
    return tuple(torch.from_numpy(one.astype(np.float32)) for one in (d * (m > 0), m))


def planes_of(seed=0, shape=SHAPE):
    """Return planes, 3 H W, about those of the wall."""
    d, m = rough_wall(seed, shape)
    rng = np.random.default_rng(seed + 1)
    slopes = np.array([2e-3, -1e-3])[:, None, None] + 1e-3 * rng.standard_normal((2, *shape))
    return torch.cat((d[None], torch.from_numpy(slopes.astype(np.float32)))), m


def image(seed=0, channels=3, shape=SHAPE):
    """Return a smooth picture, C H W uint8."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:shape[0], :shape[1]]
    waves = [90 + 60 * np.sin(0.21 * x + c) + 40 * np.cos(0.17 * y * (c + 1))
             for c in range(channels)]
    return torch.from_numpy(np.clip(
        waves + rng.normal(0, 3, (channels, *shape)), 0, 255).astype(np.uint8))


def assert_alike(one, other, tolerance=1e-4):
    """Compare results to 1e-4 of their size; whole numbers and NaN have to be the same."""
    for a, b in zip(one, other):
        if not a.dtype.is_floating_point:
            assert a.dtype == b.dtype or not b.is_floating_point()
            assert (a == b).all()
            continue
        assert (a.isnan() == b.isnan()).all()
        a, b = a.nan_to_num().double(), b.nan_to_num().double()
        assert (a - b).abs().max() <= tolerance * a.abs().max()


def compare(stage, *arguments):
    """Run a stage of both variants, each with copies of its arguments."""
    results = []
    for k in BOTH:
        given = [one.clone() if isinstance(one, torch.Tensor) else one for one in arguments]
        found = getattr(k, stage)(*given)
        if found is None:  # in place
            found = given[-1]
        results.append(found if isinstance(found, tuple) else (found,))
    assert_alike(*results)
    return results[1]


@pytest.mark.parametrize('window', [3, 5, 9])
@pytest.mark.parametrize('regulariser', REGULARISERS)
def test_adam(window, regulariser):
    """Three steps go on from a memory, at a size of few pixels: the interpreter is slow."""
    if window == 9 and regulariser != 'planar':
        pytest.skip('the window is no part of what differs between regularisers')
    shape = (11, 13)
    planes, m = planes_of(0, shape)
    config = preset('realtime', **{'graph.window': window})
    w = BOTH[0].build_graph(image(0, 1, shape)[0] / 255, config)
    memory = Memory(0.1 * torch.ones_like(planes), torch.tensor(4))
    results = []
    for k in BOTH:
        state = k.adam.init(planes, w, planes[0], m, torch.tensor(SIGMA),
                            Terms(3.0, 2.0, regulariser), memory)
        before = k.adam.energy(state)
        k.adam.steps(state, [0.6, 0.3, 0.1][:4 - window // 3], 0.05)
        results.append((
            k.adam.planes(state), k.adam.memory(state).second, before, k.adam.energy(state),
            k.adam.energy(state, planes), k.adam.taken(state), k.adam.finite(state)))
    assert_alike(*results)
    assert results[1][3] < results[1][2]


def test_adam_stops_before_a_step_that_is_not_finite():
    planes, m = planes_of(0, (11, 13))
    w = BOTH[0].build_graph(image(0, 1, (11, 13))[0] / 255, preset('realtime'))
    adam = BOTH[1].adam
    state = adam.init(planes, w, planes[0], m, SIGMA, Terms(3.0, 2.0))
    adam.steps(state, [0.6], 0.05)
    good = adam.planes(state)
    adam.steps(state, [float('inf'), 0.1], 0.05)
    assert adam.taken(state) == 1 and not adam.finite(state)
    assert (adam.planes(state) == good).all()


@pytest.mark.parametrize('values', [
    {}, {'graph.window': 5, 'graph.patch': 1}, {'graph.color': True},
    {'graph.normalise': False}])
def test_graph(values):
    config = preset('realtime', **values)
    guide = image(0, 3) / 255 if config.graph.color else image(0, 1)[0] / 255
    compare('build_graph', guide, config)


def test_graph_is_renewed_where_the_image_changed():
    config, guide = preset('realtime'), image(0, 1)[0] / 255
    changed = guide.clone()
    changed[:3] += 0.5
    _, _, hit_rate = compare(
        'renew_graph', guide, BOTH[0].build_graph(guide, config), changed, config)
    assert 0 < hit_rate < 1


@pytest.mark.parametrize('channels', [1, 3])
def test_changes_of_the_image(channels):
    """Over tiles of two widths, the last band being cut."""
    one, other = (image(seed, channels, (37, 97)) / 255 for seed in (0, 1))
    compare('band_changes', one, other)


def test_flying_pixels():
    """Of patches: rows of two sides, with mixtures at random."""
    planes, m = planes_of()
    planes[0, ::2] += 40 * SIGMA
    mixed = torch.rand(SHAPE, generator=torch.Generator().manual_seed(5)) < 0.2
    d = torch.where(mixed, planes[0] + 15 * SIGMA, planes[0])
    kept, = compare('not_flying', planes, d, m, torch.full(SHAPE, 8 * SIGMA))
    assert (kept == 0).any() and (kept == 1).any()


@pytest.mark.parametrize('window', [3, 5])
def test_edges_are_gated(window):
    """Weights of edges out of the image too: those of a graph are 0, and would hide a border."""
    planes, _ = planes_of()
    w = torch.rand((window ** 2 - 1, *SHAPE), generator=torch.Generator().manual_seed(3))
    gated, = compare('gate_depth_edges', w, planes, torch.tensor(2 * SIGMA))
    assert (gated == 0).any() and (gated > 0).any()


@pytest.mark.parametrize('shape', [SHAPE, (3, 5), (1, 9)])
def test_local_planes(shape):
    d, m = rough_wall(0, shape)
    sigma = torch.full(shape, SIGMA)
    slopes, = compare('first_slopes', d, m, sigma)
    for every in (1, 2):
        compare('fit_local_planes', d, m, sigma, slopes, every)


@pytest.mark.parametrize('spacing', [2, 8])
def test_planes_are_smoothed(spacing):
    planes, m = planes_of()
    smoothed, = compare('atrous_pass', planes, m, torch.full(SHAPE, 20 * SIGMA), spacing)
    assert (smoothed != planes).any()


@pytest.mark.parametrize('shape', [SHAPE, (3, 5), (1, 9)])
def test_mismatches_of_planes(shape):
    planes, m = planes_of(shape=shape)
    compare('plane_mismatch', planes, m, torch.full(shape, SIGMA), 2)


@pytest.mark.parametrize('channels', [1, 3])
@pytest.mark.parametrize('step', [0.0, 0.02, -0.3])
def test_warp(channels, step):
    """At rest, aside, and backwards, which leaves cracks and lets planes land on each other."""
    planes, m = planes_of()
    turn = 0.02 * np.sign(step)
    motion = np.eye(4)
    motion[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
    motion[:3, 3] = [0.5 * step, 0.1 * step, step]
    warped, frames, _ = compare(
        'warp', planes[0], m, image(0, channels), planes[1:], torch.from_numpy(motion), CAMERA)
    assert (frames > 0).any() and (frames == 0).any()


def test_deviations():
    d, m = rough_wall()
    compare('known_sigma', NOISE, d, 5 * m, torch.tensor(SIGMA).double())


def test_blocks_are_merged():
    d, m = rough_wall()
    compare('merge_blocks', d, m, torch.tensor(3 * SIGMA))


@pytest.mark.parametrize('flow', [0.0, 3.0])
def test_history_is_fused(flow):
    d, m = rough_wall()
    planes, frames = planes_of(7)
    planes[0, 20:30] += 0.1  # something moved
    frames[:, 40:] *= 8
    sums, = compare('bias_sums', d, m, planes[0], frames, NOISE)
    bias = BOTH[0].bias_field(sums, flow)
    _, _, _, counts = compare(
        'fuse', d, m, image(0, 1)[0], planes[0], frames, image(1, 1)[0], torch.tensor(1.1), bias,
        NOISE, flow, 6.0, torch.tensor(0.5))
    assert 0 < counts[1] < counts[0]


@pytest.mark.parametrize('scale', [2, 4])
def test_planes_are_upsampled(scale):
    planes, frames = planes_of(0, (19, 27))
    d, _ = rough_wall(3, (19 * scale + 1, 27 * scale + scale - 1))
    behind = 8 * torch.rand(d.shape, generator=torch.Generator().manual_seed(2))
    compare('upsample_planes', planes, frames, d, behind, NOISE, SIGMA, scale)


@pytest.mark.parametrize('max_width', [1, 4, 7])
def test_narrow_holes_of_one_surface_may_be_filled(max_width):
    d, m = rough_wall(4)
    rng = torch.Generator().manual_seed(1)
    measured = (m > 0) & (torch.rand(d.shape, generator=rng) < 0.9)
    found, = compare('fillable', d * measured, measured, 4 * SIGMA,
                     preset('realtime', **{'holes.max_width': max_width}))
    assert measured.sum() < found.sum() < d.numel()


def test_results_are_described():
    planes, m = planes_of()
    d, _ = rough_wall(5)
    compare('describe', planes, d, m / 2, 3 * m, (NOISE.floor, NOISE.share), CAMERA, (0.5, 0.75))


@pytest.mark.parametrize('channels', [1, 3])
def test_holes_are_filled(channels):
    """Also where paths cost the same, in an image of few colours."""
    shape = (15, 23)
    planes, m = planes_of(0, shape)
    picture = image(0, channels, shape)
    for color in (picture, picture // 64 * 64):
        filled, = compare('geodesic_fill', planes[0], m, color, torch.tensor(SIGMA), planes)
        assert (filled != planes).any()


@pytest.mark.parametrize('stride', [1, 3])
def test_joint_plane_median(stride):
    """Some planes are equal; the support is cut at the border."""
    rng = np.random.default_rng(0)
    planes, m = planes_of(0, (21, 29))
    planes[0] += torch.from_numpy((0.3 * (rng.random((21, 29)) < 0.2)).astype(np.float32))
    planes[:, :7, :9] = planes[:, :1, :1]
    color = image(0, 3, (21, 29)) / 255
    weight = torch.where(m > 0, 1.0, 0.6)
    extended, = compare('joint_plane_median', planes, weight, color, stride, 0.1)
    assert ((extended != planes).any(dim=0) <= (m == 0)).all() and (extended != planes).any()


@pytest.mark.parametrize('plan, found', [
    (((0, 4, 3, 1.0, np.inf),), True), (((1, 6, 1, 3.0, np.inf), (0, 4, 1, 1.0, np.inf)), True),
    (((0, 4, 1, 1.0, 1e-4), (0, 4, 2, 1.0, np.inf)), False)])
def test_motion_is_searched(plan, found):
    """From a step aside, so that no sample lands on the border by the last bit."""
    shape = (44, 65)
    planes, m = planes_of(0, shape)
    planes[0] = torch.where(m > 0, planes[0], 0)
    d, now = rough_wall(1, shape)
    images = [(image(0, 1, shape)[0] / 255, image(1, 1, shape)[0] / 255)]
    images.append(BOTH[0].halved(images[-1]))
    begin = torch.eye(4, dtype=torch.float64)
    begin[:3, 3] = torch.tensor([0.003, -0.002, 0.001])
    results = []
    for k in BOTH:
        problem = Alignment(
            Aligned(planes, m, images[0][0]), m,
            Target(d, now, images[0][1], torch.tensor(SIGMA).double(), CAMERA),
            torch.tensor(0.5).double(), images)
        results.append((k.search_motion(problem, begin, plan, 0.1),))
    assert_alike(*results)
    assert ((results[1][0][:16].view(4, 4) - begin).abs().max() > 1e-3) == found


@pytest.mark.parametrize('shape', [SHAPE, (1, 7), (80, 141)])
def test_medians(shape):
    d, m = rough_wall(2, shape) if shape[0] > 1 else rough_wall(2)
    d, m = d[:shape[0], :shape[1]], m[:shape[0], :shape[1]]
    compare('positive_median', d, 1.0)
    compare('known_median', (d - 0.5).abs(), m > 0)
    compare('positive_median', 0 * d, 1.0)
    compare('known_median', d, m < 0)
    grey = (255 * (d - d.min()) / (d.max() - d.min() + 1)).to(torch.uint8)
    compare('exposure_gain', grey, grey.flip(0).contiguous(), m)
    compare('exposure_gain', grey, grey, 0 * m)
    alone = 0 * d
    alone[-1, -1] = 0.25  # none of the samples is known
    compare('positive_median', alone)


@pytest.mark.parametrize('gate', [6.0, float('inf')])
@pytest.mark.parametrize('side', [100, 2])
def test_noise_is_learned(gate, side):
    """Of few samples nothing is learned."""
    shape = (side, 120)
    rng = np.random.default_rng(0)
    old = torch.linspace(0.2, 1.0, shape[0] * shape[1]).view(shape)
    noise = rng.standard_normal(shape).astype(np.float32)
    d = old + (3e-3 + 4e-3 * old) * torch.from_numpy(noise)
    _, m = rough_wall(0, shape)
    frames = torch.from_numpy(rng.integers(0, 9, shape).astype(np.float32))
    before = NoiseModel(
        *torch.tensor([1e-3, 1e-2, 1e-3], dtype=torch.float64), (10.0, 3.0, 9.0), (0.1, 0.2), 2.0)
    found = [k.learn_noise(before, d, m, old, frames, gate) for k in BOTH]
    numbers = [tuple(torch.as_tensor(one) for one in (
        model.floor, model.share, *model.matrix, *model.vector, model.frames)) for model in found]
    assert_alike(*numbers)
    learned = side == 100
    assert (found[1].frames == 2.8) == learned  # 0.9 of two frames, and this one


def test_whole_frames():
    """Three frames of a small stream: what stages hand to each other fits too."""
    config = preset('realtime', **{'solver.iterations': 2, 'solver.scale': 2})
    refiners = [DepthRefiner(config, 'cpu') for _ in BOTH]
    for k, refiner in zip(BOTH, refiners):
        refiner.kernels = k
    for number, frame in enumerate(noisy_stream((44, 34), 3)):
        one, other = (refiner.refine(frame) for refiner in refiners)
        assert one.status is other.status is Status.REFINED
        assert one.reset == other.reset
        known = np.isfinite(one.depth)
        assert (known == np.isfinite(other.depth)).all()
        off = np.abs(other.depth / one.depth - 1)[known]
        assert np.median(off) < 1e-5 and np.mean(off > 1e-4) < 0.01 * (number + 1)


def test_launches_are_captured_and_replayed():
    """ADAM and its energies, as a part of a frame; nothing of them is left to Python."""
    graphs, k = Graphs(capture), BOTH[1]

    def part(k, config, clock, x, d, m, w):
        state = k.adam.init(x, w, d, m, torch.ones((), dtype=torch.float64), Terms(0.1, 1.0))
        k.adam.steps(state, [0.1, 0.05], 0.5)
        return {'planes': k.adam.planes(state), 'energy': k.adam.energy(state)}
    w = torch.rand((8, *SHAPE), generator=torch.Generator().manual_seed(0))
    for seed in range(4):
        x, m = planes_of(seed)
        d, _ = rough_wall(seed + 5)
        found = graphs.run(part, k, preset('realtime'), None, x=x, d=d, m=m, w=w)
        expected = part(k, None, None, x, d, m, w)
        assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert (graphs.launches, graphs.failures) == (3, 0)
