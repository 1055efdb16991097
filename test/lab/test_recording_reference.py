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
"""The reference, the regions and the scores where the truth is known."""

from dataclasses import replace
from functools import cache

import cv2
import numpy as np
import pytest
from recordings import in_memory, SENSOR

from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.lab.evaluation.baselines import Estimate
from graph_depth_refiner.lab.evaluation.recording import alignment, reference
from graph_depth_refiner.lab.evaluation.recording import geometry_numba as kernels
from graph_depth_refiner.lab.evaluation.recording.reference import (
    FITTING_IMAGE,
    make_reference,
    ReferenceCache,
)
from graph_depth_refiner.lab.evaluation.recording.regions import find_regions
from graph_depth_refiner.lab.evaluation.recording.scores import jitter, score
from graph_depth_refiner.lab.evaluation.recording.sensors import (
    choose_sensor,
    SEEN_SHARE,
    SENSORS,
)
from graph_depth_refiner.lab.evaluation.recording.sources import Recording
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream

CAMERA = Intrinsics(50.0, 50.0, 23.5, 17.5)
SHAPE = (36, 48)
FLAT = (np.zeros(SHAPE, np.float32),) * 2
JUDGED = 4  # the frame of the room that is judged
BLOCK = (slice(60, 100), slice(90, 150))  # never measured in the room
MATCHER = 2.0  # px, over which noise of a stereo matcher or a pattern is correlated


@cache
def moving_room(seed):
    """Return a recording of a moving camera whose noise is correlated, as a matcher's is."""
    stream = SyntheticStream(seed, (240, 180), 'moving', 'independent')

    @cache
    def load(number):
        view, rng = stream.view(number), np.random.default_rng(number)
        noise = cv2.GaussianBlur(rng.standard_normal(view.depth.shape), (0, 0), MATCHER)
        sigma = (0.003 + 0.003 * view.depth ** 2) / noise.std()
        depth = np.where(view.frame.depth > 0, view.depth + sigma * noise, 0)
        return replace(view.frame, depth=depth.astype(np.float32), confidence=None)

    return stream.view(JUDGED), Recording('room', '', JUDGED + 61, load)


def without_poses(recording):
    """Return a recording of the same frames that does not tell where the camera was."""
    return Recording('room', '', len(recording), cache(
        lambda number: replace(recording.frame(number), pose=None)))


def fused(recording, at_rest=False):
    """Return the reference of the judged frame from 60 later ones."""
    return make_reference(recording, JUDGED, range(JUDGED + 1, JUDGED + 61), SENSOR, at_rest)


def share_left(view, recording, reference):
    """Return the median error of the reference relative to that of the input."""
    measured = recording.frame(JUDGED).depth
    judged = np.isfinite(reference.depth) & (measured > 0) & ~view.moving
    assert judged.mean() > 0.6
    off = [np.median(np.abs(depth - view.depth)[judged] / view.depth[judged])
           for depth in (reference.depth, measured)]
    return off[0] / off[1]


@pytest.fixture(scope='module')
def room():
    """Return the truth of a frame with all kinds of surfaces, a recording and a reference."""
    view, recording = moving_room(9)
    return view, recording, fused(recording)


@pytest.fixture(scope='module')
def regions(room):
    """Return the regions of the room."""
    view, recording, reference = room
    return find_regions(reference, recording.frame(JUDGED), False)


# kernels

def test_the_densest_group_is_found():
    # of 1.00 1.01 1.02 3.00 the first three lie within 2 * 0.01 of each other; mean and median
    # of them are 1.01
    stack = np.zeros((5, 1, 2), np.float32)
    stack[:4, 0, 0] = 3.0, 1.02, 1.0, 1.01
    centre, size, total = kernels.densest_group(stack, np.full((1, 2), 0.0101, np.float32))
    assert centre[0, 0] == pytest.approx(1.01, abs=1e-5)
    assert (size[0, 0], total[0, 0]) == (3, 4)
    assert (centre[0, 1], size[0, 1], total[0, 1]) == (0, 0, 0)


