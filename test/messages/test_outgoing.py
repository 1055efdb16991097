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
"""Refined arrays as the fields of messages."""

from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
from sensor_msgs.msg import Image, PointCloud2
from sensor_msgs_py import point_cloud2
from std_msgs.msg import Header
from stereo_msgs.msg import DisparityImage

from graph_depth_refiner.config import Points
from graph_depth_refiner.frame import Frame, Intrinsics, Refined, Status
from graph_depth_refiner.messages import kernels, outgoing, outgoing_numpy
from graph_depth_refiner.messages.conversions import decode_depth, decode_disparity
from graph_depth_refiner.ros.messages import filled, KeptMessage

CAMERA = Intrinsics(fx=2.0, fy=4.0, cx=1.0, cy=0.5)
HEADER = Header(frame_id='optical')


def refined(depth, normals=None):
    """Return a result with this depth, seen straight on unless said otherwise."""
    depth = np.array(depth, np.float32)
    if normals is None:
        normals = np.broadcast_to(np.float32([0, 0, -1]), (*depth.shape, 3)).copy()
        normals[np.isnan(depth)] = np.nan
    return Refined(
        depth, normals, np.ones_like(depth), np.ones(depth.shape, np.uint8), Status.REFINED, 1, 0)


@pytest.mark.parametrize('encoding, expected', [
    ('16UC1', [1.234, 0, 0, 0, 65.535]), ('mono16', [1.234, 0, 0, 0, 65.535]),
    ('32FC1', [1.2344, np.nan, 70, np.inf, 65.535]),
    ('64FC1', [1.2344, np.nan, 70, np.inf, 65.535])])
def test_depth_in_the_encoding_that_came_in(encoding, expected):
    depth = np.array([[1.2344, np.nan, 70, np.inf, 65.535]], np.float32)
    message = filled(Image, HEADER, outgoing.depth_fields(depth, encoding))
    back, told = decode_depth(message, 100)
    assert told == encoding
    assert message.header == HEADER
    np.testing.assert_allclose(back, [expected], rtol=1e-6)


def test_a_strided_array_is_made_contiguous():
    array = np.arange(24, dtype=np.uint8).reshape(4, 6)[:, ::2]
    fields = outgoing.image_fields(array, 'mono8')
    assert fields['step'] == 3
    assert fields['data'].tolist() == array.ravel().tolist()


def test_colours_of_normals():
    # a wall ahead is blue, one facing left red-less, a floor green, and nothing black
    normals = np.array([[[0, 0, -1], [-1, 0, 0], [0, -1, 0], [np.nan] * 3]], np.float32)
    assert outgoing.normal_colors(normals)[0].tolist() == [
        [128, 128, 255], [0, 128, 128], [128, 255, 128], [0, 0, 0]]


def test_cloud_is_read_by_others():
    frame = Frame(
        np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8), np.ones((1, 2), np.float32), CAMERA)
    message = filled(
        PointCloud2, HEADER, outgoing.cloud_fields(frame, refined([[2.0, np.nan]])))
    points = point_cloud2.read_points(message)
    assert points.dtype.names == (
        'x', 'y', 'z', 'rgb', 'normal_x', 'normal_y', 'normal_z', 'curvature')
    # x = (0 - 1) / 2 * 2 m, y = (0 - 0.5) / 4 * 2 m
    assert points[0].tolist()[:3] == (-1, -0.25, 2)
    assert points['rgb'].view(np.uint32).tolist() == [0x010203, 0x040506]
    assert np.isnan(points[1].tolist()[0])
    assert (message.height, message.width, message.row_step) == (1, 2, 64)
    assert not message.is_dense


def test_dense_only_where_all_is_known():
    frame = Frame(np.zeros((2, 2), np.uint8), np.ones((2, 2), np.float32), CAMERA)
    assert outgoing.cloud_fields(frame, refined(np.ones((2, 2))))['is_dense']
    lacking = refined(np.ones((2, 2)))
    lacking.normals[0, 0] = np.nan
    assert not outgoing.cloud_fields(frame, lacking)['is_dense']


@pytest.fixture
def variants():
    """Return the compiled kernels and the reference."""
    pytest.importorskip('numba')
    return kernels.numba_kernels(), kernels.numpy_kernels()


def unit_normals():
    """Return random normals with unknown ones."""
    normals = np.random.default_rng(0).normal(size=(7, 9, 3)).astype(np.float32)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    normals[2, 3:6] = np.nan
    return normals


