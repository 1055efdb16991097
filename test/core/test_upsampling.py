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
"""Planes at every pixel: exact at any scale, each side of an edge its own, residuals kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scenes import ramp_planes, run

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.downsampling import downsample_image, Level
from graph_depth_refiner.core.history import Present
from graph_depth_refiner.core.noise import NoiseModel
from graph_depth_refiner.core.observation import observe
from graph_depth_refiner.core.upsampling import KEPT, upsample
from graph_depth_refiner.core.upsampling_numba import fillable
from graph_depth_refiner.frame import Frame, Intrinsics

SHAPE = (24, 40)
SIGMA = 1e-3
ONES = np.ones(SHAPE, np.float32)
NOISE = NoiseModel(SIGMA, 0.0, SIGMA)
CAMERA = Intrinsics(60.0, 60.0, 20.0, 12.0)


def smaller(large, scale):
    """Return the planes of cells whose middles are at scale c + (scale - 1) / 2."""
    small = large[:, ::scale, ::scale].copy()
    small[0] += (small[1] + small[2]) * (scale - 1) / 2
    small[1:] *= scale
    return small


def enlarged(k, small, d, scale, frames=None):
    frames = (small[0] > 0).astype(np.float32) if frames is None else frames
    return run(k, k.upsample_planes, small, frames, d, np.ones_like(d), NOISE, SIGMA, scale)


@pytest.mark.parametrize('scale', [2, 4])
@pytest.mark.parametrize('shape', [SHAPE, (27, 43)])
def test_a_plane_is_exact(kernels, scale, shape):
    large = ramp_planes(shape)
    small = smaller(large, scale)[:, :shape[0] // scale, :shape[1] // scale].copy()
    assert np.allclose(enlarged(kernels, small, large[0], scale), large, atol=1e-6)
    assert np.allclose(enlarged(kernels, small, 0 * large[0], scale), large, atol=1e-6)


def test_each_side_of_an_edge_keeps_its_own(kernels):
    # the edge lies within a cell, which has the plane of its left half
    large = ramp_planes(SHAPE, 0.5, 0, 0)
    large[0, :, 21:] = 0.7
    small = smaller(large, 2)
    found = enlarged(kernels, small, large[0], 2)
    assert np.allclose(found[0], large[0], atol=1e-6)


@pytest.mark.parametrize('deviations', [1.0, 0.99 * KEPT, 3.0, 4.0])
def test_a_residual_beyond_the_noise_survives(kernels, deviations):
    large = ramp_planes(SHAPE, 0.5, 0, 0)
    d = large[0] + np.float32(deviations * SIGMA)
    # positive-part James-Stein: e (1 - (KEPT / e)^2) in deviations is left of e
    kept = max(0.0, deviations - KEPT ** 2 / deviations) * SIGMA
    found = enlarged(kernels, smaller(large, 2), d, 2)
    assert found[0] == pytest.approx(0.5 + kept, abs=1e-6)


def test_a_pixel_that_no_plane_explains_stays_as_it_is(kernels):
    large = ramp_planes(SHAPE, 0.5, 0, 0)
    d = large[0].copy()
    d[10, 10] = 0.8
    found = enlarged(kernels, smaller(large, 2), d, 2)
    assert found[0, 10, 10] == np.float32(0.8)


@pytest.mark.parametrize('column, side', [(19, 0.5), (20, 0.9)])
@pytest.mark.parametrize('value', [0.6, 0.8])
def test_a_pixel_between_two_sides_ends_on_that_of_its_cell(kernels, column, side, value):
    # the edge lies between two cells, of columns 18 and 19 and of 20 and 21
    large = ramp_planes(SHAPE, 0.5, 0, 0)
    large[0, :, 20:] = 0.9
    d = large[0].copy()
    d[10, column] = value
    found = enlarged(kernels, smaller(large, 2), d, 2)
    large[0, 10, column] = side
    assert np.allclose(found[0], large[0], atol=1e-6)


def test_planes_that_only_go_on_into_a_hole_do_not_move_measured_pixels(kernels):
    large = ramp_planes(SHAPE, 0.5, 0, 0)
    small = smaller(large, 2)
    frames = np.ones(small.shape[1:], np.float32)
    small[0, :, 10:], frames[:, 10:] = 0.502, 0  # two deviations off
    d = large[0].copy()
    d[:, 20:] = 0
    found = enlarged(kernels, small, d, 2, frames)
    assert found[0, :, :20] == pytest.approx(0.5, abs=1e-6)
    assert found[0, :, 21:] == pytest.approx(0.502, abs=1e-6)


def test_where_there_is_no_plane_there_is_none(kernels):
    small = np.zeros((3, 12, 20), np.float32)
    assert (enlarged(kernels, small, 0 * ONES, 2) == 0).all()


def test_variants_agree(variants):
    rng = np.random.default_rng(0)
    small = smaller(ramp_planes(SHAPE), 2)[:, :11, :19].copy()
    small[0] += SIGMA * rng.standard_normal(small[0].shape).astype(np.float32)
    small[0, 3:6, 4:9] += 0.1
    small[0] *= rng.random(small[0].shape) > 0.1
    d = ((ramp_planes(SHAPE)[0] + SIGMA * rng.standard_normal(SHAPE)) * (
        rng.random(SHAPE) > 0.2)).astype(np.float32)
    frames = (rng.random(small[0].shape) > 0.2).astype(np.float32)
    one, other = (enlarged(k, small, d, 2, frames) for k in variants)
    assert np.allclose(one, other, atol=2e-6)


@pytest.mark.parametrize('shape, scale', [((24, 97), 2), ((27, 38), 4), ((17, 16), 2)])
def test_variants_agree_on_clutter_of_many_frames(variants, shape, scale):
    rng = np.random.default_rng(1)
    small = np.zeros((3, shape[0] // scale, shape[1] // scale), np.float32)
    small[0] = 0.5 + 20 * SIGMA * rng.integers(0, 3, small.shape[1:])  # sides to lie between
    small[1:] = SIGMA * rng.standard_normal(small[1:].shape)
    frames = (rng.random(small.shape[1:]) > 0.2).astype(np.float32)
    d = np.float32(0.5) + (40 * SIGMA * rng.random(shape)).astype(np.float32)
    d *= rng.random(shape) > 0.2
    behind = (8 * rng.random(shape)).astype(np.float32) * (d > 0)
    noise = NoiseModel(SIGMA, 1e-3, SIGMA)
    one, other = (run(k, k.upsample_planes, small, frames, d, behind, noise, SIGMA, scale)
                  for k in variants)
    assert np.allclose(one, other, atol=2e-6)
    assert (np.abs(one[0] - d)[d > 0] > 6 * SIGMA).any()  # some were put on a side


def config(**values):
    return RefinerConfig().with_values(
        **{f'holes.{name}': value for name, value in values.items()})


def test_narrow_holes_may_be_filled_and_wide_ones_not():
    known = np.ones((40, 60), bool)
    known[:, 10:15] = False  # 5 px wide, from border to border
    known[10:30, 30:50] = False  # 20 px
    d = 0.5 * known.astype(np.float32)

    def may(**values):
        return fillable(d, known, SIGMA, config(**values)) > 0
    assert (may(fill='none') == known).all()
    assert (may(fill='small', max_width=0) == known).all()
    filled = may(fill='small', max_width=8)
    assert filled[8:-8, 10:15].all() and not filled[10:30, 30:50].any() and filled[known].all()
    assert not may(fill='small', max_width=4)[:, 10:15].any()


def test_a_narrow_hole_across_an_edge_stays_unknown():
    # nobody knows which side of the step its pixels are on
    d = np.full((40, 60), 0.5, np.float32)
    d[:, 30:] += 20 * SIGMA
    d[:, 28:31] = d[:, 10:13] = 0
    filled = fillable(d, d > 0, SIGMA, config(fill='small', max_width=4)) > 0
    assert filled[8:-8, 10:13].all() and not filled[:, 28:31].any()


@pytest.mark.parametrize('step, filled', [(0.008, True), (0.02, False)])
def test_what_is_rough_by_less_than_a_hundredth_is_no_edge(kernels, step, filled):
    """However low the noise: a fixed pattern of the sensor is not seen in its frames."""
    d = np.full((40, 60), 0.5, np.float32)
    d[::2] *= 1 - np.float32(step)
    d[:, 28:31] = 0
    found = run(kernels, kernels.fillable, d, d > 0, 1e-6, config(fill='small', max_width=4))
    assert (found[8:-8, 28:31] == filled).all()


@pytest.mark.parametrize('change, filled', [
    (0.004, True),  # a slope: 0.8 % across the gap, but 3.2 % over nine pixels
    (0.008, False)])  # 1.6 % across the gap: who knows
def test_a_gap_of_one_pixel_in_a_slope_is_filled(kernels, change, filled):
    d = np.float32(0.5) * np.float32(1 - change) ** np.arange(60, dtype=np.float32)
    d = np.tile(d, (40, 1))
    d[:, 30] = d[20] = 0  # lines without a measurement: 9 of 25 where they meet
    d[30:35, 40:45:2] = 0  # 12 or more of 25: a surface with holes
    found = run(kernels, kernels.fillable, d, d > 0, 1e-6, config(max_width=4)) > 0
    assert (found[2:18, 30] == filled).all() and found[20, 2:28].all() and not found[20, 30]
    assert not found[31:34, 42].any()


@pytest.mark.parametrize('shape', [(1, 1), (9, 63), (40, 64), (37, 65), (50, 130)])
@pytest.mark.parametrize('history_width, max_width', [
    (0, 0), (3, 4), (40, 1), (41, 7), (63, 3), (64, 64), (200, 150)])
def test_variants_fill_the_same_holes(variants, shape, history_width, max_width):
    rng = np.random.default_rng(history_width)
    for share in (0.02, 0.3, 0.9):
        measured = rng.random(shape) < share
        # two surfaces, far from the limit of what is one
        d = np.where(np.arange(shape[1]) < 0.6 * shape[1], 0.5, 0.6).astype(np.float32)
        d = d * (measured | (rng.random(shape) < 0.8))
        one, other = (run(k, k.fillable, d, measured, SIGMA, config(
            fill='small', max_width=max_width, history_width=history_width)) for k in variants)
        assert ((one > 0) == (other > 0)).all()


def test_planes_of_pixels_without_a_value_are_cleared(kernels):
    kept = np.zeros(SHAPE, np.float32)
    kept[3:9, 5:30] = 1
    planes = kernels.array(ramp_planes(SHAPE))
    mask = kernels.array(kept) if kernels.name == 'torch' else kept > 0
    kernels.keep_planes(planes, mask)
    assert (kernels.numpy(planes) == ramp_planes(SHAPE) * kept).all()


def test_the_history_fills_wider_holes_than_planes_do(kernels):
    d = np.full((80, 100), 0.5, np.float32)  # known everywhere, from earlier frames
    measured = np.ones(d.shape, bool)
    measured[30:50, 30:50] = measured[:, 80:] = False

    def filled(**values):
        return run(kernels, kernels.fillable, d, measured, SIGMA, config(**values)) > 0
    assert filled(history_width=30)[:, :80].all()
    # of others, and of what goes on to the border, the rim: of 2 px it would be 304 of 8000
    rim = measured.copy()
    rim[30:50, 30:50], rim[31:49, 31:49] = True, False
    rim[:, 80] = True
    assert (filled(history_width=10) == rim).all()
    assert (filled(fill='none') == measured).all()


def test_a_little_history_is_kept_deep_in_wide_holes_and_much_only_at_their_rim(kernels):
    # 0.9 % of 200 x 200 pixels are 360; of a hole of 40 x 40 40^2 - 36^2 = 304 are up to 2 px from
    # its rim, and 40^2 - 24^2 up to 8 px
    d, measured = np.full((200, 200), 0.5, np.float32), np.ones((200, 200), bool)
    measured[70:110, 70:110] = False

    def filled():
        return run(kernels, kernels.fillable, d, measured, SIGMA, config(history_width=10)) > 0
    rim = np.ones(d.shape, bool)
    rim[72:108, 72:108] = False
    assert (filled() == rim).all()
    d[70:110, 70:110] = 0
    d[80:92, 84:100] = 0.5  # 12 x 16 pixels, up to 22 px from what is measured
    assert (filled() == (d > 0)).all()
    d[79:101, 79:97] = 0.5  # 22 x 18 are too many, and none is within 8 px
    assert (filled() == measured).all()


def seen(k, d, scale):
    """Return an observation of inverse depth d, H W, and the guide of an even image."""
    image = np.full((*d.shape, 3), 128, np.uint8)
    depth = np.where(d > 0, 1 / np.where(d > 0, d, 1), 0).astype(np.float32)
    obs = observe(k, Frame(image, depth, CAMERA), RefinerConfig())
    return obs, replace(downsample_image(k, obs, RefinerConfig()), scale=scale)


@pytest.mark.parametrize('scale', [1, 2])
@pytest.mark.parametrize('fill', ['none', 'small', 'all'])
def test_holes_as_configured(kernels, scale, fill):
    large = ramp_planes(SHAPE, 0.5, 0, 0)
    d = large[0].copy()
    d[10:13, 10:13] = 0
    d[4:20, 20:36] = 0
    small = smaller(large, scale)
    k, shape = kernels, small.shape[1:]
    level = Level(*(k.array(np.full(shape, one, np.float32)) for one in (0.5, 1, SIGMA)),
                  SIGMA, SIGMA)
    frames = (d > 0).astype(np.float32)
    present = Present(k.array(d), k.array(frames), NoiseModel(SIGMA, 0, SIGMA), np.eye(4), 0, '')
    found = k.numpy(upsample(
        k, k.array(small), level, present, *seen(k, d, scale), config(fill=fill)))[0]
    assert found[d > 0] == pytest.approx(0.5)
    assert found[10:13, 10:13] == pytest.approx(0 if fill == 'none' else 0.5)
    assert found[4:20, 20:36] == pytest.approx(0.5 if fill == 'all' else 0)


def test_planes_blend_in_holes_too(kernels):
    # cells that differ by a deviation: from pixel to pixel it is half of that, not all or none
    k, shape = kernels, (12, 20)
    small = ramp_planes(shape, 0.5, 0, 0)
    small[0, :, 1::2] += np.float32(SIGMA)
    level = Level(*(k.array(np.full(shape, one, np.float32)) for one in (0.5, 1, SIGMA)),
                  SIGMA, SIGMA)
    present = Present(k.array(0 * ONES), k.array(0 * ONES), NoiseModel(0, 2 * SIGMA, SIGMA),
                      np.eye(4), 0, '')
    found = k.numpy(upsample(
        k, k.array(small), level, present, *seen(k, 0 * ONES, 2), config(fill='all')))[0]
    step = np.abs(np.diff(found, axis=1))[:, 2:-2]
    assert step.max() < 0.6 * SIGMA and step.min() >= 0 and np.ptp(found) > 0.4 * SIGMA


def test_a_last_median_removes_a_single_pixel(kernels):
    k, planes = kernels, ramp_planes(SHAPE, 0.5, 0, 0)
    planes[0, 5, 5] = 0.9
    level = Level(k.array(planes[0]), k.array(ONES), k.array(SIGMA * ONES), SIGMA, SIGMA)
    present = Present(k.array(planes[0]), k.array(ONES), NoiseModel(SIGMA, 0, SIGMA), np.eye(4),
                      0, '')
    for median, expected in ((True, 0.5), (False, 0.9)):
        values = {'planes.final_median': median}
        found = upsample(
            k, k.array(planes), level, present, *seen(k, planes[0], 1),
            RefinerConfig().with_values(**values))
        assert k.numpy(found)[0, 5, 5] == np.float32(expected)
