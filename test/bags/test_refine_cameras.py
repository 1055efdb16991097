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
"""Recordings of cameras: their presets, frame ids, transforms, poses and ROS 1 bags."""

from dataclasses import replace

from bag_helpers import RunningMean
import cv2
import numpy as np
import pytest
from rosbags.rosbag1 import Writer
from rosbags.typesys import get_types_from_msg, get_typestore, Stores

from graph_depth_refiner.bags import refinement
from graph_depth_refiner.bags.bags import BagWriter, Message, message_bytes, reading, Topic, TYPES
from graph_depth_refiner.bags.make_bag import info_fields, make_header
from graph_depth_refiner.bags.places import ODOMETRY, POSE, TRANSFORMS
from graph_depth_refiner.bags.refine_bag import NOTHING, recordings
from graph_depth_refiner.bags.topics import CAMERA_INFO, IMAGE
from graph_depth_refiner.cli.main import main
from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.messages.outgoing import image_fields

SHAPE = (48, 64)
CAMERA = Intrinsics(60.0, 60.0, 31.5, 23.5)
START, PERIOD = 10 ** 10, 10 ** 8  # ns
WRONG = (slice(20, 24), slice(30, 34))  # pixels
WRONG_DEPTH, DEPTH = 0.7, 2.5  # metres
T = TYPES.types
ONCE = {TRANSFORMS: 'tf/msg/tfMessage'}  # types that had another name in ROS 1


def frame(noise=0.005, wrong=False):
    """Return a textured wall, perhaps with a spot of wrong depth."""
    rng = np.random.default_rng(0)
    depth = rng.normal(DEPTH, noise, SHAPE).astype(np.float32)
    if wrong:
        depth[WRONG] = WRONG_DEPTH
    coarse = rng.integers(0, 255, (6, 8, 3), np.uint8)
    return Frame(cv2.resize(coarse, SHAPE[::-1], interpolation=cv2.INTER_CUBIC), depth, CAMERA)


def camera(of, names, frames, count=3, confidence=None):
    """
    Yield the messages of a camera, in their order.

    Names are of image, depth, camera_info and perhaps the image's own; frames of image, depth
    and, if it is another, camera_info.
    """
    for time in range(START, START + count * PERIOD, PERIOD):
        image, depth, info = (make_header(time, name) for name in (*frames, frames[1])[:3])
        yield stored(names[0], IMAGE, time, image, image_fields(of.image, 'rgb8'))
        yield stored(names[1], IMAGE, time, depth, image_fields(of.depth, '32FC1'))
        yield stored(names[2], CAMERA_INFO, time, info, info_fields(of))
        if len(names) > 3:
            yield stored(names[3], CAMERA_INFO, time, image, info_fields(of))
        if confidence is not None:
            topic, values = confidence
            yield stored(topic, IMAGE, time, depth, image_fields(values, '32FC1'))


def stored(topic, kind, time, header, fields):
    """Return a stored message."""
    return Message(topic, kind, time, message_bytes(kind, header, fields))


def pose_at(x, angle):
    """Return position and orientation of a turn about z."""
    return (x, 0.0, 0.0), (0.0, 0.0, float(np.sin(angle / 2)), float(np.cos(angle / 2)))


def transforms(topic, time, *edges):
    """Return a TFMessage of edges: parent, child, x, angle about z."""
    made = []
    for parent, child, x, angle in edges:
        position, turn = pose_at(x, angle)
        made.append(T['geometry_msgs/msg/TransformStamped'](
            make_header(time, parent), child, T['geometry_msgs/msg/Transform'](
                T['geometry_msgs/msg/Vector3'](*position),
                T['geometry_msgs/msg/Quaternion'](*turn))))
    data = TYPES.serialize_cdr(T[TRANSFORMS](made), TRANSFORMS)
    return Message(topic, TRANSFORMS, time, bytes(data))


def write(folder, messages):
    """Write a recording in the order of time."""
    messages = sorted(messages, key=lambda message: message.time)
    folder.mkdir(parents=True)
    kinds = dict.fromkeys((message.topic, message.kind) for message in messages)
    writer = BagWriter(folder, 'mcap', [Topic(*one) for one in kinds], [])
    for message in messages:
        writer.write(message)
    writer.finish()
    return folder


def refine(source, target, *options):
    """Run the command; return its exit code."""
    return main(['refine-bag', str(source), str(target), '--device', 'cpu', *options])


def arrays(folder, ending):
    """Return the images of a topic as arrays."""
    with reading(folder) as bag:
        return [np.frombuffer(m.decoded().data, np.float32).reshape(SHAPE)
                for m in bag.messages() if m.topic.endswith(ending)]