def test_planes_are_fitted_exactly_and_not_across_jumps():
    y, x = np.mgrid[:20, :30].astype(float)
    d = 0.5 + 0.002 * x - 0.001 * y
    d[:, 15:] += 0.2
    planes = kernels.fit_planes(d, np.ones(d.shape, bool), 3, np.full(d.shape, 0.004))
    inside = np.s_[4:-4, np.r_[4:13, 18:26]]
    assert planes[0][inside] == pytest.approx(d[inside], abs=1e-6)
    assert planes[1][inside] == pytest.approx(0.002, abs=1e-6)
    assert planes[2][inside] == pytest.approx(-0.001, abs=1e-6)
    assert np.isnan(kernels.fit_planes(d, d < 0, 3, np.full(d.shape, 0.004))).all()


def test_warping_moves_a_wall_and_keeps_the_nearer_surface():
    depth = np.full(SHAPE, 2.0, np.float32)
    depth[10:20, 10:20] = 1.0
    # the camera goes 0.04 m to the right: points move by f 0.04 / z = 1 px at 2 m, 2 px at 1 m
    motion = np.eye(4)
    motion[0, 3] = -0.04
    moved, origin = alignment.warp(depth, motion, CAMERA)
    assert (moved[10:20, 8:18] == 1).all()
    assert (moved[10:20, 19:47] == 2).all() and (moved[10:20, :8] == 2).all()
    assert (moved[10:20, 18] == 0).all()  # nothing arrives there
    assert origin[12, 8] == 12 * SHAPE[1] + 10 and origin[12, 18] == -1


def test_slopes_take_points_to_the_middle_of_their_pixels():
    # a slanted plane 1/z = 0.5 + 0.004 (x - cx), seen after a turn about the optical axis by
    # 10 degrees, is linear in the new pixels: 0.004 (cos (x - cx) + sin (y - cy))
    y, x = np.mgrid[:SHAPE[0], :SHAPE[1]]
    depth = (1 / (0.5 + 0.004 * (x - CAMERA.cx))).astype(np.float32)
    c, s = np.cos(np.radians(10)), np.sin(np.radians(10))
    motion = np.eye(4)
    motion[:2, :2] = [[c, -s], [s, c]]
    slopes = tuple(np.full(SHAPE, 0.004 * part, np.float32) for part in (c, s))
    moved, _ = alignment.warp(depth, motion, CAMERA, slopes)
    exact = 1 / (0.5 + 0.004 * (c * (x - CAMERA.cx) + s * (y - CAMERA.cy)))
    arrived = moved > 0
    assert arrived.mean() > 0.7
    assert moved[arrived] == pytest.approx(exact[arrived], rel=1e-5)
    assert np.abs(alignment.warp(depth, motion, CAMERA)[0] - exact)[arrived].max() > 5e-3


# alignment

def test_the_motion_between_exact_views_is_found():
    stream = SyntheticStream(0, (160, 120))
    views = [stream.view(number) for number in (10, 13)]
    frames = [replace(view.frame, depth=view.depth) for view in views]
    motion, share = alignment.Aligner(frames[0]).align(frames[1], np.eye(4))
    exact = np.linalg.inv(frames[0].pose) @ frames[1].pose
    assert np.linalg.norm(exact[:3, 3]) > 0.03  # of these metres at most a tenth is left
    assert np.linalg.norm(motion[:3, 3] - exact[:3, 3]) < 0.1 * np.linalg.norm(exact[:3, 3])
    assert np.abs(motion[:3, :3] - exact[:3, :3]).max() < 2e-3
    assert share > alignment.LEAST_SHARE


def test_frames_of_different_places_are_not_aligned(room):
    other = SyntheticStream(2, (240, 180)).view(40).frame
    motion, share = alignment.Aligner(other).align(room[1].frame(0), np.eye(4))
    assert share < alignment.LEAST_SHARE


@pytest.mark.parametrize('motion, rests', [('static', True), ('object', True), ('moving', False)])
def test_a_camera_at_rest_is_found_from_the_images(motion, rests):
    recording = in_memory(SyntheticStream(3, (160, 120), motion, 'independent'), 10)
    assert alignment.is_at_rest(recording, 10) is rests


# reference

@pytest.mark.parametrize('seed', [0, 1, 2])
def test_at_rest_the_reference_is_within_a_fifth_of_the_error_of_the_input(seed):
    # 60 values of independent noise leave 1 / sqrt(60) = 0.13 of it
    stream = SyntheticStream(seed, (240, 180), 'static', 'independent')
    recording = in_memory(stream, JUDGED + 61)
    assert share_left(stream.view(JUDGED), recording, fused(recording, True)) < 1 / 5


