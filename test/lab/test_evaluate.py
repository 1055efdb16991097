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
"""Test the evaluation on a tiny stereo pair and a tiny rendered view."""

import json

import browser
import cv2
import numpy as np
import pytest

from graph_depth_refiner.cli.main import main
from graph_depth_refiner.files.exports import write_depth
from graph_depth_refiner.lab.evaluation import evaluate, markdown

SHAPE = (48, 96)
DISPARITY = 8
CALIB = """cam0=[100 0 47.5; 0 100 23.5; 0 0 1]
cam1=[100 0 47.5; 0 100 23.5; 0 0 1]
doffs=0
baseline=100
width=96
height=48
ndisp=16
"""
FEW = ('--set', 'solver.iterations=2')


def write_middlebury(folder):
    """Write a pair of a wall whose disparity is 8 px everywhere."""
    rng = np.random.default_rng(0)
    wide = cv2.GaussianBlur(
        rng.integers(0, 255, (SHAPE[0], SHAPE[1] + DISPARITY, 3), np.uint8), (3, 3), 0)
    scene = folder / 'Wall'
    scene.mkdir(parents=True)
    cv2.imwrite(str(scene / 'im0.png'), wide[:, :SHAPE[1]])
    cv2.imwrite(str(scene / 'im1.png'), wide[:, DISPARITY:])
    (scene / 'calib.txt').write_text(CALIB)
    write_depth(scene / 'disp0GT.pfm', np.full(SHAPE, DISPARITY, np.float32), 1.0)