class Watcher(RunningMean):
    """Keeps the frames it was given."""

    frames: list[Frame] = []

    def refine(self, frame):
        """Keep one, and do the rest as before."""
        self.frames.append(frame)
        return super().refine(frame)


@pytest.fixture
def watched(monkeypatch):
    """Return the frames that reach the refiner."""
    monkeypatch.setattr(Watcher, 'frames', [])
    monkeypatch.setattr(refinement, 'DepthRefiner', Watcher)
    return Watcher.frames


ZED = ['/zed/zed_node/rgb/color/rect/image', '/zed/zed_node/depth/depth_registered',
       '/zed/zed_node/depth/camera_info']
ZED_FRAMES = ['zed_left_camera_frame_optical'] * 2


@pytest.mark.parametrize('options', [['--camera', 'zed'], []])  # also where it is guessed
def test_confidence_100_of_a_zed_is_the_worst(tmp_path, options):
    values = np.full(SHAPE, 1, np.float32)
    values[WRONG] = 100
    source = write(tmp_path / 'in', camera(
        frame(wrong=True), ZED, ZED_FRAMES,
        confidence=('/zed/zed_node/confidence/confidence_map', values)))
    assert refine(source, tmp_path / 'out', *options) == 0
    for depth, confidence in zip(arrays(tmp_path / 'out', 'depth_refined/image'),
                                 arrays(tmp_path / 'out', 'refined/confidence'), strict=True):
        # filled from around it: nothing of the wrong 0.7 m
        assert np.isfinite(depth[WRONG]).all() and np.abs(depth[WRONG] - DEPTH).max() < 0.05
        assert confidence[WRONG].max() < 0.5 < np.median(confidence)


def test_an_amplitude_is_guide_and_confidence(tmp_path, watched):
    names = ['/t/amplitude/image_raw', '/t/depth/image_raw', '/t/depth/camera_info']
    source = write(tmp_path / 'in', [
        stored(one.topic, one.kind, one.time, make_header(one.time, 'tof'),
               image_fields(np.full(SHAPE, 250.0, np.float32), '32FC1'))
        if one.topic == names[0] else one
        for one in camera(frame(), names, ['tof', 'tof'])])
    assert refine(source, tmp_path / 'out', '--camera', 'tof') == 0
    assert len(watched) == 3
    # 250 of the 500 counts that mean 1, and of the 256 below which the image lies
    assert watched[0].confidence[5, 5] == 0.5
    assert watched[0].image[5, 5] == int(250 / 256 * 65535)


def test_the_preset_of_a_camera_is_that_of_the_node(tmp_path, watched):
    names = ['/oak/rgb/image_raw', '/oak/stereo/image_raw', '/oak/stereo/camera_info']
    source = write(tmp_path / 'in', camera(frame(), names, ['oak_rgb'] * 2))
    made = []
    plain = refinement._Run.__init__

    def init(self, job, *rest):
        made.append(job)
        plain(self, job, *rest)

    refinement._Run.__init__ = init
    try:
        assert refine(source, tmp_path / 'out', '--camera', 'oak_d') == 0
        assert refine(source, tmp_path / 'other', '--camera', 'oak_d', '--preset', 'realtime',
                      '--set', 'solver.iterations=3', '--input', 'baseline=0.02') == 0
    finally:
        refinement._Run.__init__ = plain
    assert made[0].config.noise.sensor == 'stereo'
    assert made[0].config.cleaning.speckle_area == 30  # of the preset stereo
    assert watched[0].intrinsics.baseline == 0.075
    assert made[1].config.cleaning.speckle_area == 0
    assert made[1].config.solver.iterations == 3
    assert watched[-1].intrinsics.baseline == 0.02


@pytest.mark.parametrize('options, sentence', [
    (['--camera', 'orbbec'], 'camera: expected depth/image_raw, color/image_raw'),
    (['--camera', 'kodak'], 'camera: expected one of azure_kinect, femto'),
    (['--camera', 'l515'], 'camera: expected depth/image_rect_raw'),
])
def test_what_a_preset_does_not_find_is_said(tmp_path, capsys, options, sentence):
    source = write(tmp_path / 'in', camera(frame(), ZED, ZED_FRAMES))
    assert refine(source, tmp_path / 'out', *options) == 2
    assert sentence in capsys.readouterr().err


def test_a_file_of_parameters_is_a_preset_too(tmp_path, capsys, watched):
    source = write(tmp_path / 'in', camera(frame(), ['/a/i', '/a/d', '/a/c'], ['x'] * 2))
    mine = tmp_path / 'mine.yaml'
    mine.write_text('/**:\n  ros__parameters:\n    image_topic: i\n    depth_topic: d\n'
                    '    camera_info_topic: c\n    depth_scale: 0.5\n')
    assert refine(source, tmp_path / 'out', '--camera', str(mine)) == 0
    assert np.nanmedian(watched[0].depth) == pytest.approx(DEPTH / 2, rel=0.01)
    mine.write_text('hello')
    assert refine(source, tmp_path / 'other', '--camera', str(mine)) == 2
    assert 'expected parameters below /**' in capsys.readouterr().err