@pytest.mark.parametrize('seed', [0, 1, 2])
def test_along_the_exact_motion_the_reference_is_within_a_fifth(seed, monkeypatch):
    view, recording = moving_room(seed)
    back = np.linalg.inv(recording.frame(JUDGED).pose)
    monkeypatch.setattr(alignment, 'motions_to', lambda recording, target, others: {
        k: back @ recording.frame(k).pose for k in others})
    assert share_left(view, recording, fused(recording)) < 1 / 5


@pytest.mark.parametrize('seed', [0, 1, 2])
def test_in_motion_the_reference_is_within_a_fifth_of_the_error_of_the_input(seed):
    view, recording = moving_room(seed)
    assert share_left(view, recording, fused(recording)) < 1 / 5


@pytest.mark.parametrize('seed', [1, 2])
def test_without_poses_the_reference_is_within_a_fifth_of_the_error_of_the_input(seed):
    # 0.24 and 0.25 where the image does not lead; 0.16 and 0.18 along the exact motion
    view, recording = moving_room(seed)
    alone = without_poses(recording)
    assert share_left(view, alone, fused(alone)) < 1 / 5


def test_images_that_do_not_fit_do_not_lead(room):
    # grey noise instead of images: the reference is that of frames aligned by their depth
    def load(number):
        image = np.random.default_rng(number).integers(0, 256, (180, 240), np.uint8)
        return replace(room[1].frame(number), image=image, pose=None)

    blind = Recording('blind', '', JUDGED + 21, cache(load))
    arguments = (blind, JUDGED, range(JUDGED + 1, JUDGED + 21), SENSOR, False)
    found = make_reference(*arguments)
    by_depth = reference._fused(
        blind, JUDGED, alignment.motions_to(*arguments[:3]), SENSOR)
    assert found.aligned == by_depth.aligned == 20
    assert np.array_equal(found.depth, by_depth.depth, equal_nan=True)


def test_the_misfit_tells_a_wrong_motion():
    stream = SyntheticStream(0, (160, 120), 'camera')
    recording = in_memory(stream, 3)
    here, exact = recording.frame(0), stream.view(0).depth
    motion = np.linalg.inv(here.pose) @ recording.frame(2).pose
    turned = np.eye(4)
    turned[:3, :3] = cv2.Rodrigues(np.array([0.0, 0.02, 0.0]))[0]  # 2.7 px
    image, depth = alignment.misfit(recording, here, exact, {2: motion})
    other_image, other_depth = alignment.misfit(recording, here, exact, {2: turned @ motion})
    assert image < FITTING_IMAGE and image < 0.7 * other_image and depth < other_depth
    assert alignment.misfit(recording, here, exact, {}) == (np.inf, np.inf)


def test_poses_that_do_not_fit_are_corrected():
    # every pose but the judged one is off by 2 cm and a degree: kept, they would blur the room
    view, recording = moving_room(1)
    off = np.eye(4)
    off[:3, :3] = cv2.Rodrigues(np.array([0.0, 0.017, 0.0]))[0]
    off[:3, 3] = 0.0, 0.0, 0.02

    def load(number):
        frame = recording.frame(number)
        return frame if number == JUDGED else replace(frame, pose=frame.pose @ off)
    wrong = Recording('room', '', JUDGED + 61, load)
    assert share_left(view, wrong, fused(wrong)) < 1 / 4


def test_the_reference_knows_how_uncertain_it_is(room):
    # half the difference of two halves is about the deviation of their mean: the median error
    # of a deviation s is 0.67 s, and so is the median of what is compared
    view, recording, reference = room
    judged = np.isfinite(reference.uncertainty) & ~view.moving
    off = np.median(np.abs(reference.depth - view.depth)[judged])
    assert 0.5 * off < np.median(reference.uncertainty[judged]) < 2 * off


def test_what_moves_is_not_in_the_reference():
    # a box goes through the view of a camera at rest and is gone: the wall behind it remains
    def load(number):
        depth = np.full(SHAPE, 3.0, np.float32)
        if number < 5:
            depth[10:20, 4 * number:4 * number + 8] = 1.5
        return Frame(np.zeros((*SHAPE, 3), np.uint8), depth, CAMERA)

    reference = make_reference(
        Recording('box', '', 31, load), 0, range(1, 31), SENSORS['structured-light'], True)
    assert (reference.depth[10:20] == 3).all()