@pytest.mark.parametrize('step', [1, 2, 3, 10])
@pytest.mark.parametrize('count', [3, 4, 8])
def test_both_clouds_agree(variants, count, step):
    rng = np.random.default_rng(0)
    depth = rng.uniform(1, 3, (7, 9)).astype(np.float32)
    colors = rng.integers(0, 2 ** 32, (7, 9), np.uint32)
    camera = np.float32([5, 6, 4, 3])
    shape = (-(-7 // step), -(-9 // step), count)
    clouds = []
    for variant in variants:
        points = np.full(shape, 77, np.float32)
        variant.cloud_points(
            depth, unit_normals(), colors, camera, step, points, points.view(np.uint32))
        clouds.append(points)
    np.testing.assert_allclose(clouds[0], clouds[1], atol=1e-6)
    assert not (clouds[0] == 77).any()


@pytest.mark.parametrize('count', [3, 8])
def test_both_clouds_agree_on_what_is_known(variants, count):
    depth, normals = np.ones((4, 5), np.float32), np.ones((4, 5, 3), np.float32)
    points = np.empty((4, 5, count), np.float32)
    colors, camera = np.zeros((4, 5), np.uint32), np.ones(4, np.float32)

    def known():
        found = {bool(variant.cloud_points(
            depth, normals, colors, camera, 1, points, points.view(np.uint32)))
            for variant in variants}
        assert len(found) == 1
        return found.pop()

    assert known()
    normals[3, 4] = np.nan
    assert known() == (count == 3)  # who wants no normal misses none
    normals[3, 4] = 1
    for value in (np.nan, np.inf):
        depth[0, 0] = value
        assert not known()


@pytest.mark.parametrize('fields, decimation, expected', [
    ('xyz', 1, (12, 2, 3)), ('xyzrgb', 1, (16, 2, 3)), ('all', 2, (32, 1, 2))])
def test_fields_and_decimation_of_the_cloud(fields, decimation, expected):
    image = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    depth = np.float32([[1, 2, 3], [4, 5, 6]])
    message = filled(PointCloud2, HEADER, outgoing.cloud_fields(
        Frame(image, depth, CAMERA), refined(depth), Points(fields, decimation)))
    assert (message.point_step, message.height, message.width) == expected
    points = point_cloud2.read_points(message)
    assert len(points.dtype.names) == message.point_step // 4
    kept = depth[::decimation, ::decimation]
    assert points['z'].tolist() == kept.ravel().tolist()
    assert points['x'][-1] == kept[-1, -1] * (2 - 1) / 2  # the last column, x = (2 - cx) z / fx
    if fields != 'xyz':
        # the pixel of the last point is the last of its row: 0x060708 or 0x0F1011
        assert points['rgb'].view(np.uint32)[-1] == (0x0F1011 if decimation == 1 else 0x060708)


def test_a_kept_message_is_as_a_new_one_and_keeps_its_memory():
    rng = np.random.default_rng(0)
    kept, memory = KeptMessage(Image), set()
    for shape in ((4, 5), (4, 5), (6, 3), (6, 3)):
        depth = rng.uniform(1, 3, shape).astype(np.float32)
        for encoding in ('16UC1', '32FC1'):
            header = Header(frame_id=str(rng.integers(100)))
            message = kept.filled(header, partial(outgoing.depth_fields, depth, encoding))
            assert message == filled(Image, header, outgoing.depth_fields(depth, encoding))
    for _ in range(2):
        message = kept.filled(HEADER, partial(outgoing.depth_fields, depth, '32FC1'))
        memory.add(message.data.buffer_info())
    assert len(memory) == 1


def test_a_kept_disparity_and_a_kept_cloud():
    source = DisparityImage(f=100.0, t=0.5, min_disparity=4.0, max_disparity=9.0)
    depth = np.float32([[5.0, 10.0, np.nan]])
    kept = KeptMessage(DisparityImage)
    for _ in range(2):
        message = kept.filled(HEADER, partial(outgoing.disparity_fields, depth, source))
        assert message == filled(
            DisparityImage, HEADER, outgoing.disparity_fields(depth, source))
    cloud, frame = KeptMessage(PointCloud2), Frame(np.zeros((2, 2), np.uint8), np.ones(
        (2, 2), np.float32), CAMERA)
    for config in (Points(), Points('xyz'), Points()):
        given = frame, refined(np.ones((2, 2))), config
        message = cloud.filled(HEADER, partial(outgoing.cloud_fields, *given))
        assert message == filled(PointCloud2, HEADER, outgoing.cloud_fields(*given))


def test_both_millimetres_agree(variants):
    depth = np.random.default_rng(0).uniform(0, 80, (7, 9)).astype(np.float32)
    depth[0, :4] = np.inf, 65.5354, 65.5356, np.nan
    found = np.full((2, 7, 9), 77, np.uint16)
    for variant, stored in zip(variants, found):
        variant.millimetres(depth, stored)
    assert np.array_equal(*found)


def test_both_colours_of_normals_agree(variants):
    found = np.full((2, 7, 9, 3), 77, np.uint8)
    for variant, colors in zip(variants, found):
        variant.normal_colors(unit_normals(), colors)
    assert np.array_equal(*found)


@pytest.mark.parametrize('missing', [True, False])
def test_numpy_serves_where_numba_is_missing(monkeypatch, missing):
    monkeypatch.setattr(kernels, 'find_spec', lambda name: None if missing else find_spec(name))
    chosen = kernels.kernels.__wrapped__()
    assert chosen == (kernels.numpy_kernels() if missing else kernels.numba_kernels())


def test_curvature_of_a_plane_and_of_a_ridge():
    normals = np.zeros((5, 6, 3), np.float32)
    normals[..., 2] = -1
    assert not outgoing_numpy.curvature(normals).any()
    normals[:, 3:] = [0, -1, 0]
    # beside the ridge three of nine normals differ by 90 degrees: 1 - |(0, 3, 6)| / 9
    assert outgoing_numpy.curvature(normals)[2, 2] == pytest.approx(1 - np.hypot(3, 6) / 9)


@pytest.mark.parametrize('image, expected', [
    (np.full((1, 1), 5, np.uint8), 0x050505),
    (np.full((1, 1), 5 << 8, np.uint16), 0x050505),
    (np.full((1, 1, 3), (1, 0.5, 0), np.float32), 0xFF7F00),
])
def test_colours_of_any_image(image, expected):
    assert outgoing.packed_colors(image)[0, 0] & 0xFFFFFF == expected


def test_disparity_like_its_source():
    source = DisparityImage(f=100.0, t=0.5, min_disparity=4.0, max_disparity=9.0)
    fields = outgoing.disparity_fields(np.array([[5.0, 10.0, np.nan]], np.float32), source)
    message = filled(DisparityImage, HEADER, fields)
    assert (message.min_disparity, message.max_disparity) == (4, 10)
    assert message.header == message.image.header == HEADER
    np.testing.assert_allclose(decode_disparity(message, 100)[0], [[5, 10, 0]])