REALSENSE = ['/camera/camera/color/image_raw', '/camera/camera/depth/image_rect_raw',
             '/camera/camera/depth/camera_info', '/camera/camera/color/camera_info']
REALSENSE_FRAMES = ['camera_color_optical_frame', 'camera_depth_optical_frame']


def test_an_unregistered_pair_is_refused(tmp_path, capsys):
    source = write(tmp_path / 'in', camera(frame(), REALSENSE, REALSENSE_FRAMES))
    assert refine(source, tmp_path / 'out') == NOTHING
    said = capsys.readouterr().out
    assert '0 of 3 frames refined; 3 skipped: image.header.frame_id: expected' in said
    assert "got 'camera_color_optical_frame'" in said
    assert refine(source, tmp_path / 'out') == NOTHING  # complete, and as empty as before


@pytest.mark.parametrize('known', ['tf', 'parameter'])
def test_an_unregistered_pair_is_registered_where_that_is_known(tmp_path, watched, known):
    messages = list(camera(frame(noise=0.0), REALSENSE, REALSENSE_FRAMES))
    options = ['--input', 'depth_in_image=-0.125 0 0 0 0 0 1']
    if known == 'tf':
        options = []
        messages.append(transforms(
            '/tf_static', START, ('camera_link', REALSENSE_FRAMES[1], 0.0, 0.0),
            ('camera_link', REALSENSE_FRAMES[0], 0.125, 0.0)))
    source = write(tmp_path / 'in', messages)
    assert refine(source, tmp_path / 'out', *options) == 0
    # 60 px * 0.125 m / 2.5 m = 3 px: what the depth sees at x is at x - 3 in the image
    np.testing.assert_array_equal(watched[0].image[:, 3:], frame().image[:, :-3])


def test_a_calibration_of_another_frame_is_doubted_once(tmp_path, capsys, watched):
    source = write(tmp_path / 'in', camera(frame(), ZED, [*ZED_FRAMES, 'elsewhere']))
    assert refine(source, tmp_path / 'out') == 0
    said = capsys.readouterr().err
    assert said.count('warning: camera_info.header.frame_id: expected') == 1


def test_one_camera_under_two_names_is_taken_where_asked_for(tmp_path, watched):
    source = write(tmp_path / 'in', camera(frame(), REALSENSE, REALSENSE_FRAMES))
    assert refine(source, tmp_path / 'out', '--input', 'check_frames=false') == 0
    np.testing.assert_array_equal(watched[0].image, frame().image)


