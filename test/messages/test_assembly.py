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
"""One set of messages to a frame, and the fields of all outputs."""

from dataclasses import replace

from node_bench import frame
import numpy as np
import pytest
from sensor_msgs.msg import Image
from std_msgs.msg import Header

from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.frame import Refined, Status
from graph_depth_refiner.lab.benchmarks.feeder import messages
from graph_depth_refiner.messages.assembly import Assembler, Inputs, output_topics, OUTPUTS
from graph_depth_refiner.ros.messages import filled, message_type


def inputs(of=None, **changes):
    """Return the messages of a frame, some of them changed."""
    found = messages(of or frame())
    found.update(changes)
    return Inputs(**found)


def assembled(given, **settings):
    """Assemble with these settings."""
    return Assembler().assemble(given, NodeConfig().with_values(**settings))


def test_a_frame_comes_back():
    result = assembled(inputs())
    expected = frame()
    assert result.encoding == '16UC1'
    np.testing.assert_allclose(result.frame.depth, expected.depth, atol=0.0006)
    assert np.array_equal(result.frame.image, expected.image)
    assert np.array_equal(result.frame.confidence, expected.confidence)
    assert result.frame.intrinsics == expected.intrinsics


def test_without_confidence_it_is_derived():
    confidence = assembled(inputs(confidence=None)).frame.confidence
    assert (confidence[frame().depth == 0] == 0).all()
    assert np.median(confidence) == 1


def test_preset_none_ignores_what_came():
    given = inputs()
    given.confidence.data = bytes(len(given.confidence.data))
    assert not assembled(given).frame.confidence.any()
    assert assembled(given, **{'confidence.preset': 'none'}).frame.confidence.any()


def test_a_larger_image_is_brought_to_the_size_of_the_depth():
    large = messages(frame(128, 96))['image']
    assert assembled(inputs(image=large)).frame.image.shape == (48, 64, 3)


def grey16(top):
    """Return a mono16 image with values up to a top."""
    pixels = np.linspace(0, top, 48 * 64).astype(np.uint16).reshape(48, 64)
    return Image(height=48, width=64, encoding='mono16', step=128, data=pixels.tobytes(),
                 header=messages(frame())['image'].header)


def test_an_infrared_image_of_few_bits_has_contrast():
    image = assembled(inputs(image=grey16(1023))).frame.image
    assert image.dtype == np.uint16
    assert image.max() == 1023 << 6  # of 65535


def test_the_range_of_a_live_stream_never_becomes_smaller():
    live, recorded = Assembler(steady=True), Assembler()

    def white(assembler, top):
        return assembler.assemble(inputs(image=grey16(top)), NodeConfig()).frame.image.max()

    assert [white(live, top) for top in (400, 1000, 400)] == [400 << 7, 1000 << 6, 400 << 6]
    assert [white(recorded, top) for top in (1000, 400)] == [1000 << 6, 400 << 7]


def test_confidence_of_another_size_is_refused():
    small = messages(frame(32, 24))['confidence']
    with pytest.raises(ValueError, match='confidence: expected the size of the depth 64x48'):
        assembled(inputs(confidence=small))


def test_undistorted_as_a_whole():
    given = inputs()
    given.camera_info.d = [0.3, 0.0, 0.0, 0.0, 0.0]  # reaches beyond the edges
    with pytest.raises(ValueError, match='camera_info: expected no distortion'):
        assembled(given)
    result = assembled(given, distortion='undistort')
    taken = assembled(given, distortion='rectified')
    for name in ('image', 'depth', 'confidence'):
        straight, bent = getattr(result.frame, name), getattr(taken.frame, name)
        assert straight.shape == bent.shape
        assert not np.array_equal(straight, bent)
    fields = OUTPUTS['depth_refined/camera_info'].fields(result, None)
    assert not any(fields['d'])
    assert list(OUTPUTS['depth_refined/camera_info'].fields(taken, None)['d'])[0] == 0.3


def test_known_baseline_reaches_the_camera():
    assert assembled(inputs(), baseline=0.05).frame.intrinsics.baseline == 0.05


@pytest.mark.parametrize('encoding, dtype', [('16UC1', np.uint16), ('32FC1', np.float32)])
def test_infrared_and_amplitude_guide(encoding, dtype):
    grey = frame().image[..., 0].astype(dtype) * 4  # ten bits
    image = Image(height=48, width=64, encoding=encoding, step=64 * grey.itemsize,
                  data=grey.tobytes())
    assembler = Assembler(steady=True)
    for times in (1, 0.5):  # a darker scene does not change the range
        image.data = (grey * times).astype(dtype).tobytes()
        found = assembler.assemble(inputs(image=image), NodeConfig()).frame.image
        np.testing.assert_allclose(found / 65535, grey * times / 1024, atol=0.002)


def test_an_image_of_another_camera_is_registered():
    # twice as fine, 1/30 m to the right: 60 px / 30 / 2 m is 1 px of the depth
    fine = np.repeat(np.repeat(frame().image, 2, axis=0), 2, axis=1)
    image = Image(height=96, width=128, encoding='rgb8', step=384, data=fine.tobytes())
    own = messages(frame())['camera_info']
    own.height, own.width = 96, 128
    own.k[0], own.k[2], own.k[4], own.k[5] = 120.0, 64.5, 120.0, 48.5
    own.p = [0.0] * 12
    motion = np.eye(4)
    motion[0, 3] = -1 / 30
    depth = np.full((48, 64), 2.0, np.float32)
    given = inputs(of=replace(frame(), depth=depth), image=image, image_info=own,
                   image_motion=motion)
    found = assembled(given).frame.image
    np.testing.assert_array_equal(found[:, 1:], frame().image[:, :-1])
    own.width = 127
    with pytest.raises(ValueError, match='image_info: expected the size of the image 128x96'):
        assembled(given)


def test_the_unit_of_the_depth():
    found = assembled(inputs(), depth_scale=0.0001).frame.depth
    np.testing.assert_allclose(found, frame().depth / 10, atol=0.0006)


def test_doubts_are_about_frames_of_reference():
    given = inputs()
    assert not given.doubts()
    given.camera_info.header = Header(frame_id='elsewhere')
    doubt, = given.doubts()
    assert doubt.startswith("camera_info.header.frame_id: expected 'camera_optical_frame' as of")


def test_every_output_can_be_filled():
    result = assembled(inputs())
    normals = np.zeros((48, 64, 3), np.float32)
    refined = Refined(
        result.frame.depth, normals, result.frame.confidence, np.ones((48, 64), np.uint8),
        Status.REFINED, 1, 0.0)
    for topic in output_topics(disparity=False):
        output = OUTPUTS[topic]
        message = filled(
            message_type(output.package, output.type_name), result.inputs.depth.header,
            output.fields(result, refined))
        assert (message.width, message.height) == (64, 48)
        assert message.header == result.inputs.depth.header
