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
"""The benchmarks run, and their records have the keys that scripts of users read."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from graph_depth_refiner.cli import main as cli
from graph_depth_refiner.lab.benchmarks import node
from graph_depth_refiner.lab.benchmarks.shedding import STREAMS
from graph_depth_refiner.ros.shedding import STAGES

SOLVER_KEYS = {
    'size', 'backend', 'preset', 'step_ms', 'graph_ms', 'autograd_step_ms', 'plain_graph_ms',
    'bytes_per_pixel', 'gb_per_s', 'stream_gb_per_s'}
STREAM_KEYS = {
    'method', 'depth_error_percent', 'depth_rms_percent', 'normal_error_deg',
    'temporal_noise_percent', 'ghosting_ratio', 'thin_lost_percent', 'ms_per_frame',
    'graph_hit_rate', 'curved_error_percent', 'completeness_percent', 'invented_percent',
    'flying_percent', 'regions', 'sensor', 'room'}
REGIONS = {'plane', 'curved', 'edge', 'thin', 'hole'}


@pytest.fixture
def records(tmp_path, capsys):
    """Return what runs a benchmark and reads its records."""
    def run(*words):
        file = tmp_path / 'records.json'
        assert cli.main(['benchmark', *words, '--json', str(file)]) == 0
        return json.loads(file.read_text()), capsys.readouterr().out
    return run


def test_solver_times_every_size_preset_and_backend(records):
    found, text = records(
        'solver', '--sizes', '32x24', '320x240', '400x300', '--backends', 'fused', 'torch',
        '--presets', 'realtime', '--repeat', '2')
    assert {(one['size'], one['backend']) for one in found} == {
        (size, backend) for size in ('32x24', '320x240', '400x300')
        for backend in ('fused', 'torch')}
    assert all(set(one) == SOLVER_KEYS and one['preset'] == 'realtime' for one in found)
    assert all(one[key] > 0 for one in found for key in SOLVER_KEYS if key.endswith('_ms'))
    assert 'realtime fused: step ~ pixels^' in text


def test_stream_scores_every_method(records):
    methods = ['input', 'realsense', 'cold-10', 'unwarped-10', 'ours', 'ours-odometry']
    found, text = records(
        'stream', '--size', '96x72', '--frames', '6', '--motion', 'object', '--no-reference',
        '--sensor', 'independent', '--room', 'furnished', '--methods', *methods)
    assert [one['method'] for one in found] == methods
    assert all(set(one) >= STREAM_KEYS for one in found)
    error = {one['method']: one['depth_error_percent'] for one in found}
    assert error['ours'] < error['input']
    assert all(method in text for method in methods)


def test_stream_is_hard_by_default_and_tells_regions_apart(records):
    found, text = records(
        'stream', '--size', '128x96', '--frames', '6', '--no-reference', '--cpu-repeat', '2',
        '--methods', 'input', 'ours-5')
    came, ours = found
    assert (came['sensor'], came['room']) == ('active-stereo', 'clutter')
    assert set(came['regions']) == REGIONS
    shares = [came['regions'][name]['share_percent'] for name in REGIONS]
    assert all(share > 1 for share in shares)
    assert came['invented_percent'] == 0
    for name in ('plane', 'edge', 'hole'):
        error = [one['regions'][name]['depth_error_percent'] for one in (ours, came)]
        assert error[0] < error[1]
    assert 'active-stereo, clutter room' in text and 'by region' in text
    assert 'cpu_ms_per_frame' not in came
    assert 0 < sum(ours['stages_cpu_ms'].values()) <= 1.01 * ours['cpu_ms_per_frame']
    assert f'cv2.bilateralFilter (float32, d = 9): {ours["bilateral_cpu_ms"]:.2f}' in text


def test_shedding_compares_the_stages(records):
    found, text = records(
        'shedding', '--size', '64x48', '--frames', '12', '--repeat', '1', '--stages-only')
    assert [one['work'] for one in found] == [f'stage {number}' for number in range(len(STAGES))]
    streams = {len(values) for one in found for name, values in one.items() if name != 'work'}
    assert streams == {len(STREAMS)}
    whole, *less = found
    assert all(np.mean(one['cpu_ms']) > 0 for one in found)
    assert all(one['normal_error_deg'] != whole['normal_error_deg'] for one in less)
    assert 'stage 1' in text and 'depth %' in text


@pytest.mark.parametrize('words, text', [
    (['shedding', '--frames', '2'], 'frames: expected at least 12, got 2'),
    (['solver', '--repeat', '0'], 'repeat: expected at least 1, got 0'),
    (['solver', '--sizes', '32'], "size: expected WIDTHxHEIGHT, got '32'"),
    (['stream', '--frames', '2'], 'frames: expected at least 6, got 2'),
    (['stream', '--methods', 'magic'], "got 'magic'"),
    (['node', '--hogs', '-1'], 'hogs: expected at least 0, got -1'),
])
def test_refuses_what_cannot_be_measured(capsys, words, text):
    assert cli.main(['benchmark', *words]) == 2
    assert text in capsys.readouterr().err


def test_the_dds_profile_is_found_without_an_installation(monkeypatch, tmp_path):
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    assert node.profile().is_file()


def test_what_the_node_took_is_summed_up():
    # ten frames, of which the last is lost; depth after 10 ms, the cloud after 20 ms
    sent = np.round(100 + np.arange(10) / 10, 6)
    arrivals = {
        topic: {stamp: stamp + delay for stamp in sent[:-1].tolist()}
        for topic, delay in (('depth_refined/image', 0.01), ('points', 0.02))}
    figures = node.summary({
        'start': 100, 'end': 101, 'arrivals': arrivals, 'received': 10, 'drops': {}, 'cpu': 0.18,
        'unexplained': 0, 'shedding_stage': 1, 'threads': 2, 'rss_mb_start': 1.0,
        'rss_mb_end': 1.0, 'recovery_seconds': 3.0, 'first_frame_seconds': 4.0},
        sent, SimpleNamespace(size='64x48', hz=10.0, seconds=1.0, dds='large', hogs=2))
    assert (figures['sent'], figures['refined'], figures['cpu_ms_per_frame']) == (10, 9, 20.0)
    assert figures['latency_ms_p95'] == 10 and figures['latency_all_outputs_ms_p95'] == 20
    assert figures['recovery_seconds'] == 3


def test_hogs_end_with_the_measurement():
    children = Path(f'/proc/self/task/{os.getpid()}/children')
    before = set(children.read_text().split())
    with node.hogs(2):
        running = set(children.read_text().split()) - before
        assert len(running) == 2
    assert not running & set(children.read_text().split())
