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
"""Image and map files, whole, cut or tampered with, are read or refused in words."""

from io import BytesIO
import json
from pathlib import Path
import struct
import tempfile

import cv2
from hostile import bounded, doubles, outcome, tampered
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from graph_depth_refiner.files.exr import write_exr
from graph_depth_refiner.files.reading import read_image, read_map
from graph_depth_refiner.lab.evaluation import datasets

RAMP = (np.arange(63, dtype=np.uint16) * 900).reshape(7, 9)
FLOATS = np.linspace(0.5, 4, 63, dtype=np.float32).reshape(7, 9)
DEFAULT_LIMIT = 1 << 16  # pixels that a file of a kilobyte may be decoded to in these tests


def encoded(suffix, array):
    """Return an array in a format of OpenCV."""
    return cv2.imencode(suffix, array)[1].tobytes()


def npy(array):
    """Return an array as an NPY file."""
    stream = BytesIO()
    np.save(stream, array)
    return stream.getvalue()


MAPS = {
    'a.png': encoded('.png', RAMP), 'a.tif': encoded('.tif', RAMP),
    'a.npy': npy(FLOATS), 'b.npy': npy(RAMP), 'c.npy': npy(np.array(['text', None], object)),
    'a.pfm': b'Pf\n9 7\n-1.0\n' + FLOATS.astype('<f4').tobytes(),
}
IMAGES = {
    'a.png': MAPS['a.png'], 'a.tif': MAPS['a.tif'],
    'a.jpg': encoded('.jpg', (RAMP >> 8).astype(np.uint8)),
    'a.bmp': encoded('.bmp', np.zeros((7, 9, 3), np.uint8)),
    'a.ppm': encoded('.ppm', np.zeros((7, 9, 3), np.uint8)),
    'a.webp': encoded('.webp', np.zeros((7, 9, 3), np.uint8)),
}


def damaged(files):
    """Draw a name and its content, tampered with."""
    return st.sampled_from(sorted(files)).flatmap(
        lambda name: st.tuples(st.just(name), tampered(files[name])))


@pytest.fixture(scope='module')
def folder():
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@given(damaged(MAPS), st.sampled_from([1.0, 5000.0, 1e-300]))
def test_maps(folder, file, scale):
    name, data = file
    (folder / name).write_bytes(data)
    values = bounded(DEFAULT_LIMIT, len(data), read_map, folder / name, scale)
    if values is not None:
        assert values.ndim == 2 and values.dtype == np.float32
        assert np.isfinite(values[~np.isnan(values)]).all()


@given(damaged(IMAGES))
def test_images(folder, file):
    name, data = file
    (folder / name).write_bytes(data)
    image = outcome(read_image, folder / name)
    if image is not None:
        assert image.ndim == 2 or image.shape[2] == 3
        assert image.dtype in (np.uint8, np.uint16, np.float32)


@pytest.fixture(scope='module')
def whole_exr(folder):
    pytest.importorskip('OpenEXR')
    write_exr(folder / 'whole.exr', FLOATS)
    return (folder / 'whole.exr').read_bytes()


@given(st.data())
def test_exr_maps(folder, whole_exr, data):
    content = data.draw(tampered(whole_exr))
    (folder / 'e.exr').write_bytes(content)
    values = bounded(DEFAULT_LIMIT, len(content), read_map, folder / 'e.exr')
    assert values is None or (values.ndim == 2 and values.dtype == np.float32)


def with_window(exr, width, height):
    """Return an EXR file whose header claims another size."""
    at = exr.index(b'dataWindow\0box2i\0') + len(b'dataWindow\0box2i\0') + 4
    return exr[:at] + struct.pack('<4i', 0, 0, width - 1, height - 1) + exr[at + 16:]


@pytest.mark.parametrize(('width', 'height'), [(16385, 1), (65536, 32768), (2 ** 31, 1), (0, 9)])
def test_an_exr_that_claims_too_much_is_not_decoded(folder, whole_exr, width, height):
    (folder / 'e.exr').write_bytes(with_window(whole_exr, width, height))
    with pytest.raises(ValueError, match=f'expected .* pixels, got {width}x{height}'):
        read_map(folder / 'e.exr')


def test_an_exr_of_many_channels_is_not_decoded(folder, whole_exr):
    at = whole_exr.index(b'channels\0chlist\0') + len(b'channels\0chlist\0')
    size, = struct.unpack_from('<I', whole_exr, at)
    one = whole_exr[at + 4:at + 4 + size - 1]
    many = b''.join(b'%c' % (65 + n) + one[1:] for n in range(8)) + b'\0'
    large = with_window(whole_exr, 16384, 16384)
    (folder / 'e.exr').write_bytes(
        large[:at] + struct.pack('<I', len(many)) + many + large[at + 4 + size:])
    # 8 channels of 2^28 pixels
    with pytest.raises(ValueError, match='values in all channels, got 2147483648'):
        read_map(folder / 'e.exr')


@given(st.sampled_from(['x.png', 'x.npy', 'x.pfm', 'x.exr', 'x.jpg', 'x']), st.binary(max_size=80))
def test_arbitrary_bytes(folder, name, data):
    (folder / name).write_bytes(data)
    outcome(read_map, folder / name)
    outcome(read_image, folder / name)


