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
"""Test the guesses about topics on the names real drivers use."""

from dataclasses import replace

import pytest

from graph_depth_refiner.bags.topics import (
    CAMERA_INFO,
    COMPRESSED,
    DISPARITY,
    FLAT,
    guess,
    IMAGE,
    of_camera,
    Seen,
)
from graph_depth_refiner.config import NodeConfig


def seen(*names):
    """Make topics out of names; the form follows from the name, as drivers have it."""
    topics = []
    for name in names:
        if name.endswith('camera_info'):
            topics.append(Seen(name, CAMERA_INFO, FLAT if 'stereo' in name else ''))
        elif name.endswith('/compressedDepth'):
            topics.append(Seen(name, COMPRESSED, '16UC1; compressedDepth'))
        elif name.endswith('/compressed'):
            topics.append(Seen(name, COMPRESSED, 'rgb8; jpeg compressed bgr8'))
        elif name.endswith('disparity'):
            topics.append(Seen(name, DISPARITY))
        elif 'confidence' in name:
            topics.append(Seen(name, IMAGE, '32FC1'))
        else:
            depth = 'depth' in name or name.startswith('/oak/stereo')
            topics.append(Seen(name, IMAGE, '16UC1' if depth else 'rgb8'))
    return topics


@pytest.mark.parametrize(('names', 'depth', 'image', 'info', 'confidence', 'namespace'), [
    (('/camera/camera/aligned_depth_to_color/image_raw', '/camera/camera/color/image_raw',
      '/camera/camera/depth/image_rect_raw', '/camera/camera/aligned_depth_to_color/camera_info',
      '/camera/camera/color/camera_info', '/camera/camera/depth/camera_info'),
     '/camera/camera/aligned_depth_to_color/image_raw', '/camera/camera/color/image_raw',
     '/camera/camera/aligned_depth_to_color/camera_info', '', '/camera/camera'),
    (('/zed/zed_node/depth/depth_registered', '/zed/zed_node/left/image_rect_color',
      '/zed/zed_node/right/image_rect_color', '/zed/zed_node/confidence/confidence_map',
      '/zed/zed_node/depth/camera_info', '/zed/zed_node/left/camera_info'),
     '/zed/zed_node/depth/depth_registered', '/zed/zed_node/left/image_rect_color',
     '/zed/zed_node/depth/camera_info', '/zed/zed_node/confidence/confidence_map',
     '/zed/zed_node'),
    # OAK, driver v2: depth without distortion belongs to the rectified image
    (('/oak/stereo/image_raw', '/oak/rgb/image_raw', '/oak/rgb/image_rect',
      '/oak/rgb/camera_info', '/oak/stereo/camera_info'),
     '/oak/stereo/image_raw', '/oak/rgb/image_rect', '/oak/stereo/camera_info', '', '/oak'),
    (('/camera/infra/image_rect_raw', '/camera/depth/image_rect_raw', '/camera/color/image_raw',
      '/camera/confidence/image_rect_raw', '/camera/depth/camera_info',
      '/camera/infra/camera_info'),
     '/camera/depth/image_rect_raw', '/camera/infra/image_rect_raw',
     '/camera/depth/camera_info', '/camera/confidence/image_rect_raw', '/camera'),
    (('/rgbd_camera/depth_image', '/rgbd_camera/image', '/rgbd_camera/camera_info'),
     '/rgbd_camera/depth_image', '/rgbd_camera/image', '/rgbd_camera/camera_info', '',
     '/rgbd_camera'),
    (('/depth', '/rgb', '/camera_info'), '/depth', '/rgb', '/camera_info', '', ''),
    (('/visionary/depth', '/visionary/intensity', '/visionary/state', '/visionary/camera_info'),
     '/visionary/depth', '/visionary/intensity', '/visionary/camera_info', '', '/visionary'),
    (('/kinect2/qhd/image_depth_rect', '/kinect2/qhd/image_color_rect',
      '/kinect2/sd/image_depth_rect', '/kinect2/sd/image_color_rect', '/kinect2/qhd/camera_info',
      '/kinect2/sd/camera_info'),
     '/kinect2/qhd/image_depth_rect', '/kinect2/qhd/image_color_rect',
     '/kinect2/qhd/camera_info', '', '/kinect2/qhd'),
    (('/zed/zed_node/depth/depth_registered', '/zed/zed_node/left/color/rect/image',
      '/zed/zed_node/right/color/rect/image', '/zed/zed_node/depth/camera_info'),
     '/zed/zed_node/depth/depth_registered', '/zed/zed_node/left/color/rect/image',
     '/zed/zed_node/depth/camera_info', '', '/zed/zed_node'),
    (('/oak/stereo/image_raw', '/oak/rgb/image_raw', '/oak/stereo/camera_info'),
     '/oak/stereo/image_raw', '/oak/rgb/image_raw', '/oak/stereo/camera_info', '', '/oak'),
    (('/stereo/disparity', '/stereo/left/image_rect', '/stereo/left/camera_info'),
     '/stereo/disparity', '/stereo/left/image_rect', '/stereo/left/camera_info', '', '/stereo'),
    (('/camera/depth/image/compressedDepth', '/camera/rgb/image_color/compressed',
      '/camera/rgb/camera_info'),
     '/camera/depth/image/compressedDepth', '/camera/rgb/image_color/compressed',
     '/camera/rgb/camera_info', '', '/camera'),
    (('/depth', '/image', '/confidence', '/camera_info'),
     '/depth', '/image', '/camera_info', '/confidence', ''),
    (('/my/depth_thing', '/other/photo', '/calibration/camera_info'),
     '/my/depth_thing', '/other/photo', '/calibration/camera_info', '', ''),
])
def test_known_drivers(names, depth, image, info, confidence, namespace):
    topics = guess(seen(*names))
    assert (topics.depth, topics.image, topics.camera_info, topics.confidence) == (
        depth, image, info, confidence)
    assert topics.namespace == namespace