def moving():
    """Yield odom -> base at 20 Hz, at 1 rad/s, with the camera 0.5 m ahead of the base."""
    for time in range(START - PERIOD, START + 5 * PERIOD, PERIOD // 2):
        yield transforms('/tf', time + PERIOD // 4, (
            'odom', 'base', 0.0, (time + PERIOD // 4 - START) * 1e-9))
    yield transforms('/tf_static', START, ('base', ZED_FRAMES[0], 0.5, 0.0))


def poses(kind):
    """Yield the same motion as odometry of the base or as pose of the camera."""
    for time in range(START - PERIOD, START + 5 * PERIOD, PERIOD // 2):
        time += PERIOD // 4
        angle = (time - START) * 1e-9
        ahead = (0.5 * np.cos(angle), 0.5 * np.sin(angle), 0.0) if kind == POSE else (0.0,) * 3
        pose = T['geometry_msgs/msg/Pose'](
            T['geometry_msgs/msg/Point'](*map(float, ahead)),
            T['geometry_msgs/msg/Quaternion'](*pose_at(0.0, angle)[1]))
        if kind == POSE:
            message = T[POSE](make_header(time, 'odom'), pose)
        else:
            zero = T['geometry_msgs/msg/Vector3'](0.0, 0.0, 0.0)
            message = T[ODOMETRY](
                make_header(time, 'odom'), 'base',
                T['geometry_msgs/msg/PoseWithCovariance'](pose, np.zeros(36)),
                T['geometry_msgs/msg/TwistWithCovariance'](
                    T['geometry_msgs/msg/Twist'](zero, zero), np.zeros(36)))
        yield Message('/where', kind, time, bytes(TYPES.serialize_cdr(message, kind)))


@pytest.mark.parametrize('options, extra', [
    (['--input', 'fixed_frame=odom'], moving),
    (['--input', 'odometry_topic=/where'], lambda: [*poses(ODOMETRY), *list(moving())[-1:]]),
    (['--input', 'odometry_topic=/where', '--input', 'camera_in_body=0.5 0 0 0 0 0 1'],
     lambda: poses(ODOMETRY)),
    (['--input', 'camera_pose_topic=/where'], lambda: poses(POSE))])
def test_poses_of_a_recording(tmp_path, capsys, watched, options, extra):
    source = write(tmp_path / 'in', [*camera(frame(), ZED, ZED_FRAMES), *extra()])
    assert refine(source, tmp_path / 'out', '--camera', 'zed', *options) == 0
    said = capsys.readouterr().out
    assert '3 of 3 frames refined, 3 with a pose, of which the frames corrected 0' in said
    for number, seen in enumerate(watched):
        angle = number * PERIOD * 1e-9
        # between two poses 50 ms apart; positions are interpolated along the chord:
        # 0.5 m * (1 - cos 0.025) = 0.16 mm off the arc
        np.testing.assert_allclose(
            seen.pose[:3, 3], [0.5 * np.cos(angle), 0.5 * np.sin(angle), 0], atol=2e-4)
        off = np.degrees(np.arctan2(seen.pose[1, 0], seen.pose[0, 0]) - angle)
        assert abs(off) < 0.05


def test_damaged_poses_are_left_out(tmp_path, watched):
    good = list(moving())
    # one cut short, one turned by no quaternion
    damaged = replace(good[0], data=good[0].data[:20], time=START)
    bad = transforms('/tf', START + 1, ('odom', 'base', float('nan'), 0.0))
    source = write(tmp_path / 'in', [*camera(frame(), ZED, ZED_FRAMES), *good, damaged, bad])
    assert refine(source, tmp_path / 'out', '--input', 'fixed_frame=odom') == 0
    assert all(seen.pose is not None for seen in watched)


def test_a_source_of_poses_that_is_not_there_is_refused(tmp_path, capsys):
    source = write(tmp_path / 'in', camera(frame(), ZED, ZED_FRAMES))
    assert refine(source, tmp_path / 'out', '--input', 'odometry_topic=/where') == 2
    assert 'odometry_topic: expected a topic of nav_msgs' in capsys.readouterr().err
    assert refine(source, tmp_path / 'out', '--input', 'odometry_topic=/where',
                  '--input', 'fixed_frame=odom') == 2
    assert 'expected one source of poses' in capsys.readouterr().err


def test_frames_without_a_pose_are_refined_and_counted(tmp_path, capsys, watched):
    source = write(tmp_path / 'in', camera(frame(), ZED, ZED_FRAMES))
    assert refine(source, tmp_path / 'out', '--input', 'fixed_frame=odom') == 0
    assert '3 of 3 frames refined, 0 with a pose,' in capsys.readouterr().out


def write_ros1(path, messages):
    """Write a recording of ROS 1, its tf as before tf2."""
    store = get_typestore(Stores.ROS1_NOETIC)
    for kind in ONCE.values():
        store.register(get_types_from_msg('geometry_msgs/TransformStamped[] transforms', kind))
    with Writer(path) as writer:
        connections = {}
        for message in sorted(messages, key=lambda message: message.time):
            if message.topic not in connections:
                connections[message.topic] = writer.add_connection(
                    message.topic, ONCE.get(message.kind, message.kind), typestore=store)
            writer.write(connections[message.topic], message.time,
                         bytes(TYPES.cdr_to_ros1(message.data, message.kind)))
        text = writer.add_connection('/chatter', 'std_msgs/msg/String', typestore=store)
        writer.write(text, START, b'\x02\x00\x00\x00hi')
    return path


def test_ros_1(tmp_path, capsys, watched):
    source = write_ros1(tmp_path / 'old.bag', [*camera(frame(), ZED, ZED_FRAMES), *moving()])
    assert refine(source, tmp_path / 'out', '--camera', 'zed', '--input', 'fixed_frame=odom') == 0
    said = capsys.readouterr().out
    assert '3 of 3 frames refined, 3 with a pose, of which the frames corrected 0' in said
    assert 'topics of types that are not read: /chatter' in said
    with reading(tmp_path / 'out') as bag:
        assert bag.storage == 'mcap'
        names = {topic.name for topic in bag.topics()}
    assert {*ZED, '/tf', '/zed/zed_node/depth_refined/image'} <= names


def test_a_folder_of_ros_1_bags(tmp_path):
    for name in 'ab':
        write_ros1(tmp_path / f'{name}.bag', camera(frame(), ZED, ZED_FRAMES))
    found, several = recordings([str(tmp_path)])
    assert several and [path.name for path in found] == ['a.bag', 'b.bag']