@pytest.mark.parametrize('channels', [1, 3])
def test_images_of_doubles_become_floats_and_other_numbers_are_refused(folder, channels):
    values = np.full((7, 9, channels), 2).squeeze()
    for name, kind in ('d.tif', np.float64), ('i.tif', np.int32):
        written = cv2.imwrite(str(folder / name), values.astype(kind))
        if not written or cv2.imread(str(folder / name), cv2.IMREAD_UNCHANGED).dtype != kind:
            pytest.skip(f'OpenCV {cv2.__version__} writes no TIFF of {kind.__name__}')
    image = read_image(folder / 'd.tif')
    assert image.dtype == np.float32
    assert image.shape == values.shape
    with pytest.raises(ValueError, match='expected a grey or colour image .* got int32 of shape'):
        read_image(folder / 'i.tif')


@pytest.mark.parametrize('name', ['f.npy', 'f.pfm'])
def test_maps_are_stored_row_by_row(folder, name):
    data = npy(np.asfortranarray(FLOATS)) if name == 'f.npy' else MAPS['a.pfm']
    (folder / name).write_bytes(data)
    assert read_map(folder / name).flags.c_contiguous


@pytest.mark.parametrize('name, data', [
    ('a.npy', npy(np.zeros((1, 1), np.float32)).replace(
        b'(1, 1), }' + b' ' * 12, b'(65536, 32768), }    ')),
    ('a.pfm', b'Pf\n65536 32768\n-1.0\n' + bytes(64)),
    ('a.png', MAPS['a.png'][:16] + struct.pack('>II', 65536, 32768) + MAPS['a.png'][24:]),
])
def test_a_claim_of_two_billion_pixels_takes_no_memory(folder, name, data):
    (folder / name).write_bytes(data)
    assert bounded(0, len(data), read_map, folder / name) is None


# ----------------------------------------------------------------- data sets

CALIB = (b'cam0=[99 0 4; 0 99 3; 0 0 1]\ncam1=[99 0 4; 0 99 3; 0 0 1]\ndoffs=0\nbaseline=100\n'
         b'width=9\nheight=7\nndisp=8\nisint=0\n')
KITTI = b'P2: 99 0 4 0 0 99 3 0 0 0 1 0\nP3: 99 0 4 -50 0 99 3 0 0 0 1 0\n'
TUM = b'1.0 rgb.png 1.01 depth.png\n'
POSES = b'1.0 0 0 0 0 0 0 1\n1.1 0 0 1 0 0 0 1\n'


def read_all(name, root):
    """Read every scene of a data set."""
    return list(datasets.READERS[name](root))


@pytest.fixture(scope='module')
def sets(folder):
    grey = encoded('.png', (RAMP >> 8).astype(np.uint8))
    files = {
        'middlebury/one/im0.png': grey, 'middlebury/one/im1.png': grey,
        'middlebury/one/disp0GT.pfm': MAPS['a.pfm'],
        'kitti/image_2/000000_10.png': grey, 'kitti/image_3/000000_10.png': grey,
        'tum/rgb.png': grey, 'tum/depth.png': MAPS['a.png'], 'tum/groundtruth.txt': POSES,
        'plain/image.png': grey, 'plain/depth.npy': MAPS['a.npy']}
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def check_text(sets, reader, path, data):
    """Read a data set whose text file has this content."""
    (sets / path).parent.mkdir(parents=True, exist_ok=True)
    (sets / path).write_bytes(data)
    return outcome(read_all, reader, sets / path.split('/')[0])


@given(st.one_of(tampered(CALIB), st.binary(max_size=40)))
def test_middlebury_calibration(sets, data):
    check_text(sets, 'middlebury', 'middlebury/one/calib.txt', data)


@given(st.one_of(tampered(KITTI), st.binary(max_size=40)))
def test_kitti_calibration(sets, data):
    check_text(sets, 'kitti', 'kitti/calib/000000.txt', data)


@given(st.one_of(tampered(TUM), st.binary(max_size=40)))
def test_tum_associations(sets, data):
    check_text(sets, 'tum', 'tum/associations.txt', data)


@given(st.one_of(tampered(POSES), st.binary(max_size=40)))
def test_tum_poses(sets, data):
    (sets / 'tum/associations.txt').write_bytes(TUM)
    check_text(sets, 'tum', 'tum/groundtruth.txt', data)


@given(st.one_of(
    st.binary(max_size=40),
    st.dictionaries(
        st.sampled_from(['fx', 'fy', 'cx', 'cy', 'baseline', 'depth_scale', 'other']),
        st.one_of(doubles, st.none(), st.text(max_size=4), st.lists(doubles, max_size=2))
    ).map(lambda known: json.dumps(known).encode())))
def test_plain_intrinsics(sets, data):
    name = next(n for n in datasets.READERS if n in ('plain', 'folder'))
    check_text(sets, name, 'plain/intrinsics.json', data)


def test_whole_sets_are_read(sets):
    (sets / 'tum/groundtruth.txt').write_bytes(POSES)
    for reader, path, data in (
            ('middlebury', 'middlebury/one/calib.txt', CALIB),
            ('kitti', 'kitti/calib/000000.txt', KITTI),
            ('tum', 'tum/associations.txt', TUM)):
        assert len(check_text(sets, reader, path, data)) == 1