def test_references_are_kept_by_contents(tmp_path, room):
    recording = room[1]
    arguments = (recording, 0, range(1, 12), SENSOR, False)
    first = ReferenceCache(tmp_path).reference(*arguments)
    files = list(tmp_path.iterdir())
    assert len(files) == 1
    written = files[0].stat().st_mtime_ns
    again = ReferenceCache(tmp_path).reference(*arguments)
    assert files[0].stat().st_mtime_ns == written
    for name in ('depth', 'smooth', 'normals', 'uncertainty', 'values'):
        assert np.array_equal(getattr(first, name), getattr(again, name), equal_nan=True)
    assert (first.aligned, first.shift) == (again.aligned, again.shift)
    files[0].write_bytes(b'damaged')
    ReferenceCache(tmp_path).reference(*arguments)
    assert files[0].stat().st_size > 1000
    ReferenceCache(tmp_path).reference(*arguments[:2], range(1, 11), *arguments[3:])
    for other in (SENSORS['tof'], replace(SENSOR, agreeing=4)):
        ReferenceCache(tmp_path).reference(*arguments[:3], other, False)
    assert len(list(tmp_path.iterdir())) == 4
    ReferenceCache(None).reference(*arguments)


# regions

def test_the_planes_that_were_rendered_are_found(room, regions):
    view = room[0]
    plane = regions.plane & ~view.moving  # behind what moves later frames see the wall
    assert plane.sum() > 15000 and len(regions.planes) >= 3
    assert (view.curved | view.thin)[plane].mean() < 0.02
    # their normals are those of floor, walls and furniture
    for number, (normal, _) in enumerate(regions.planes, 1):
        area = regions.label == number
        exact = np.median(view.normals[area], axis=0)
        assert np.degrees(np.arccos(np.clip(normal @ exact, -1, 1))) < 1.5


def test_the_edges_that_were_rendered_are_found(room, regions):
    view, _, reference = room
    jump = np.zeros(view.depth.shape, bool)
    step = view.depth[:, 1:] / view.depth[:, :-1]
    jump[:, 1:] = (step > 1.1) | (step < 1 / 1.1)
    near_mover = cv2.dilate(view.moving.astype(np.uint8), np.ones((9, 9))) > 0
    known = jump & np.isfinite(reference.depth) & ~near_mover
    assert known.sum() > 200
    assert (regions.edge | regions.thin)[known].mean() > 0.99
    assert not regions.calm[known].any()
    # and nothing far from any edge is called one
    y, x = np.gradient(np.log(view.depth))
    steep = cv2.dilate((np.hypot(x, y) > 0.015).astype(np.uint8), np.ones((15, 15))) > 0
    assert regions.edge[~steep & ~near_mover].mean() < 0.01


def test_round_things_are_curved_and_poles_are_thin(room, regions):
    view = room[0]
    calm = regions.calm & view.curved
    assert calm.sum() > 100
    assert regions.curved[calm].mean() > 0.95
    assert regions.thin.sum() > 200 and view.thin[regions.thin].mean() > 0.9


def test_the_holes_that_later_frames_see_are_found(room, regions):
    view, _, reference = room
    hole = (view.frame.depth == 0) & ~view.moving & np.isfinite(reference.depth)
    assert hole.sum() > 200
    assert (regions.hole & ~view.moving == hole).all()
    off = np.abs(reference.depth - view.depth)[hole] / view.depth[hole]
    assert np.median(off) < 0.005


def test_planes_of_a_camera_at_rest_are_judged_against_fitted_planes():
    # a wall with fixed ripples of 5 mm: the mean of later frames has them, the plane has not
    camera, (rows, columns) = Intrinsics(100, 100, 39.5, 29.5), (60, 80)
    y, x = np.mgrid[:rows, :columns]
    ripples = (2 + 0.005 * np.sin(1.3 * x + 0.7 * y)).astype(np.float32)
    frame = Frame(np.zeros((rows, columns, 3), np.uint8), ripples, camera)
    recording = Recording('wall', '', 20, lambda number: frame)
    reference = make_reference(recording, 0, range(1, 20), SENSORS['active-stereo'], True)
    assert np.abs(reference.depth - ripples).max() < 1e-6
    judged = find_regions(reference, frame, True)
    assert judged.plane.mean() > 0.8
    assert judged.depth[judged.plane] == pytest.approx(2, abs=1e-3)
    scores = score(Estimate(ripples), judged, camera, True)
    # the median of |sin| is 0.707, of 5 mm in 2 m
    assert scores['plane'] == pytest.approx(0.25 * 0.707, rel=0.1)
    assert 'curved' not in scores and 'curved_normals' not in scores


