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

import pytest

from graph_depth_refiner.bags.topics import (
    CAMERA_INFO,
    COMPRESSED,
    DISPARITY,
    guess,
    IMAGE,
    Seen,
)


def seen(*names):
    """Make topics out of names; the form follows from the name, as drivers have it."""
    topics = []
    for name in names:
        if name.endswith('camera_info'):
            topics.append(Seen(name, CAMERA_INFO))
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