@pytest.mark.parametrize('form', ['mono16', '16UC1', '32FC1'])
def test_light_that_came_back_is_an_image_and_no_depth(form):
    depth, amplitude = Seen('/tof/range', IMAGE, '32FC1'), Seen('/tof/amplitude', IMAGE, form)
    topics = guess([depth, amplitude, *seen('/tof/camera_info')])
    assert (topics.depth, topics.image) == ('/tof/range', '/tof/amplitude')


def test_the_image_of_the_frame_of_the_depth_is_taken():
    topics = guess([
        Seen('/a/range', IMAGE, '16UC1', 'left'), Seen('/a/one', IMAGE, 'rgb8', 'right'),
        Seen('/a/two', IMAGE, 'rgb8', 'left'), Seen('/a/camera_info', CAMERA_INFO)])
    assert topics.image == '/a/two'


def test_a_png_of_depth_is_depth():
    topics = guess([
        Seen('/a/depth/compressed', COMPRESSED, '16UC1; png compressed '),
        Seen('/a/image/compressed', COMPRESSED, 'rgb8; jpeg compressed bgr8'),
        Seen('/a/camera_info', CAMERA_INFO)])
    assert topics.depth == '/a/depth/compressed'


def test_the_confidence_of_a_known_driver_has_a_meaning():
    names = ('/z/depth/depth_registered', '/z/rgb/color/rect/image', '/z/depth/camera_info',
             '/z/confidence/confidence_map')
    assert guess(seen(*names)).meaning == 'zed'
    assert guess(seen(*names, '/my/confidence'), confidence='/my/confidence').meaning == ''
    assert guess(seen(*names[:3])).meaning == ''


def test_the_calibration_of_an_image_of_another_frame():
    depth, image = Seen('/c/depth/image_raw', IMAGE, '16UC1', 'depth'), Seen(
        '/c/color/image_raw', IMAGE, 'rgb8', 'color')
    infos = seen('/c/depth/camera_info', '/c/color/camera_info')
    assert guess([depth, image, *infos]).image_info == '/c/color/camera_info'
    assert guess([depth, image, *infos[1:]]).image_info == ''  # it is that of the depth


