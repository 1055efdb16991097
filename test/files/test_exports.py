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
"""Test that written maps and clouds read back as they were."""

import numpy as np
import pytest

from graph_depth_refiner.files.exports import write_cloud, write_depth, write_normals
from graph_depth_refiner.files.reading import read_image, read_map
from graph_depth_refiner.frame import Intrinsics

NAN = np.float32(np.nan)
DEPTH = np.array([[1.0, 2.5, NAN], [0.25, 4.125, 3.0]], np.float32)
# x right, y down, z away: one towards the camera, one to the left, one unknown
NORMALS = np.array([[[0, 0, -1]] * 3, [[-1, 0, 0], [0, -1, 0], [NAN] * 3]], np.float32)


@pytest.mark.parametrize('suffix', ['png', 'npy', 'pfm', 'exr'])
def test_depth_reads_back(tmp_path, suffix):
    if suffix == 'exr':
        pytest.importorskip('OpenEXR')
    path = tmp_path / f'depth.{suffix}'
    write_depth(path, DEPTH, 1000.0)
    np.testing.assert_allclose(read_map(path, 1000.0), DEPTH, rtol=1e-6)


def test_depth_that_no_png_can_hold_ends_at_its_limit(tmp_path):
    write_depth(tmp_path / 'far.png', np.array([[100.0, np.inf]], np.float32), 1000.0)
    # 16 bit of millimetres end at 65.535 m; inf is unknown
    np.testing.assert_allclose(read_map(tmp_path / 'far.png', 1000.0), [[65.535, NAN]])


def test_normals_read_back_from_png(tmp_path):
    write_normals(tmp_path / 'normals.png', NORMALS)
    counts = read_image(tmp_path / 'normals.png')
    # (n + 1) / 2 * 65535; 0 becomes 1 because 0 marks the unknown
    assert counts[0, 0].tolist() == [32768, 32768, 1]
    assert counts[1, 0].tolist() == [1, 32768, 32768]
    assert counts[1, 2].tolist() == [0, 0, 0]


def test_unknown_format_is_refused(tmp_path):
    with pytest.raises(ValueError, match='expected one of png, npy, pfm, exr, got .bmp'):
        write_depth(tmp_path / 'depth.bmp', DEPTH, 1000.0)


@pytest.mark.parametrize('suffix', ['ply', 'pcd'])
def test_cloud_is_organised_and_exact(tmp_path, suffix):
    path = tmp_path / f'cloud.{suffix}'
    colors = np.zeros((2, 3, 3), np.uint8)
    colors[1, 1] = 10, 20, 30
    write_cloud(path, DEPTH, NORMALS, colors, Intrinsics(2.0, 4.0, 1.0, 0.0))
    header, _, body = path.read_bytes().partition(
        b'end_header\n' if suffix == 'ply' else b'DATA binary\n')
    floats = np.frombuffer(body, '<f4').reshape(2, 3, 7)
    # pixel (x, y) = (2, 1) at 3 m: X = (2 - 1) / 2 * 3 = 1.5, Y = (1 - 0) / 4 * 3 = 0.75
    assert floats[1, 2, :3].tolist() == [1.5, 0.75, 3.0]
    assert np.isnan(floats[0, 2, :3]).all()
    assert floats[1, 0, 3:6].tolist() == [-1, 0, 0]
    assert list(body[4 * 28 + 24:4 * 28 + 28]) == [30, 20, 10, 255]
    expected = {'ply': (b'element vertex 6', b'num_cols 3', b'num_rows 2'),
                'pcd': (b'WIDTH 3', b'HEIGHT 2', b'POINTS 6')}[suffix]
    assert all(part in header for part in expected)
