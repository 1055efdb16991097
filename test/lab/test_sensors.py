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
"""The synthetic sensors have the noise, the bias and the holes that their models state."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.synthetic import faults
from graph_depth_refiner.lab.synthetic.regions import find_regions
from graph_depth_refiner.lab.synthetic.scene import Rendering
from graph_depth_refiner.lab.synthetic.sensors import (
    ACTIVE_STEREO,
    ColorFaults,
    make_sensor,
    SENSORS,
    Setup,
    STEREO,
    STRUCTURED_LIGHT,
)
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream

SIZE = (640, 480)
CAMERA = Intrinsics(544, 544, 319.5, 239.5)
SETUP = Setup(3, CAMERA, SIZE)
SMALL = Intrinsics(136, 136, 79.5, 59.5)  # of 160 x 120
HARD = ('structured-light', 'active-stereo', 'tof', 'stereo')
TRIANGULATING = {
    'structured-light': STRUCTURED_LIGHT, 'active-stereo': ACTIVE_STEREO,
    'stereo': replace(STEREO, wrong=0.0)}  # wrong matches would be most of a deviation


@pytest.fixture(scope='module')
def rooms():
    """Return exact views of random rooms by the kind of room."""
    streams = {room: [SyntheticStream(seed, (160, 120), room=room) for seed in seeds]
               for room, seeds in (('clutter', range(4)), ('furnished', range(1)))}
    return {room: [one.scene.render(one.intrinsics, one.size, one.pose(4)) for one in some]
            for room, some in streams.items()}


def wall(distance, tilt=0.1, size=SIZE, camera=CAMERA):
    """Return the view of a textured wall, tilted around the vertical by `tilt` radians."""
    y, x = np.indices(size[::-1], np.float32)
    x, y = (x - camera.cx) / camera.fx, (y - camera.cy) / camera.fy
    normal = np.array([np.sin(tilt), 0, -np.cos(tilt)], np.float32)
    # n . (z ray) = n . (0, 0, distance)
    towards = np.minimum(normal[0] * x + normal[2], -1e-3)
    depth = (normal[2] * distance / towards).astype(np.float32)
    normals = np.broadcast_to(normal, (*depth.shape, 3)).copy()
    facing = (normal[0] * x + normal[2]) / np.sqrt(1 + x * x + y * y)
    grain = np.random.default_rng(0).uniform(0.35, 0.65, depth.shape).astype(np.float32)
    albedo = np.repeat(grain[..., None], 3, 2)
    no = np.zeros(depth.shape, bool)
    points = np.stack([x * depth, y * depth, depth])
    return Rendering(depth, normals, normals, facing, albedo, points, no, no, no, no)


def steady(name):
    """Return a sensor without wrong matches."""
    sensor = make_sensor(name, SETUP)
    return replace(sensor, model=TRIANGULATING[name]) if name in TRIANGULATING else sensor


def measured(sensor, exact, count, first=0):
    """Return the depths of some frames of the same view, N H W, NaN in holes."""
    frames = np.stack([sensor.measure(exact, n, np.random.default_rng(n))[0]
                       for n in range(first, first + count)]).astype(np.float64)
    return np.where(frames > 0, frames, np.nan)


def half_length(values, axis):
    """Return the lag in pixels at which the autocorrelation of N H W falls to a half."""
    values = np.moveaxis(values, axis, -1)
    before = 1.0
    for lag in range(1, 40):
        now = np.nanmean(values[..., lag:] * values[..., :-lag]) / np.nanmean(values ** 2)
        if now < 0.5:
            return lag - 1 + (before - 0.5) / (before - now)
        before = now
    return np.inf


@pytest.mark.parametrize('distance', [1.5, 3.0])
@pytest.mark.parametrize('name', TRIANGULATING)
def test_error_of_disparity_is_what_the_model_says(name, distance):
    # independent parts: noise, rounding to a step s (s^2 / 12), the fixed and the drifting bias;
    # dz = z^2 / (f B) dd makes the error in metres grow with the square of the distance
    model = TRIANGULATING[name]
    exact = wall(distance)
    error = 544 * model.baseline * (1 / measured(steady(name), exact, 4) - 1 / exact.depth)
    expected = np.sqrt(model.rms ** 2 + model.step ** 2 / 12 + model.ripple ** 2
                       + model.drift ** 2)
    assert np.nanstd(error) == pytest.approx(expected, rel=0.12)


@pytest.mark.parametrize(('distance', 'millimetres'), [(1.0, 1.3), (3.0, 2.7)])
def test_time_of_flight_deviates_from_frame_to_frame_as_published(distance, millimetres):
    # 1.5 - 0.5 z + 0.3 z^2 for a white wall; this one reflects a half, so over sqrt(0.5);
    # rounding to millimetres adds 1/12
    exact = wall(distance, tilt=0.0)
    exact = replace(exact, albedo=np.full_like(exact.albedo, 0.5))
    frames = measured(make_sensor('tof', SETUP), exact, 4)
    middle = (slice(None), slice(190, 290), slice(270, 370))
    deviation = np.nanstd(np.diff(frames[middle], axis=0)) / np.sqrt(2)
    expected = 1e-3 * np.sqrt(millimetres ** 2 / 0.5 + 1 / 12)
    assert deviation == pytest.approx(expected, rel=0.08)


# half of the window where neighbours share the noise, less what rounding adds to each alone
@pytest.mark.parametrize(('name', 'across', 'down'), [
    ('active-stereo', (7, 10), (4.5, 7)), ('stereo', (4, 7), (4, 7)),
    ('structured-light', (0.5, 5), (0.5, 5)), ('tof', (0.3, 1), (0.3, 1)),
    ('independent', (0.3, 0.6), (0.3, 0.6))])
def test_noise_is_shared_over_the_matchers_window(name, across, down):
    change = np.diff(measured(steady(name), wall(2.0), 4), axis=0)
    assert across[0] < half_length(change, 2) < across[1]
    assert down[0] < half_length(change, 1) < down[1]


def test_a_small_image_is_the_same_camera_reduced():
    camera = Intrinsics(272, 272, 159.5, 119.5)
    small = make_sensor('active-stereo', Setup(3, camera, (320, 240)))
    change = np.diff(measured(small, wall(2.0, size=(320, 240), camera=camera), 4), axis=0)
    full = np.diff(measured(make_sensor('active-stereo', SETUP), wall(2.0), 4), axis=0)
    assert np.nanstd(change) == pytest.approx(np.nanstd(full), rel=0.1)
    assert half_length(change, 2) == pytest.approx(half_length(full, 2) / 2, rel=0.25)


def test_active_stereo_at_rest_changes_more_in_time_than_in_space():
    # a real D400 at rest: frames differ by 0.34 %, neighbours by 0.09 %
    stream = SyntheticStream(1, SIZE, 'static', 'active-stereo', 'clutter')
    first, second = stream.view(0), stream.view(1)
    a, b = first.frame.depth, second.frame.depth
    calm = find_regions(first.depth, first.normals)['plane'] & (a > 0) & (b > 0)
    pairs = calm[:, 1:] & calm[:, :-1]
    between_frames = (np.abs(a - b) / a.clip(0.1))[calm].mean()
    between_neighbours = (np.abs(np.diff(a, axis=1)) / a[:, 1:].clip(0.1))[pairs].mean()
    assert between_frames > 3 * between_neighbours
    assert 0.002 < between_frames < 0.015


@pytest.mark.parametrize('name', TRIANGULATING)
def test_disparity_comes_in_steps(name):
    model = TRIANGULATING[name]
    depth = measured(make_sensor(name, SETUP), wall(2.0), 1)
    steps = 544 * model.baseline / depth / model.step
    assert np.nanmax(np.abs(steps - np.rint(steps))) < 0.01
    assert np.unique(np.rint(steps[np.isfinite(steps)])).size > 3


@pytest.mark.parametrize('name', HARD)
def test_bias_stays_in_the_image_when_the_scene_moves(name):
    sensor = steady(name)

    def mean_error(exact, first):
        error = 1 / measured(sensor, exact, 5, first) - 1 / exact.depth.astype(np.float64)
        return cv2.blur(np.nan_to_num(error.mean(0)), (9, 9))[60:-60, 100:-60].ravel()

    here, turned = mean_error(wall(2.0), 0), mean_error(wall(2.0, tilt=-0.05), 5)
    later = mean_error(wall(2.0), 300)
    assert np.corrcoef(here, turned)[0, 1] > 0.6
    assert np.corrcoef(here, later)[0, 1] < np.corrcoef(here, turned)[0, 1] - 0.05


def test_growth_with_incidence_is_that_of_the_paper():
    # t^2 / (pi/2 - t)^2 is 1/4 at 30 degrees, 4 at 60 and 64 at 80
    facing = -np.cos(np.radians(np.array([0, 30, 60, 80, 89.9], np.float32)))
    growth = faults.incidence_growth(facing)
    np.testing.assert_allclose(growth, [1, 1.00575, 1.092, 2.472, 4], atol=2e-3)


@pytest.mark.parametrize('name', HARD)
def test_noise_grows_with_incidence(name):
    # edges that are seen beside where they are would make slopes noisy too
    sensor = steady(name)
    if name in TRIANGULATING:
        sensor = replace(sensor, model=replace(sensor.model, lateral=0.0))
    columns = (slice(None), slice(None), slice(300, 340))
    straight, steep = (
        np.nanstd(np.diff(1 / measured(sensor, wall(2.0, tilt), 3), axis=0)[columns])
        for tilt in (0.0, 1.25))
    assert steep > 1.15 * straight


@pytest.mark.parametrize(('name', 'least', 'most'), [
    # real recordings: structured light 24 %, active stereo 11 to 15 %, time of flight 37 %
    ('structured-light', 12, 40), ('active-stereo', 7, 25), ('tof', 10, 40),
    ('stereo', 15, 45), ('independent', 1, 15)])
def test_share_of_holes_in_rooms_with_clutter(rooms, name, least, most):
    depths = []
    for seed, exact in enumerate(rooms['clutter']):
        depth, confidence = make_sensor(name, Setup(seed, SMALL, (160, 120))).measure(
            exact, 4, np.random.default_rng(seed))
        assert (depth >= 0).all() and (depth[~np.isfinite(exact.depth)] == 0).all()
        assert confidence is None or (confidence[depth == 0] == 0).all()
        depths.append(depth)
    assert least < 100 * np.mean([depth == 0 for depth in depths]) < most


@pytest.mark.parametrize('name', SENSORS)
def test_frames_can_be_repeated_and_furnished_rooms_measured(rooms, name):
    exact = rooms['furnished'][0]

    def frame(index):
        sensor = make_sensor(name, Setup(5, SMALL, (160, 120)))
        depth = sensor.measure(exact, index, np.random.default_rng(index))[0]
        return depth, sensor.photograph(exact.albedo, index, np.array([2.0, 1.0]))

    for first, second in zip(frame(7), frame(7), strict=True):
        np.testing.assert_array_equal(first, second)
    assert (frame(7)[0] != frame(8)[0]).any()
    assert 0.5 < (frame(7)[0] > 0).mean() < 1


@pytest.mark.parametrize('name', HARD)
def test_nothing_beyond_the_range(name):
    assert np.isnan(measured(make_sensor(name, SETUP), wall(12.0), 1)).all()
    assert np.isfinite(measured(make_sensor(name, SETUP), wall(2.0), 1)).mean() > 0.8


@pytest.mark.parametrize('name', ['structured-light', 'active-stereo', 'tof'])
def test_black_and_shiny_surfaces_send_nothing_back(name):
    exact = wall(2.5, tilt=0.5)
    exact.albedo[:, 200:300] = 0.01
    shiny = np.zeros(exact.depth.shape, bool)
    shiny[:, 400:500] = True
    found = np.isfinite(measured(make_sensor(name, SETUP), replace(exact, shiny=shiny), 1)[0])
    assert not found[:, 210:290].any()
    assert not found[:, 410:490].any()
    assert found[:, 310:390].mean() > 0.9


def test_passive_stereo_needs_texture():
    exact = wall(2.0)
    exact.albedo[:, 200:300] = 0.5
    found = np.isfinite(measured(make_sensor('stereo', SETUP), exact, 1)[0])
    assert not found[:, 220:280].any()
    assert found[:, 310:].mean() > 0.9


def test_shadows_lie_beside_near_things():
    # columns 50 to 59 have disparity 30 and come to lie at 20 to 29 of the other view; the wall
    # with disparity 10 is at x - 10 there: hidden from x = 30 to 49, outside below x = 10
    disparity = np.full((4, 100), 10, np.float32)
    disparity[:, 50:60] = 30
    expected = np.zeros(100, bool)
    expected[:10] = expected[30:50] = True
    np.testing.assert_array_equal(faults.shadows(disparity)[2], expected)


@pytest.mark.parametrize(('name', 'baseline'), [
    ('structured-light', 0.075), ('active-stereo', 0.05), ('stereo', 0.12), ('tof', 0.05)])
def test_a_near_thing_hides_as_much_as_the_baseline_says(name, baseline):
    exact = wall(3.0, tilt=0.0)
    exact.depth[:, 300:400] = 1.5
    gone = np.isnan(measured(steady(name), exact, 1)[0])
    # disparities of 544 B / 1.5 and 544 B / 3
    assert gone[:, 250:300].sum(1).mean() == pytest.approx(544 * baseline / 3, abs=1.5)
    assert gone[:, 405:450].mean() < 0.02


@pytest.mark.parametrize('name', ['tof', 'active-stereo'])
def test_pixels_fly_between_two_surfaces(name):
    exact = wall(3.0, tilt=0.0)
    exact.depth[:, :320] = 1.5  # on the other side it would be in its own shadow
    found = measured(make_sensor(name, SETUP), exact, 1)[0]
    between = (found > 1.7) & (found < 2.7)
    assert between.any()
    assert not between[:, :300].any()
    assert not between[:, 340:].any()


def test_light_over_a_second_wall_makes_corners_too_far():
    # two walls at right angles, 45 degrees to the view, that meet at 3 m in the middle column
    y, x = np.indices((120, 160), np.float32)
    ray = np.abs((x - 79.5) / 136)
    depth = 3 / (1 + ray)
    side = np.sign(79.5 - x) * np.float32(np.sqrt(0.5))
    normals = np.stack([side, np.zeros_like(x), np.full_like(x, -np.sqrt(0.5))], -1)
    grey = np.full_like(x, 0.5)
    error = faults.multipath(depth, normals, grey, SMALL)
    middle = error[40:80]
    assert 0.005 < middle[:, 70:90].mean() < 0.06
    assert middle[:, :20].mean() < 0.5 * middle[:, 70:90].mean()
    flat = np.broadcast_to(np.array([0, 0, -1], np.float32), normals.shape)
    assert faults.multipath(np.full_like(x, 2), flat, grey, SMALL).max() < 1e-6


def test_the_image_is_moved_by_up_to_three_pixels_and_exposed_unevenly():
    texture = cv2.GaussianBlur(
        np.random.default_rng(1).uniform(0, 1, (480, 640)).astype(np.float32), (0, 0), 2)
    image = np.repeat(texture[..., None], 3, 2)
    taken = [ColorFaults().spoil(SETUP, image, n, np.zeros(2)) for n in range(0, 200, 10)]
    shifts = [np.hypot(*cv2.phaseCorrelate(texture, one[..., 0])[0]) for one in taken]
    assert 0.5 < max(shifts) < 3.1
    levels = [one.mean() for one in taken]
    assert max(levels) > 1.2 * min(levels)


def test_motion_smears_the_image():
    step = np.zeros((40, 60, 3), np.float32)
    step[:, 30:] = 1
    smeared = faults.shift_and_blur(step, np.zeros(2), np.array([6.0, 0.0]), 0.0)
    partly = (smeared[20, :, 0] > 0.01) & (smeared[20, :, 0] < 0.99)
    assert 5 <= partly.sum() <= 7
    np.testing.assert_array_equal(
        faults.shift_and_blur(step, np.zeros(2), np.array([0.0, 0.2]), 0.0), step)