def write_plain(folder, truth, shape=SHAPE):
    """Write a plain folder: a wall at 2 m with some noise, with or without the truth."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    cv2.imwrite(str(folder / 'image.png'), rng.integers(0, 255, (*shape, 3), np.uint8))
    noisy = 2 + 0.01 * rng.standard_normal(shape).astype(np.float32)
    np.save(folder / 'depth.npy', noisy)
    (folder / 'intrinsics.json').write_text('{"fx": 100, "fy": 100, "cx": 47.5, "cy": 23.5}')
    if truth:
        np.save(folder / 'truth.npy', np.full(shape, 2, np.float32))


@pytest.fixture(scope='module')
def report(tmp_path_factory):
    """Run the evaluation of the wall once, with everything it can write."""
    folder = tmp_path_factory.mktemp('evaluate')
    write_middlebury(folder / 'data')
    assert main([
        'evaluate', 'middlebury', str(folder / 'data'), '--json', str(folder / 'all.json'),
        '--report', str(folder / 'report'), '--preset', 'realtime', '--methods',
        'raw,background,median,wls,ours', *FEW]) == 0
    return folder


def test_records_have_the_keys_of_the_paper(report):
    records = json.loads((report / 'all.json').read_text())
    assert len(records) == 2 * 5  # inputs, methods
    keys = {'scene', 'input', 'method', 'bad0.5', 'bad1', 'bad2', 'avgerr', 'rms', 'ms'}
    assert all(keys <= set(record) for record in records)
    assert {record['input'] for record in records} == {'SGBM', 'BM'}
    median = next(r for r in records if (r['input'], r['method']) == ('SGBM', 'median'))
    assert median['bad1'] < 5  # a textured wall is no challenge
    assert all(record['ms'] > 0 for record in records)


def test_the_report_shows_every_picture_without_errors(report, tmp_path):
    page = report / 'report' / 'index.html'
    images, shown, console = browser.count_images(page, tmp_path)
    assert images == 2 * (3 + 5 * 3)  # inputs; image, truth, normals; methods
    assert shown == images
    assert console == []


def test_the_report_needs_nothing_else(report):
    text = (report / 'report' / 'index.html').read_text()
    assert 'http://' not in text
    assert 'https://' not in text
    assert text.count('src="data:image/') == text.count('<img ')


@pytest.mark.parametrize('truth', [True, False])
def test_a_plain_folder(tmp_path, capsys, truth):
    write_plain(tmp_path / 'scene', truth)
    assert main([
        'evaluate', 'folder', str(tmp_path / 'scene'), '--methods', 'raw,median,ours', *FEW]) == 0
    said = capsys.readouterr().out
    assert '2cm' in said
    assert ('spots withheld' in said) != truth
    assert 'normal_mean' in said or not truth


def test_the_averages_go_between_the_marks(tmp_path):
    path = tmp_path / 'README.md'
    path.write_text('top\n<!-- evaluate -->\nold\n<!-- /evaluate -->\nend\n')
    records = [
        record('median', bad1=5.0, rms=2.0, ms=1.0), record('ours', bad1=4.0, rms=2.5, ms=9.0)]
    markdown.write(path, records, 'make it')
    text = path.read_text()
    assert text.startswith('top\n<!-- evaluate -->\n')
    assert text.endswith('\n<!-- /evaluate -->\nend\n')
    assert '| median | 5.00 | **2.00** | 1.00 |' in text
    assert '| ours | **4.00** | 2.50 | 9.00 |' in text
    assert '- s, i: ours loses in rms 2.50 against 2.00 of median' in text
    assert 'old' not in text
    with pytest.raises(ValueError, match='expected the lines'):
        markdown.write(report_without_marks(tmp_path), records, '')


def report_without_marks(folder):
    """Return a file that has no place for a table."""
    path = folder / 'other.md'
    path.write_text('nothing here')
    return path


def record(method, **values):
    """Return a record of one scene."""
    return {'scene': 's', 'input': 'i', 'method': method, **values}


def test_losses_are_said():
    table = [record('raw', bad1=0.0, ms=1.0), record('median', bad1=5.0, rms=2.0, ms=1.0),
             record('ours-converged', bad1=3.0, rms=1.0, ms=9.0),
             record('ours', bad1=4.0, rms=2.5, ms=9.0)]
    assert evaluate.losses(table[1:]) == (
        'ours loses in rms 2.50 against 2.00 of median; ours-converged is better in bad1, rms')
    assert evaluate.losses([table[1], record('ours', bad1=1.0, rms=1.0, ms=99.0)]) == (
        'ours is best in every measure')


def test_our_own_variant_is_not_left_out():
    table = [record('median', bad1=5.0, rms=2.0), record('ours-converged', bad1=3.0, rms=1.9),
             record('ours', bad1=4.0, rms=1.0)]
    assert evaluate.losses(table) == (
        'ours is best in every measure of all methods but ours-converged; '
        'ours-converged is better in bad1')


def test_higher_shares_of_good_normals_are_better():
    table = [record('median', **{'normal_below11.25': 90.0}),
             record('ours', **{'normal_below11.25': 80.0})]
    assert 'normal_below11.25 80.00 against 90.00 of median' in evaluate.losses(table)


def test_averages_are_over_scenes():
    records = [dict(record('median', rms=1.0, ms=2.0), scene='a'),
               dict(record('median', rms=3.0, ms=4.0), scene='b')]
    assert evaluate.average(records) == [
        {'scene': 'average', 'input': 'i', 'method': 'median', 'rms': 2.0, 'ms': 3.0}]
    assert evaluate.coverage(records) == ''


def test_a_measure_is_averaged_over_the_scenes_that_have_it():
    records = [dict(record('median', rms=1.0, ms=2.0), scene='a'),
               dict(record('median', rms=3.0, normal_mean=7.0, ms=4.0), scene='b')]
    averages = evaluate.average(records)
    assert averages == [
        {'scene': 'average', 'input': 'i', 'method': 'median', 'rms': 2.0, 'normal_mean': 7.0,
         'ms': 3.0}]
    assert evaluate.coverage(records) == 'normal_mean: average of 1 of 2 scenes'
    assert 'normal_mean: average of 1 of 2 scenes.' in markdown.render(records, 'make it')


def test_scenes_with_and_without_true_normals(tmp_path, capsys):
    write_plain(tmp_path / 'set' / 'a', True)
    truth = np.zeros(SHAPE, np.float32)  # unknown, but for a pixel: no normal has 5x5 of them
    truth[20, 20] = 2
    np.save(tmp_path / 'set' / 'a' / 'truth.npy', truth)
    write_plain(tmp_path / 'set' / 'b', True)
    assert main([
        'evaluate', 'folder', str(tmp_path / 'set'), '--methods', 'raw,median',
        '--json', str(tmp_path / 'all.json'), '--report', str(tmp_path / 'report')]) == 0
    said = capsys.readouterr().out
    assert 'average of 2 scenes' in said
    assert 'normal_mean, normal_median, normal_below11.25: average of 1 of 2 scenes' in said
    rows = [r for r in json.loads((tmp_path / 'all.json').read_text()) if r['scene'] == 'a']
    assert all(0 < row['relative'] < 10 for row in rows)  # the noise, not a division by 0


def test_what_is_not_finite_is_null_in_json():
    made = evaluate.finite(record('median', rms=float('inf'), ms=1.0))
    assert json.loads(json.dumps(made, allow_nan=False)) == record('median', rms=None, ms=1.0)


@pytest.mark.parametrize('shape', [(2000, 1), (1, 2000)])
def test_a_report_of_a_line_of_pixels(tmp_path, shape):
    write_plain(tmp_path / 'line', True, shape)
    assert main([
        'evaluate', 'folder', str(tmp_path / 'line'), '--methods', 'raw,nearest',
        '--report', str(tmp_path / 'report')]) == 0
    assert (tmp_path / 'report' / 'index.html').read_text().count('<img ') == 3 + 2 * 3


@pytest.mark.parametrize(('option', 'words'), [
    ('--json', 'json: expected a file that can be written'),
    ('--markdown', 'expected a file, got nothing there')])
def test_a_place_that_cannot_be_written_is_said_at_the_start(tmp_path, capsys, option, words):
    write_plain(tmp_path / 'scene', True)
    assert main([
        'evaluate', 'folder', str(tmp_path / 'scene'), '--methods', 'raw',
        option, str(tmp_path / 'nowhere' / 'file')]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ''  # nothing was evaluated


@pytest.mark.parametrize(('arguments', 'words'), [
    (('middlebury', 'nowhere'), 'expected a folder'),
    (('middlebury', 'data', '--methods', 'magic'), "got 'magic'"),
    (('kitti', 'data'), 'expected image_2'),
])
def test_what_is_wrong_is_said(report, capsys, arguments, words):
    kind, folder, *rest = arguments
    assert main(['evaluate', kind, str(report / folder), '--preset', 'realtime', *rest]) == 2
    assert words in capsys.readouterr().err
