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
"""Readers on tiny folders of every layout, whole and malformed."""

import json

import cv2
import numpy as np
import pytest

from graph_depth_refiner.files.reading import read_image, read_map
from graph_depth_refiner.lab.evaluation.datasets import READERS

IMAGE = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)  # RGB
CALIB = 'cam0=[100 0 2; 0 90 1; 0 0 1]\ndoffs=3\nbaseline=200\nndisp=64\n'


def write_image(path, image=IMAGE):
    """Write RGB or one channel as a PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), image[..., ::-1] if image.ndim == 3 else image)


def write_pfm(path, values, scale=-1.0):
    """Write a PFM as Middlebury does: bottom row first, little endian."""
    header = f'Pf\n{values.shape[1]} {values.shape[0]}\n{scale}\n'.encode()
    path.write_bytes(header + values[::-1].astype('<f4').tobytes())


@pytest.fixture
def middlebury(tmp_path):
    """Write a Middlebury folder of one scene."""
    scene = tmp_path / 'Chair'
    write_image(scene / 'im0.png')
    write_image(scene / 'im1.png', 255 - IMAGE)
    (scene / 'calib.txt').write_text(CALIB)
    truth = np.arange(20, dtype=np.float32).reshape(4, 5)
    truth[0, 0] = np.inf
    write_pfm(scene / 'disp0GT.pfm', truth, scale=-0.0039)
    return tmp_path


def test_middlebury(middlebury):
    scenes = READERS['middlebury'](middlebury)
    scene = scenes[0]
    assert scenes.names == ['Chair'] and len(scenes) == 1
    np.testing.assert_array_equal(scene.left, IMAGE)
    np.testing.assert_array_equal(scene.right, 255 - IMAGE)
    assert (scene.intrinsics.fx, scene.intrinsics.fy) == (100, 90)
    assert (scene.intrinsics.cx, scene.intrinsics.cy) == (2, 1)
    assert scene.intrinsics.baseline == 0.2 and scene.disparities == 64
    assert np.isnan(scene.truth[0, 0]) and scene.truth[3, 4] == 19  # whatever the scale says
    assert READERS['middlebury'](middlebury / 'Chair').names == ['Chair']


def test_disparity_and_depth(middlebury):
    scene = READERS['middlebury'](middlebury)[0]
    # Z = f B / (disparity + doffs) = 20 / (7 + 3)
    assert scene.depth(np.array([[7.0, np.nan]]))[0, 0] == 2
    assert np.isnan(scene.depth(np.array([[-3.0, np.nan]]))).all()
    disparity = np.linspace(0, 60, 20, dtype=np.float32).reshape(4, 5)
    np.testing.assert_allclose(scene.disparity(scene.depth(disparity)), disparity, atol=1e-4)
    frame = scene.frame(disparity, np.ones((4, 5), np.float32))
    assert frame.intrinsics is scene.intrinsics and frame.depth.dtype == np.float32


@pytest.mark.parametrize('left, right, calib, prefix, truth', [
    ('image_2', 'image_3', 'calib', 'P{}', 'disp_occ_0'),
    ('colored_0', 'colored_1', 'calib', 'P{}', 'disp_occ'),
    ('image_2', 'image_3', 'calib_cam_to_cam', 'P_rect_0{}', 'disp_occ_0')])
def test_kitti(tmp_path, left, right, calib, prefix, truth):
    root = tmp_path / 'training'
    for name in ('000003_10', '000003_11'):
        write_image(root / left / f'{name}.png')
        write_image(root / right / f'{name}.png', 255 - IMAGE)
    write_image(root / truth / '000003_10.png', np.full((4, 5), 2560, np.uint16))
    (root / calib).mkdir()
    (root / calib / '000003.txt').write_text('\n'.join(
        f'{prefix.format(camera)}: 700 0 600 {at} 0 710 170 0 0 0 1 0'
        for camera, at in ((2, 45), (3, -305))))
    scene, = READERS['kitti'](tmp_path)
    assert scene.name == '000003_10' and scene.offset == 0
    assert (scene.intrinsics.fx, scene.intrinsics.cy) == (700, 170)
    assert scene.intrinsics.baseline == 0.5  # (45 + 305) / 700
    assert (scene.truth == 10).all()  # in 256ths


def test_tum(tmp_path):
    root = tmp_path / 'rgbd_freiburg2_desk'
    write_image(root / 'rgb/1.png')
    write_image(root / 'depth/2.png', np.array([[5000, 0]], np.uint16).repeat(4, 0).repeat(2, 1))
    write_image(root / 'rgb/9.png')
    (root / 'rgb.txt').write_text('# images\n1.00 rgb/1.png\n9.00 rgb/9.png\n')
    (root / 'depth.txt').write_text('1.01 depth/2.png\n5.0 depth/7.png\n')
    # half a turn about z: x and y change their signs
    (root / 'groundtruth.txt').write_text('# poses\n1.005 1 2 3 0 0 1 0\n')
    scenes = READERS['tum'](root)
    assert scenes.names == ['2']  # depth/7 has no image within 20 ms
    with pytest.raises(ValueError, match='image: expected shape'):
        scenes[0]  # the depth is 4 wide, the image 5
    write_image(root / 'depth/2.png', np.full((4, 5), 5000, np.uint16))
    frame = scenes[0].frame
    assert (frame.depth == 1).all() and frame.stamp == 1.01
    assert frame.intrinsics.fx == 520.9 and scenes[0].truth is None
    np.testing.assert_allclose(
        frame.pose, [[-1, 0, 0, 1], [0, -1, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]], atol=1e-12)


def test_tum_associations_come_first(tmp_path):
    write_image(tmp_path / 'a.png')
    write_image(tmp_path / 'b.png', np.full((4, 5), 2500, np.uint16))
    (tmp_path / 'associations.txt').write_text('7.5 a.png 7.6 b.png\n')
    scene = READERS['tum'](tmp_path)[0]
    assert scene.frame.stamp == 7.6 and scene.frame.pose is None
    assert (scene.frame.depth == 0.5).all() and scene.frame.intrinsics.fx == 525


def test_icl_nuim(tmp_path):
    for number in (2, 10):
        write_image(tmp_path / f'color/{number}.png')
        write_image(tmp_path / f'depth/{number}.png', np.full((4, 5), 500 * number, np.uint16))
    scenes = READERS['icl'](tmp_path)
    assert scenes.names == ['2', '10']
    assert (scenes[1].truth == 1).all() and scenes[1].frame.intrinsics.fy == 480


@pytest.fixture
def plain(tmp_path):
    """Write a plain folder of one scene."""
    folder = tmp_path / 'desk'
    write_image(folder / 'image.png')
    write_image(folder / 'depth.png', np.full((4, 5), 2000, np.uint16))
    write_image(folder / 'confidence.png', np.full((4, 5), 51, np.uint8))
    np.save(folder / 'truth.npy', np.full((4, 5), 2.5))
    camera = {'fx': 10, 'fy': 11, 'cx': 2, 'cy': 1, 'baseline': 0.1}
    (folder / 'intrinsics.json').write_text(json.dumps(camera))
    return folder


def test_plain_folder(plain):
    scene, = READERS['folder'](plain)
    assert (scene.frame.depth == 2).all() and (scene.truth == 2.5).all()
    np.testing.assert_allclose(scene.frame.confidence, 0.2, rtol=1e-6)
    assert scene.frame.intrinsics.baseline == 0.1
    assert READERS['folder'](plain.parent).names == ['desk']


@pytest.mark.parametrize('text', ['{"fx": 1}', '[]', '{', '{"fx": "a"}', '{"fx": [1]}'])
def test_malformed_intrinsics(plain, text):
    (plain / 'intrinsics.json').write_text(text)
    with pytest.raises(ValueError, match=r'intrinsics\.json: expected') as error:
        READERS['folder'](plain)[0]
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('reader', READERS)
def test_a_missing_or_empty_folder_is_one_sentence(tmp_path, reader):
    for folder in (tmp_path / 'none', tmp_path):
        with pytest.raises(ValueError, match='expected') as error:
            READERS[reader](folder)
        assert '\n' not in str(error.value)


@pytest.mark.parametrize('file, content, expected', [
    ('calib.txt', CALIB.replace('ndisp', 'disp'), 'expected cam0, baseline, doffs and ndisp'),
    ('calib.txt', CALIB.replace('100 0 2', '100 0'), 'expected cam0, baseline, doffs and ndisp'),
    ('calib.txt', CALIB.replace('=[100', '=[-100'), 'expected a positive number'),
    ('im1.png', 'text', 'expected an image'),
    ('disp0GT.pfm', 'Pf\n5 4\n-1\nshort', 'expected 80 bytes of values, got 5'),
    ('disp0GT.pfm', 'PF\n5 4\n-1\n', 'expected a PFM map of one channel')])
def test_malformed_middlebury(middlebury, file, content, expected):
    (middlebury / 'Chair' / file).write_text(content)
    with pytest.raises(ValueError, match=expected) as error:
        READERS['middlebury'](middlebury)[0]
    assert '\n' not in str(error.value)


def test_sizes_that_do_not_fit(middlebury):
    write_image(middlebury / 'Chair/im1.png', IMAGE[:, :4])
    with pytest.raises(ValueError, match=r'expected a right image of shape \(4, 5, 3\)'):
        READERS['middlebury'](middlebury)[0]
    write_image(middlebury / 'Chair/im1.png')
    write_pfm(middlebury / 'Chair/disp0GT.pfm', np.ones((4, 4), np.float32))
    with pytest.raises(ValueError, match=r'expected true disparity of shape \(4, 5\)'):
        READERS['middlebury'](middlebury)[0]


def test_malformed_lists(tmp_path):
    (tmp_path / 'associations.txt').write_text('1.0 a.png 1.0\n')
    with pytest.raises(ValueError, match='expected 4 columns, got'):
        READERS['tum'](tmp_path)
    (tmp_path / 'associations.txt').write_text('1.0 a.png now b.png\n')
    with pytest.raises(ValueError, match="expected a number, got 'now'"):
        READERS['tum'](tmp_path)


def test_images_in_rgb_and_maps_with_gaps(tmp_path):
    write_image(tmp_path / 'c.png')
    np.testing.assert_array_equal(read_image(tmp_path / 'c.png'), IMAGE)
    with pytest.raises(ValueError, match='expected a map of one channel'):
        read_map(tmp_path / 'c.png')
    np.save(tmp_path / 'm.npy', np.array([[1.5, np.inf, np.nan]]))
    np.testing.assert_array_equal(read_map(tmp_path / 'm.npy'), [[1.5, np.nan, np.nan]])
    np.save(tmp_path / 's.npy', np.array([['a']]))
    with pytest.raises(ValueError, match='expected numbers'):
        read_map(tmp_path / 's.npy')
