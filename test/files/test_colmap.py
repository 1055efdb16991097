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
"""Test reading and writing of COLMAP's files."""

import struct

import numpy as np
import pytest

from graph_depth_refiner.files.colmap import read_array, read_views, write_array
from graph_depth_refiner.frame import Intrinsics

CAMERAS_TXT = '# comment\n2 PINHOLE 64 48 50 51 31 23\n3 SIMPLE_PINHOLE 32 24 20 15 11\n'
IMAGES_TXT = ('# comment\n7 1 0 0 0 0.1 0.2 0.3 2 b c.png\n10 11 -1 5 6 2\n'
              '8 1 0 0 0 0 0 0 3 a.png\n\n')


def binary_model(folder):
    """Write the model of the texts above in binary."""
    cameras = struct.pack('<Q', 2)
    cameras += struct.pack('<iiQQ4d', 2, 1, 64, 48, 50, 51, 31, 23)
    cameras += struct.pack('<iiQQ3d', 3, 0, 32, 24, 20, 15, 11)
    images = struct.pack('<Q', 2)
    images += struct.pack('<i7di', 7, 1, 0, 0, 0, 0.1, 0.2, 0.3, 2) + b'b c.png\0'
    images += struct.pack('<QddqddQ', 2, 10, 11, -1, 5, 6, 2)
    images += struct.pack('<i7di', 8, 1, 0, 0, 0, 0, 0, 0, 3) + b'a.png\0' + struct.pack('<Q', 0)
    (folder / 'cameras.bin').write_bytes(cameras)
    (folder / 'images.bin').write_bytes(images)


def text_model(folder):
    """Write the model as text."""
    (folder / 'cameras.txt').write_text(CAMERAS_TXT)
    (folder / 'images.txt').write_text(IMAGES_TXT)


@pytest.mark.parametrize('write', [binary_model, text_model])
def test_a_sparse_model_is_read(tmp_path, write):
    write(tmp_path)
    first, second = read_views(tmp_path)
    assert (first.name, first.camera) == ('a.png', (32, 24, Intrinsics(20, 20, 15, 11)))
    assert (second.name, second.camera) == ('b c.png', (64, 48, Intrinsics(50, 51, 31, 23)))


@pytest.mark.parametrize('shape', [(3, 5), (3, 5, 3)])
def test_arrays_survive_a_round_trip(tmp_path, shape):
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    write_array(tmp_path / 'a.bin', values)
    np.testing.assert_array_equal(read_array(tmp_path / 'a.bin'), values)


def test_the_bytes_are_those_of_colmap(tmp_path):
    # COLMAP's Mat: column by column of a row, row by row of a channel, channel by channel
    write_array(tmp_path / 'a.bin', np.array([[[1, 2, 3], [4, 5, np.nan]]], np.float32))
    assert (tmp_path / 'a.bin').read_bytes() == b'2&1&3&' + struct.pack('<6f', 1, 4, 2, 5, 3, 0)


@pytest.mark.parametrize(('data', 'words'), [
    (b'', 'expected WIDTH&HEIGHT&CHANNELS& of COLMAP'),
    (b'2&2&', 'expected WIDTH&HEIGHT&CHANNELS& of COLMAP'),
    (b'2&2&1&' + bytes(15), 'expected 16 bytes of floats, got 15'),
    (b'99999&99999&1&', 'expected sides from 1 to'),
    (b'2&2&9&', 'expected sides from 1 to'),
    (b'0&2&1&', 'expected sides from 1 to'),
])
def test_a_damaged_array_is_one_sentence(tmp_path, data, words):
    (tmp_path / 'a.bin').write_bytes(data)
    with pytest.raises(ValueError, match=words):
        read_array(tmp_path / 'a.bin')


@pytest.mark.parametrize(('old', 'new', 'words'), [
    ('PINHOLE 64', 'OPENCV 64', 'expected pinhole cameras, as image_undistorter makes them'),
    ('50 51 31 23', '50 51', 'expected pinhole cameras'),
    ('64 48', 'wide 48', 'expected a sparse model of COLMAP, got a damaged one'),
    ('2 b c.png', '9 b c.png', "expected camera 9 of 'b c.png', got none"),
    ('2 b c.png', '2 ../b.png', 'expected the name of an image below images'),
    ('2 b c.png', '', 'expected a sparse model of COLMAP, got a damaged one'),
])
def test_a_wrong_text_model_is_one_sentence(tmp_path, old, new, words):
    (tmp_path / 'cameras.txt').write_text(CAMERAS_TXT.replace(old, new))
    (tmp_path / 'images.txt').write_text(IMAGES_TXT.replace(old, new))
    with pytest.raises(ValueError, match=words):
        read_views(tmp_path)


def test_every_cut_of_a_binary_model_is_one_sentence(tmp_path):
    binary_model(tmp_path)
    for name in ('cameras.bin', 'images.bin'):
        whole = (tmp_path / name).read_bytes()
        for length in range(0, len(whole), 5):
            (tmp_path / name).write_bytes(whole[:length])
            with pytest.raises(ValueError, match=f'{name}: expected a sparse model of COLMAP'):
                read_views(tmp_path)
        (tmp_path / name).write_bytes(whole)


def test_a_number_of_points_beyond_all_bounds_is_one_sentence(tmp_path):
    binary_model(tmp_path)
    whole = (tmp_path / 'images.bin').read_bytes()
    count = whole.index(b'b c.png\0') + 8
    (tmp_path / 'images.bin').write_bytes(
        whole[:count] + struct.pack('<Q', 2 ** 64 - 1) + whole[count + 8:])
    with pytest.raises(ValueError, match='images.bin: expected a sparse model of COLMAP'):
        read_views(tmp_path)


def test_a_folder_without_a_model_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match='expected images.bin or images.txt of COLMAP'):
        read_views(tmp_path)