# scores

def test_the_truth_is_better_than_the_input_and_an_offset_is_measured(room, regions):
    view = room[0]
    camera = view.frame.intrinsics
    truth = score(Estimate(regions.depth, regions.normals), regions, camera, False)
    assert truth['plane'] == truth['curved'] == truth['edge'] == truth['hole'] == 0
    assert truth['plane_normals'] < 0.1
    off = score(Estimate(1.01 * regions.depth, regions.normals), regions, camera, False)
    for name in ('plane', 'curved', 'edge', 'hole'):
        assert off[name] == pytest.approx(1, abs=1e-3)
    raw = score(Estimate(room[1].frame(JUDGED).depth), regions, camera, False)
    assert raw['plane'] > 0.3 and raw['plane_normals'] > 2 and raw['invented'] == 0


def test_values_between_the_sides_of_an_edge_are_flying(regions, room):
    camera = room[0].frame.intrinsics
    middle = score(Estimate((regions.near + regions.far) / 2), regions, camera, False)
    near = score(Estimate(regions.near), regions, camera, False)
    assert (middle['flying'], near['flying']) == (100, 0)


def test_an_invented_wall_is_counted():
    # nothing is ever measured in a block of 40 x 60 of 180 x 240 pixels: a method that closes it
    # with a wall has invented 5.56 % of the image
    def hollow(frame):
        depth = frame.depth.copy()
        depth[BLOCK] = 0
        return replace(frame, depth=depth)

    stream = SyntheticStream(1, (240, 180), 'static', 'independent')
    recording = in_memory(stream, 20, change=hollow)
    frame = recording.frame(0)
    reference = make_reference(recording, 0, range(1, 20), SENSOR, True)
    judged = find_regions(reference, frame, True)
    closed, open_ = frame.depth.copy(), frame.depth.copy()
    closed[BLOCK], open_[BLOCK] = 2.0, np.nan
    added, none = (score(Estimate(depth), judged, frame.intrinsics, True)['invented']
                   for depth in (closed, open_))
    assert none == 0
    assert added == pytest.approx(100 * 40 * 60 / (180 * 240))


def test_jitter_is_the_deviation_of_one_frame(regions, room):
    rng = np.random.default_rng(0)
    truth = np.nan_to_num(regions.depth)
    noisy = [(truth * (1 + 0.004 * rng.standard_normal(truth.shape))).astype(np.float32)
             for _ in range(2)]
    camera = room[0].frame.intrinsics
    assert jitter(*noisy, np.eye(4), regions, camera)['jitter'] == pytest.approx(0.4, rel=0.03)
    assert jitter(truth, truth, np.eye(4), regions, camera)['jitter'] == 0


# sensors

@pytest.mark.parametrize('text, kind', [
    ('cup_d400_static RealSense D4xx, camera at rest', 'active-stereo'),
    ('bag /camera/aligned_depth_to_color/image_raw', 'active-stereo'),
    ('hololens_tof HoloLens long-throw ToF', 'tof'),
    ('kitchen_kinect Kinect v1', 'structured-light'),
    ('rgbd_dataset_freiburg1_desk tum', 'structured-light'),
    ('room /zed/depth/depth_registered', 'stereo'),
    ('x /oak/stereo/image_raw', 'stereo')])
def test_sensors_are_guessed_from_words(text, kind):
    recording = Recording('x', text, 1, lambda number: None)
    assert choose_sensor(recording, '')[0].name == kind
    assert choose_sensor(recording, 'tof') == (SENSORS['tof'], 'as told')


@pytest.mark.parametrize('kind', ['structured-light', 'stereo'])
def test_sensors_are_guessed_from_noise_where_no_word_tells(kind):
    exact = SyntheticStream(3, (160, 120), 'static').view(0)
    sigma = SEEN_SHARE * SENSORS[kind].noise(exact.depth)

    def load(number):
        noise = np.random.default_rng(number).standard_normal(exact.depth.shape)
        return replace(exact.frame, depth=(exact.depth + sigma * noise).astype(np.float32))

    sensor, reason = choose_sensor(Recording('x', '', 8, load), '')
    assert sensor.name == kind and 'noise' in reason
