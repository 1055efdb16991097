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
"""Test the command refine from files to files."""

import argparse

import cv2
import numpy as np
import pytest

from graph_depth_refiner.cli.main import main
from graph_depth_refiner.files import refine_files
from graph_depth_refiner.files.exports import write_depth
from graph_depth_refiner.files.reading import read_image, read_map

CAMERA = '40,40,15.5,11.5'
SHAPE = (24, 32)
FEW = ('--set', 'solver.iterations=2')


def write_inputs(folder, count=1):
    """Write images and depths of a wall at 2 m with a hole, in counts of 1/5000 m."""
    for name in ('rgb', 'depth'):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(count):
        image = np.random.default_rng(number).integers(0, 255, (*SHAPE, 3), np.uint8)
        cv2.imwrite(str(folder / 'rgb' / f'{number}.png'), image)
        depth = np.full(SHAPE, 2, np.float32)
        depth[8:11, 8:11] = np.nan
        write_depth(folder / 'depth' / f'{number}.png', depth, 5000.0)


def refine(*arguments):
    """Run the command; return its exit code."""
    return main(['refine', *map(str, arguments)])


def planned(*arguments):
    """Return the jobs of a command line."""
    parser = argparse.ArgumentParser()
    refine_files.add_arguments(parser)
    return refine_files.plan(parser.parse_args([*map(str, arguments)]))


def test_one_file_to_all_results(tmp_path, capsys):
    write_inputs(tmp_path)
    assert refine(
        tmp_path / 'rgb/0.png', tmp_path / 'depth/0.png', tmp_path / 'out',
        '--intrinsics', CAMERA, '--depth-scale', 5000, *FEW) == 0
    found = read_map(tmp_path / 'out/0_depth.png', 5000.0)
    assert found.shape == SHAPE
    np.testing.assert_allclose(found, 2.0, rtol=0.01)  # the hole is closed
    assert read_image(tmp_path / 'out/0_normals.png').dtype == np.uint16
    assert (tmp_path / 'out/0_cloud.ply').read_bytes().startswith(b'ply\n')
    assert read_image(tmp_path / 'out/0_preview.png').ndim == 3
    assert '+1.2% of the pixels known' in capsys.readouterr().out  # 9 of 768


@pytest.mark.parametrize('suffix', ['npy', 'pfm', 'exr'])
def test_other_formats(tmp_path, suffix):
    if suffix == 'exr':
        pytest.importorskip('OpenEXR')
    write_inputs(tmp_path)
    write_depth(tmp_path / f'depth.{suffix}', np.full(SHAPE, 2, np.float32), 1.0)
    assert refine(
        tmp_path / 'rgb/0.png', tmp_path / f'depth.{suffix}', tmp_path / 'out',
        '--intrinsics', CAMERA, '--depth-format', suffix, '--cloud-format', 'pcd', *FEW) == 0
    np.testing.assert_allclose(read_map(tmp_path / f'out/depth_depth.{suffix}'), 2, rtol=0.01)
    assert (tmp_path / 'out/depth_cloud.pcd').exists()


def test_a_folder_runs_on_all_cores_and_gives_the_same(tmp_path, capsys):
    write_inputs(tmp_path, 3)
    common = ('--intrinsics', CAMERA, '--depth-scale', 5000, *FEW)
    assert refine(tmp_path / 'rgb', tmp_path / 'depth', tmp_path / 'all', *common) == 0
    assert '3 of 3 refined' in capsys.readouterr().out
    assert refine(
        tmp_path / 'rgb/1.png', tmp_path / 'depth/1.png', tmp_path / 'one', *common) == 0
    for name in ('1_depth.png', '1_normals.png', '1_cloud.ply', '1_preview.png'):
        assert (tmp_path / 'all' / name).read_bytes() == (tmp_path / 'one' / name).read_bytes()


def test_one_bad_file_does_not_stop_the_others(tmp_path, capsys):
    write_inputs(tmp_path, 2)
    (tmp_path / 'depth/1.png').write_bytes(b'hello')
    assert refine(
        tmp_path / 'rgb', tmp_path / 'depth', tmp_path / 'out', '--intrinsics', CAMERA, *FEW) == 1
    said = capsys.readouterr()
    assert '1 of 2 refined' in said.out
    assert 'failed after 2 attempts' in said.err
    assert (tmp_path / 'out/0_depth.png').exists()


def test_files_pair_by_name_or_by_order(tmp_path):
    write_inputs(tmp_path, 2)
    jobs = planned(
        tmp_path / 'rgb/*.png', tmp_path / 'depth/*.png', tmp_path, '--intrinsics', CAMERA)
    assert [(j.image.name, j.depth.name) for j in jobs] == [('0.png', '0.png'), ('1.png', '1.png')]
    for number in range(2):
        (tmp_path / f'rgb/{number}.png').rename(tmp_path / f'rgb/photo{number}.png')
    jobs = planned(tmp_path / 'rgb', tmp_path / 'depth', tmp_path, '--intrinsics', CAMERA)
    assert [j.image.name for j in jobs] == ['photo0.png', 'photo1.png']


def test_paths_do_not_depend_on_where_a_worker_runs(tmp_path, monkeypatch):
    write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    job, = planned(
        'rgb', 'depth/0.png', 'out', '--confidence', 'dep*/*', '--intrinsics', CAMERA)
    assert [job.image, job.depth, job.confidence, job.stem] == [
        tmp_path / 'rgb/0.png', tmp_path / 'depth/0.png', tmp_path / 'depth/0.png',
        tmp_path / 'out/0']


@pytest.mark.parametrize(('change', 'words'), [
    ({'image': 'nowhere.png'}, 'image: expected files at'),
    ({'depth': 'depth/7*.png'}, 'depth: expected files at'),
    ({'intrinsics': '1,2,3'}, 'intrinsics: expected FX,FY,CX,CY'),
    ({'intrinsics': '0,40,1,1'}, 'intrinsics.fx: expected a positive number'),
    ({'scale': 'nan'}, 'depth-scale: expected a positive number'),
    ({'image': 'rgb/0.png', 'depth': 'depth'}, 'image: expected 2 files'),
])
def test_what_is_wrong_is_said(tmp_path, capsys, change, words):
    write_inputs(tmp_path, 2)
    values = {'image': 'rgb', 'depth': 'depth', 'intrinsics': CAMERA, 'scale': '5000', **change}
    assert refine(
        tmp_path / values['image'], tmp_path / values['depth'], tmp_path / 'out',
        '--intrinsics', values['intrinsics'], '--depth-scale', values['scale']) == 2
    said = capsys.readouterr().err.strip()
    assert words in said
    assert len(said.splitlines()) == 1


def test_intrinsics_from_json(tmp_path):
    path = tmp_path / 'camera.json'
    path.write_text('{"fx": 1, "fy": 2, "cx": 3, "cy": 4, "baseline": 0.5}')
    camera = refine_files.parse_intrinsics(str(path))
    assert (camera.fx, camera.cy, camera.baseline) == (1, 4, 0.5)


def test_a_larger_image_is_brought_to_the_depth(tmp_path):
    write_inputs(tmp_path)
    large = np.zeros((2 * SHAPE[0], 2 * SHAPE[1], 3), np.uint8)
    cv2.imwrite(str(tmp_path / 'rgb/0.png'), large)
    job, = planned(tmp_path / 'rgb', tmp_path / 'depth', tmp_path, '--intrinsics', CAMERA)
    assert refine_files.read_frame(job).image.shape == (*SHAPE, 3)