def test_two_cameras_of_one_preset_are_told_apart_by_name():
    config = NodeConfig(image_topic='color/image_raw', depth_topic='depth/image_raw',
                        camera_info_topic='color/camera_info', use_confidence='never')
    with pytest.raises(ValueError, match='of one camera in the recording, got 2 cameras in'):
        of_camera(seen(*TWO_CAMERAS), config)
    named = {'image': '/b/color/image_raw', 'depth': '/b/depth/image_raw'}
    other = replace(config, camera_info_topic='b/color/camera_info')
    found = of_camera(seen(*TWO_CAMERAS[2:]), other, **named)
    assert found['camera_info'] == '/b/color/camera_info'
    assert of_camera(seen(*TWO_CAMERAS[3:]), config) == {
        'depth': '/b/depth/image_raw', 'image': '/b/color/image_raw',
        'camera_info': '/b/color/camera_info'}


def test_the_topics_of_a_preset_by_other_transports():
    config = NodeConfig(image_topic='rgb/image', depth_topic='depth/image',
                        camera_info_topic='rgb/camera_info')
    found = of_camera(seen('/a/depth/image/compressedDepth', '/a/rgb/image/compressed',
                           '/a/rgb/camera_info', '/a/confidence'), config)
    assert found == {
        'depth': '/a/depth/image/compressedDepth', 'image': '/a/rgb/image/compressed',
        'camera_info': '/a/rgb/camera_info', 'confidence': '/a/confidence'}


def test_raw_is_preferred_to_compressed():
    topics = guess(seen(
        '/c/depth/image/compressedDepth', '/c/depth/image', '/c/rgb/image_color',
        '/c/rgb/image_color/compressed', '/c/rgb/camera_info'))
    assert (topics.depth, topics.image) == ('/c/depth/image', '/c/rgb/image_color')


TWO_CAMERAS = (
    '/a/depth/image_raw', '/a/color/image_raw', '/a/color/camera_info',
    '/b/depth/image_raw', '/b/color/image_raw', '/b/color/camera_info')


def test_two_cameras_are_listed():
    with pytest.raises(ValueError, match='got depth /a/depth/image_raw or /b/depth/image_raw'):
        guess(seen(*TWO_CAMERAS))


def test_two_cameras_can_be_told_apart():
    topics = guess(seen(*TWO_CAMERAS), depth='/b/depth/image_raw')
    assert (topics.image, topics.camera_info) == ('/b/color/image_raw', '/b/color/camera_info')


@pytest.mark.parametrize(('names', 'words'), [
    (('/image', '/camera_info'), 'expected a depth topic, got /camera_info, /image'),
    (('/depth', '/camera_info'), 'expected an image topic'),
    (('/depth', '/image'), 'expected a camera_info beside /depth, got no topics'),
    ((), 'expected a depth topic, got no topics'),
])
def test_what_is_missing_is_said(names, words):
    with pytest.raises(ValueError, match=words):
        guess(seen(*names))


def test_a_topic_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="got '/nowhere'"):
        guess(seen('/depth', '/image', '/camera_info'), depth='/nowhere')


@pytest.mark.parametrize(('wanted', 'words'), [
    ({'depth': '/image', 'image': '/image'}, 'depth: expected a topic of its own, got /image, '
     'the image too'),
    ({'depth': '/depth', 'confidence': '/depth'}, 'depth: expected a topic of its own'),
    ({'depth': '/image'}, 'expected an image topic'),  # the only one is depth by now
    ({'camera_info': '/depth'}, 'camera_info: expected a topic of sensor_msgs/msg/CameraInfo'),
])
def test_one_topic_has_one_role(wanted, words):
    with pytest.raises(ValueError, match=words):
        guess(seen('/depth', '/image', '/camera_info'), **wanted)


def test_refined_topics_are_no_input():
    topics = guess(seen(
        '/depth', '/image', '/camera_info', '/depth_refined/image', '/normals/image_color'))
    assert (topics.depth, topics.image) == ('/depth', '/image')
