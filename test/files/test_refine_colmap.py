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
"""Test the command refine-colmap on a rendered workspace, and the fusion of COLMAP after it."""

import numpy as np
import pytest

from graph_depth_refiner.cli.main import main
from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.files.colmap import Camera, read_array, View, write_array
from graph_depth_refiner.files.refine_colmap import scaled_intrinsics
from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.benchmarks.colmap import compare, Truth
from graph_depth_refiner.lab.synthetic.colmap import render_views, write_workspace

SIZE = (160, 120)


@pytest.fixture(scope='module')
def views():
    """Return views of a room, rendered once."""
    return render_views(seed=1, count=6, size=SIZE)


@pytest.fixture
def workspace(tmp_path, views):
    """Return a workspace as COLMAP leaves it."""
    write_workspace(tmp_path / 'dense', views)
    return tmp_path / 'dense'


def maps(folder, number, kind='geometric'):
    """Return depth and normals of a view."""
    return [read_array(folder / 'stereo' / what / f'{number:03}.png.{kind}.bin')
            for what in ('depth_maps', 'normal_maps')]


def error(depth, true, where):
    """Return the median relative error."""
    return np.median(np.abs(depth - true)[where] / true[where])


def test_every_view_comes_out_better(workspace, views, capsys):
    assert main(['refine-colmap', str(workspace)]) == 0
    out = workspace.with_name('dense_refined')
    assert f'6 of 6 views refined -> {out}' in capsys.readouterr().out
    before, after, angles = [], [], []
    for number, view in enumerate(views):
        came, _ = maps(workspace, number)
        depth, normals = maps(out, number)
        where = (came > 0) & np.isfinite(view.depth)
        before.append(error(came, view.depth, where))
        after.append(error(depth, view.depth, where))
        known = depth > 0
        assert known[came > 0].mean() > 0.95
        np.testing.assert_allclose(np.linalg.norm(normals[known], axis=-1), 1, atol=1e-3)
        assert (normals[~known] == 0).all()
        angles.append(np.median((normals * view.normals).sum(-1)[known & where]))
    assert np.mean(after) < np.mean(before)
    assert np.mean(angles) > np.cos(np.radians(25))  # towards the camera, as COLMAP has them


def test_the_new_workspace_shares_all_but_the_maps(workspace):
    assert main(['refine-colmap', str(workspace), '--out', str(workspace.parent / 'new')]) == 0
    new = workspace.parent / 'new'
    assert (new / 'images' / '000.png').samefile(workspace / 'images' / '000.png')
    assert (new / 'sparse' / 'images.txt').is_file()
    assert (new / 'stereo' / 'fusion.cfg').read_text().splitlines()[0] == '000.png'
    assert not (new / 'stereo' / 'depth_maps').is_symlink()


def test_the_scale_of_the_reconstruction_does_not_matter(workspace, views):
    assert main(['refine-colmap', str(workspace), '--out', str(workspace.parent / 'one')]) == 0
    for number in range(len(views)):
        path = workspace / 'stereo' / 'depth_maps' / f'{number:03}.png.geometric.bin'
        write_array(path, 64 * read_array(path))
    assert main(['refine-colmap', str(workspace), '--out', str(workspace.parent / 'two')]) == 0
    for number in range(len(views)):
        np.testing.assert_allclose(
            64 * maps(workspace.parent / 'one', number)[0],
            maps(workspace.parent / 'two', number)[0], rtol=1e-5)


def test_maps_may_be_smaller_than_images(workspace, views):
    for number in range(len(views)):
        path = workspace / 'stereo' / 'depth_maps' / f'{number:03}.png.geometric.bin'
        write_array(path, read_array(path)[::2, ::2])
    assert main(['refine-colmap', str(workspace)]) == 0
    depth, normals = maps(workspace.with_name('dense_refined'), 0)
    assert normals.shape == (60, 80, 3)
    assert depth.shape == (60, 80)
    # a map of half the width and a third of the height has pixels twice as wide, thrice as high
    view = View('a.png', Camera(160, 120, Intrinsics(100, 90, 80, 60)))
    assert scaled_intrinsics(view, (40, 80)) == Intrinsics(50, 30, 40, 20)


def test_photometric_maps_are_taken_where_there_are_no_others(workspace):
    for path in (workspace / 'stereo' / 'depth_maps').glob('*.geometric.bin'):
        path.unlink()
    assert main(['refine-colmap', str(workspace)]) == 0
    assert maps(workspace.with_name('dense_refined'), 0, 'photometric')[0].shape == SIZE[::-1]


def test_a_view_that_cannot_be_read_fails_alone(workspace, capsys):
    (workspace / 'stereo' / 'depth_maps' / '002.png.geometric.bin').write_bytes(b'nothing')
    assert main(['refine-colmap', str(workspace)]) == 1
    said = capsys.readouterr()
    assert '5 of 6 views refined' in said.out
    assert '002.png.geometric.bin: expected WIDTH&HEIGHT&CHANNELS&' in said.err


@pytest.mark.parametrize(('arguments', 'words'), [
    (('{}/nowhere',), 'expected images.bin or images.txt of COLMAP, got neither'),
    (('{}', '--out', '{}'), 'out: expected another folder than the workspace'),
    (('{}', '--set', 'nothing=1'), 'nothing'),
])
def test_what_is_wrong_is_said_in_one_sentence(workspace, capsys, arguments, words):
    assert main(['refine-colmap', *(text.format(workspace) for text in arguments)]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count('\n') == 1


def test_a_workspace_without_maps_is_one_sentence(workspace, capsys):
    for path in (workspace / 'stereo' / 'depth_maps').iterdir():
        path.unlink()
    assert main(['refine-colmap', str(workspace)]) == 2
    assert 'expected depth maps of the images of the sparse model' in capsys.readouterr().err


def test_colmap_fuses_more_and_nearer_points_of_refined_maps(views):
    pytest.importorskip('pycolmap', reason='pip install pycolmap')
    found = compare(views, 'geometric', RefinerConfig())
    assert found['refined']['complete 2 cm %'] > found['input']['complete 2 cm %']
    assert found['refined']['accurate 2 cm %'] > found['input']['accurate 2 cm %']


def test_the_truth_is_accurate_and_complete(views):
    truth = Truth(views)
    found = truth.score(truth.points)
    assert (found['accurate 1 cm %'], found['complete 1 cm %']) == (100, 100)
    # 3 cm along the normals; some of them come near another surface
    moved = truth.score((truth.points + 0.03 * truth.normals).astype(np.float32))
    assert moved['accurate 1 cm %'] < 30
    assert moved['median mm'] == pytest.approx(30, abs=3)
