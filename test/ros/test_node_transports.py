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
"""Compressed images, compressed depth and disparity over DDS."""

import struct

import cv2
from node_bench import Bench, frame, NodeProcess, parameters
import numpy as np
import pytest
import rclpy
from rclpy.time import Time
from sensor_msgs.msg import CameraInfo, CompressedImage, Image
from stereo_msgs.msg import DisparityImage

from graph_depth_refiner.lab.benchmarks.feeder import messages
from graph_depth_refiner.messages.assembly import output_topics
from graph_depth_refiner.messages.conversions import (
    decode_compressed_depth,
    decode_compressed_image,
    decode_depth,
    decode_disparity,
    decode_image,
)
from graph_depth_refiner.messages.outgoing import image_fields
from graph_depth_refiner.ros.messages import filled

BASELINE = 1.0  # metres: 30 px at 2 m
KNOWN = frame().depth > 0  # the hole is too wide to be filled


class TransportBench(Bench):
    """Sends the usual frame in another form."""

    def send(self, **_):
        stamp = self.now()
        found = messages(frame())
        header = found['depth'].header
        header.stamp = Time(nanoseconds=stamp).to_msg()
        metres = decode_depth(found['depth'], 10 ** 6)[0]
        picture = cv2.imencode('.jpg', frame().image)[1].tobytes()
        png = cv2.imencode('.png', (metres * 1000 + 0.5).astype(np.uint16))[1].tobytes()
        with np.errstate(divide='ignore'):
            disparity = np.where(metres > 0, 60 * BASELINE / metres, -1).astype(np.float32)
        noise = np.random.default_rng(1).normal(0, 0.3, disparity.shape)  # pixels, as of stereo
        disparity[disparity > 0] += noise[disparity > 0].astype(np.float32)
        ready = {
            'camera_info': found['camera_info'], 'image': found['image'],
            'image/compressed': CompressedImage(
                header=header, format='rgb8; jpeg compressed bgr8', data=picture),
            'depth/compressedDepth': CompressedImage(
                header=header, format='16UC1; compressedDepth png',
                data=struct.pack('<iff', 0, 0, 0) + png),
            'disparity': DisparityImage(
                header=header, image=filled(Image, header, image_fields(disparity, '32FC1')),
                f=60.0, t=BASELINE, min_disparity=0.0, max_disparity=64.0),
        }
        for topic, publisher in self.publishers.items():
            ready[topic].header.stamp = header.stamp
            publisher.publish(ready[topic])
        return stamp


@pytest.fixture
def started(request):
    """Start a node with settings, and a bench with inputs and outputs."""
    settings, inputs, outputs = request.param
    rclpy.init()
    process = NodeProcess(*parameters(**settings))
    bench = TransportBench(inputs=inputs, outputs=outputs)
    yield bench
    bench.close()
    rclpy.try_shutdown()
    assert process.end()[0] == 0
    process.log.unlink()


@pytest.mark.parametrize('started', [(
    {'image_transport': 'compressed', 'depth_image_transport': 'compressedDepth'},
    {'image/compressed': CompressedImage, 'depth/compressedDepth': CompressedImage,
     'camera_info': CameraInfo}, ['depth_refined/image'])], indirect=True)
def test_compressed(started):
    answer = started.refines()
    assert answer.encoding == '16UC1'
    depth = decode_depth(answer, 10 ** 6)[0]
    np.testing.assert_allclose(depth[KNOWN], 2, atol=0.1)
    assert (depth[~KNOWN] == 0).all()


@pytest.mark.parametrize('started', [(
    {'compressed_outputs': True, 'depth_image_transport': 'compressedDepth'},
    {'image': Image, 'depth/compressedDepth': CompressedImage, 'camera_info': CameraInfo},
    [topic for base in ('depth_refined/image', 'depth_refined/provenance', 'normals/image_color')
     for topic in output_topics(False, compressed=True) if topic.startswith(base)])],
    indirect=True)
def test_compressed_outputs(started):
    found = started.refines('normals/image_color/compressed')
    stamp = Time.from_msg(found.header.stamp).nanoseconds
    started.wait_for(lambda: all(stamp in heard for heard in started.heard.values()), 'the rest')
    answers = {topic: heard[stamp] for topic, heard in started.heard.items()}
    assert len(answers) == 6
    np.testing.assert_array_equal(
        decode_compressed_depth(answers['depth_refined/image/compressedDepth'], 10 ** 6)[0],
        decode_depth(answers['depth_refined/image'], 10 ** 6)[0])
    for base, mean in ('depth_refined/provenance', 0), ('normals/image_color', 3):  # of 255
        packed = decode_compressed_image(answers[f'{base}/compressed'], 10 ** 6)
        plain = decode_image(answers[base], 10 ** 6)
        assert np.abs(packed.astype(int) - plain).mean() <= mean


@pytest.mark.parametrize('started', [(
    {'input_kind': 'disparity'},
    {'image': Image, 'disparity': DisparityImage, 'camera_info': CameraInfo},
    ['disparity_refined', 'depth_refined/image'])], indirect=True)
def test_disparity(started):
    answer = started.refines('disparity_refined')
    depth, baseline = decode_disparity(answer, 10 ** 6)
    assert baseline == pytest.approx(BASELINE)
    assert answer.header == answer.image.header
    np.testing.assert_allclose(depth[KNOWN], 2, atol=0.1)
    assert (depth[~KNOWN] == 0).all()
    assert started.refines().encoding == '32FC1'
