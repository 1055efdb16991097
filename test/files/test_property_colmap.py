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
"""Files of COLMAP, tampered with, are read or refused in words."""

from pathlib import Path
import struct
import tempfile

from hostile import outcome, tampered
from hypothesis import given
import pytest
from test_colmap import binary_model, CAMERAS_TXT, IMAGES_TXT

from graph_depth_refiner.files.colmap import read_array, read_views

ARRAY = b'3&2&1&' + struct.pack('<6f', *range(6))


@pytest.fixture(scope='module')
def folder():
    """Return a folder with a sparse model."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@given(data=tampered(ARRAY))
def test_arrays(folder, data):
    (folder / 'a.bin').write_bytes(data)
    outcome(read_array, folder / 'a.bin')


@pytest.mark.parametrize('name', ['cameras.bin', 'images.bin'])
def test_binary_models(folder, name):
    binary_model(folder)
    whole = (folder / name).read_bytes()

    @given(data=tampered(whole))
    def read(data):
        (folder / name).write_bytes(data)
        outcome(read_views, folder)

    read()


@pytest.mark.parametrize('name', ['cameras.txt', 'images.txt'])
def test_text_models(folder, name):
    for path in folder.glob('*.bin'):
        path.unlink()
    texts = {'cameras.txt': CAMERAS_TXT.encode(), 'images.txt': IMAGES_TXT.encode()}
    for other, text in texts.items():
        (folder / other).write_bytes(text)

    @given(data=tampered(texts[name]))
    def read(data):
        (folder / name).write_bytes(data)
        outcome(read_views, folder)

    read()
