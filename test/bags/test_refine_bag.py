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
"""Test that recordings are refined whole, in order and always to the same bytes."""

import argparse
from pathlib import Path
import pickle
import sqlite3
from types import SimpleNamespace

from bag_helpers import frames, RunningMean, SHAPE, write_bag
import numpy as np
import pytest

from graph_depth_refiner.bags import refine_bag, refinement
from graph_depth_refiner.bags.bags import BagWriter, Message, reading
from graph_depth_refiner.bags.make_bag import messages, topics
from graph_depth_refiner.refiner import DepthRefiner

PART = 12000  # bytes: about two frames of this size with their results


@pytest.fixture(autouse=True)
def cheap_refiner(monkeypatch):
    """Refine by a running mean, so that the past matters and the tests are fast."""
    monkeypatch.setattr(refinement, 'DepthRefiner', RunningMean)


def job(source, target, *options):
    """Return the job the command line would run."""
    parser = argparse.ArgumentParser()
    refine_bag.add_arguments(parser)
    made, = refine_bag.plan(parser.parse_args([str(source), str(target), *options]))
    return made


def split_job(source, target, *options):
    """Return a job that splits into several parts of this small recording."""
    made = job(source, target, *options)
    return type(made)(**{**vars(made), 'part_bytes': PART})


def contents(folder):
    """Return the bytes of every file of a recording, by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def stored(folder, ending):
    """Return the messages of the topics with this ending."""
    with reading(folder) as bag:
        return [m for m in bag.messages() if m.topic.endswith(ending)]


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
@pytest.mark.parametrize('compressed', [False, True])
def test_every_frame_in_order_and_the_input_untouched(tmp_path, storage, compressed):
    source = write_bag(tmp_path / 'in', 6, storage, compressed)
    summary = refinement.refine_bag(job(source, tmp_path / 'out'))
    assert (summary.frames, summary.total, summary.stopped) == (6, 6, '')
    with reading(source) as bag:
        before = list(bag.messages())
    with reading(tmp_path / 'out') as bag:
        assert bag.storage == storage
        after = list(bag.messages())
    refined = [m for m in after if '_refined/' in m.topic or '/normals/' in m.topic]
    assert [m for m in after if m not in refined] == before
    depths = [m for m in refined if m.topic == '/camera/depth_refined/image']
    assert [m.stamp() for m in depths] == pytest.approx([f.stamp for f in frames(6)])
    assert len(refined) == 6 * 6  # six topics of six frames
    # a running mean of the first two frames, the second 0.01 m nearer: 0.005 m less
    first, second = (
        np.frombuffer(m.decoded().data, np.uint16 if compressed else np.float32).reshape(SHAPE)
        for m in depths[:2])
    unit = 1000 if compressed else 1
    assert (first[0, 0] - second[0, 0]) / unit == pytest.approx(0.005, abs=5e-4)


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_twice_the_same_bytes(tmp_path, storage):
    source = write_bag(tmp_path / 'in', 6, storage)
    for name in ('one', 'two'):
        refinement.refine_bag(split_job(source, tmp_path / name))
    assert contents(tmp_path / 'one') == contents(tmp_path / 'two')
    assert len(contents(tmp_path / 'one')) > 3  # it was split


@pytest.mark.parametrize(('storage', 'killed_after'), [
    *(('mcap', frame) for frame in range(6)), ('sqlite3', 4)])
def test_killed_and_run_again_gives_the_same_bytes(tmp_path, monkeypatch, storage, killed_after):
    source = write_bag(tmp_path / 'in', 6, storage)
    refinement.refine_bag(split_job(source, tmp_path / 'whole'))

    class Killed(Exception):
        """Nothing handles this, as nothing handles SIGKILL."""

    left = [killed_after]

    def refine(self, frame, plain=RunningMean.refine):
        if not left[0]:
            raise Killed
        left[0] -= 1
        return plain(self, frame)

    with monkeypatch.context() as patch:
        patch.setattr(RunningMean, 'refine', refine)
        with pytest.raises(Killed):
            refinement.refine_bag(split_job(source, tmp_path / 'killed'))
    begun = []
    summary = refinement.refine_bag(
        split_job(source, tmp_path / 'killed'), lambda total, done: begun.append(done))
    assert summary.frames == 6
    assert contents(tmp_path / 'killed') == contents(tmp_path / 'whole')
    assert begun[0] <= killed_after
    assert begun[0] > 0 or killed_after < 3  # it did not start from the beginning


def test_a_killed_run_goes_on_with_what_the_refiner_has_learned(tmp_path, monkeypatch):
    monkeypatch.setattr(refinement, 'DepthRefiner', DepthRefiner)
    source, left = write_bag(tmp_path / 'in', 6, still=True), [4]
    refinement.refine_bag(split_job(source, tmp_path / 'whole'))

    def count():
        left[0] -= 1
        if not left[0]:
            raise MemoryError

    with pytest.raises(MemoryError):
        refinement.refine_bag(split_job(source, tmp_path / 'killed'), advanced=count)
    _, saved = pickle.loads((tmp_path / 'killed' / refinement.RESUME).read_bytes())
    assert saved.frame > 0 and saved.state.history is not None
    assert refinement.refine_bag(split_job(source, tmp_path / 'killed')).frames == 6
    assert contents(tmp_path / 'killed') == contents(tmp_path / 'whole')


def test_an_interrupted_run_leaves_a_readable_bag_and_goes_on(tmp_path):
    source = write_bag(tmp_path / 'in', 6)
    refinement.refine_bag(split_job(source, tmp_path / 'whole'))
    done = []
    summary = refinement.refine_bag(
        split_job(source, tmp_path / 'out'), advanced=lambda: done.append(1),
        wanted=lambda: len(done) < 4)
    assert (summary.frames, summary.total, summary.stopped) == (4, 6, 'interrupted')
    assert len(stored(tmp_path / 'out', 'depth_refined/image')) == 4
    refinement.refine_bag(split_job(source, tmp_path / 'out'))
    assert contents(tmp_path / 'out') == contents(tmp_path / 'whole')


@pytest.mark.parametrize('noticed', [True, False])
def test_a_full_disk_leaves_a_readable_bag_and_goes_on(tmp_path, monkeypatch, noticed):
    source = write_bag(tmp_path / 'in', 6)
    refinement.refine_bag(split_job(source, tmp_path / 'whole'))
    written = []
    with monkeypatch.context() as patch:
        if noticed:  # there is some space left to close the recording
            patch.setattr(refinement.shutil, 'disk_usage', lambda path: SimpleNamespace(
                free=0 if len(written) > 30 else 10 ** 12))

        def write(self, message, plain=BagWriter.write):
            written.append(message)
            if not noticed and len(written) > 30:
                raise OSError(28, 'No space left on device')
            plain(self, message)

        patch.setattr(BagWriter, 'write', write)
        summary = refinement.refine_bag(split_job(source, tmp_path / 'out'))
    assert summary.stopped == 'the disk is full'
    assert 0 < summary.frames < 6
    assert len(stored(tmp_path / 'out', 'depth_refined/image')) == summary.frames
    assert refine_bag.report(summary) == 1
    refinement.refine_bag(split_job(source, tmp_path / 'out'))
    assert contents(tmp_path / 'out') == contents(tmp_path / 'whole')


@pytest.mark.parametrize(('error', 'why'), [
    (sqlite3.OperationalError('disk I/O error'), 'the disk is full, over quota or failing'),
    (sqlite3.OperationalError('database or disk is full'), 'the disk is full'),
    (OSError(27, 'File too large'), 'the disk is full')])
def test_no_space_for_the_first_part_is_said_as_it_is(tmp_path, monkeypatch, capsys, error, why):
    source = write_bag(tmp_path / 'in', 2, 'sqlite3')

    def write(self, message):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(BagWriter, 'write', write)
        summary = refinement.refine_bag(job(source, tmp_path / 'out'))
    assert (summary.stopped, summary.readable) == (why, False)
    assert refine_bag.report(summary) == 1
    assert capsys.readouterr().err == (
        f'{tmp_path / "out"}: {why}: nothing readable was written yet; '
        'run the same command again to go on\n')
    assert refinement.refine_bag(job(source, tmp_path / 'out')).frames == 2


def test_another_error_of_the_database_is_not_called_a_full_disk(tmp_path, monkeypatch):
    def write(self, message):
        raise sqlite3.OperationalError('database is locked')

    monkeypatch.setattr(BagWriter, 'write', write)
    with pytest.raises(sqlite3.OperationalError, match='locked'):
        refinement.refine_bag(job(write_bag(tmp_path / 'in', 2), tmp_path / 'out'))


def leave_nothing_but_the_state(source, target, *options):
    """Run a job that is killed before its first part is whole."""
    def kill():
        raise MemoryError

    with pytest.raises(MemoryError):
        refinement.refine_bag(job(source, target, *options), advanced=kill)
    assert (target / refinement.RESUME).exists()


def test_a_run_that_left_nothing_does_not_bind_the_next(tmp_path):
    source = write_bag(tmp_path / 'in', 2)
    leave_nothing_but_the_state(source, tmp_path / 'out')
    assert refinement.refine_bag(
        job(source, tmp_path / 'out', '--set', 'solver.iterations=2')).frames == 2


@pytest.mark.parametrize('damage', [b'', b'hello', b'\x80\x05N.', b'cos\nnothing\n.', b'I1\n0.'])
def test_a_damaged_state(tmp_path, damage):
    source = write_bag(tmp_path / 'in', 6)
    leave_nothing_but_the_state(source, tmp_path / 'empty')
    (tmp_path / 'empty' / refinement.RESUME).write_bytes(damage)
    assert refinement.refine_bag(job(source, tmp_path / 'empty')).frames == 6
    refinement.refine_bag(job(source, tmp_path / 'begun'), wanted=lambda: False)
    (tmp_path / 'begun' / refinement.RESUME).write_bytes(damage)
    with pytest.raises(ValueError, match='got a damaged file; remove .*begun to start anew'):
        refinement.refine_bag(job(source, tmp_path / 'begun'))


def test_other_settings_do_not_go_on_with_an_old_run(tmp_path):
    source = write_bag(tmp_path / 'in', 4)
    refinement.refine_bag(job(source, tmp_path / 'out'), wanted=lambda: False)
    with pytest.raises(ValueError, match='got one begun from another recording or with other'):
        refinement.refine_bag(job(source, tmp_path / 'out', '--set', 'solver.iterations=2'))


def test_a_finished_job_is_not_done_again(tmp_path, capsys):
    source = write_bag(tmp_path / 'in', 2)
    refinement.refine_bag(job(source, tmp_path / 'out'))
    before = contents(tmp_path / 'out')
    summary = refinement.refine_bag(job(source, tmp_path / 'out'))
    assert (summary.frames, summary.already) == (2, True)
    assert refine_bag.report(summary) == 0
    assert 'complete already: 2 of 2' in capsys.readouterr().out
    assert contents(tmp_path / 'out') == before
    with pytest.raises(ValueError, match='expected a new folder'):
        refinement.refine_bag(job(source, tmp_path / 'out', '--set', 'solver.iterations=2'))
    assert contents(tmp_path / 'out') == before


def test_refined_topics_are_not_refined_again(tmp_path):
    source = write_bag(tmp_path / 'in', 2)
    refinement.refine_bag(job(source, tmp_path / 'out'))
    with pytest.raises(ValueError, match='choose another --namespace'):
        refinement.refine_bag(job(tmp_path / 'out', tmp_path / 'again'))
    summary = refinement.refine_bag(
        job(tmp_path / 'out', tmp_path / 'again', '--namespace', '/twice'))
    assert summary.frames == 2


def test_damaged_frames_are_skipped_and_said(tmp_path, capsys):
    source = tmp_path / 'in'
    source.mkdir()
    writer = BagWriter(source, 'mcap', topics(False), [])
    for number, frame in enumerate(frames(3)):
        for message in messages((frame, round(frame.stamp * 1e9)), False):
            if number == 1 and message.topic.endswith('depth/image'):
                message = Message(message.topic, message.kind, message.time, message.data[:-40])
            writer.write(message)
    writer.finish()
    summary = refinement.refine_bag(job(source, tmp_path / 'out'))
    assert (summary.frames, summary.total) == (2, 3)
    assert refine_bag.report(summary) == 0
    assert '2 of 3 frames refined; 1 skipped: /camera/depth/image' in capsys.readouterr().out


@pytest.mark.parametrize(('ending', 'length', 'words'), [
    ('depth/image', -40, '2 of 3 frames refined; 1 skipped: /camera/depth/image'),
    ('depth/image', 8, '2 of 2 frames refined; 1 messages are too damaged'),
    ('rgb/camera_info', 8, '3 of 3 frames refined; 1 messages are too damaged')])
def test_a_damaged_first_message_does_not_refuse_the_rest(
        tmp_path, capsys, ending, length, words):
    source = tmp_path / 'in'
    source.mkdir()
    writer = BagWriter(source, 'mcap', topics(False), [])
    for number, frame in enumerate(frames(3)):
        for message in messages((frame, round(frame.stamp * 1e9)), False):
            if number == 0 and message.topic.endswith(ending):
                message = Message(
                    message.topic, message.kind, message.time, message.data[:length])
            writer.write(message)
    writer.finish()
    assert refine_bag.report(refinement.refine_bag(job(source, tmp_path / 'out'))) == 0
    assert words in capsys.readouterr().out
    with reading(source) as before, reading(tmp_path / 'out') as after:
        kept = [m for m in after.messages() if not m.topic.startswith('/camera/normals')
                and '_refined' not in m.topic]
        assert kept == list(before.messages())


def test_depth_without_an_image_near_in_time_is_said(tmp_path, capsys):
    source = tmp_path / 'in'
    source.mkdir()
    writer = BagWriter(source, 'mcap', topics(False), [])
    for number, frame in enumerate(frames(9)):
        for message in messages((frame, round(frame.stamp * 1e9)), False):
            if number < 5 or not message.topic.endswith('image_color'):
                writer.write(message)
    writer.finish()
    summary = refinement.refine_bag(job(source, tmp_path / 'out', '--slop', '0.04'))
    # the image of frame 4 is 1/30 s from frame 5 and 2/30 s from frame 6
    assert (summary.frames, summary.unmatched) == (6, 3)
    refine_bag.report(summary)
    assert '3 depth images have no image near enough' in capsys.readouterr().out


def test_points_only_where_asked_for(tmp_path):
    source = write_bag(tmp_path / 'in', 1)
    refinement.refine_bag(job(source, tmp_path / 'out', '--points', '--storage', 'sqlite3'))
    cloud, = stored(tmp_path / 'out', '/points')
    assert (cloud.decoded().height, cloud.decoded().width) == SHAPE
    assert [field.name for field in cloud.decoded().fields][:3] == ['x', 'y', 'z']


def test_disparity_comes_out_only_where_it_came_in(tmp_path):
    source = write_bag(tmp_path / 'in', 1)
    with pytest.raises(ValueError, match='outputs: expected disparity_refined for a stereo_msgs'):
        refinement.refine_bag(job(source, tmp_path / 'out', '--outputs', 'disparity_refined'))


def planned(*arguments):
    """Return source and target of the jobs of a command line."""
    parser = argparse.ArgumentParser()
    refine_bag.add_arguments(parser)
    jobs = refine_bag.plan(parser.parse_args([*map(str, arguments)]))
    return [(one.source, one.target) for one in jobs]


def test_paths_do_not_depend_on_where_a_worker_runs(tmp_path, monkeypatch):
    write_bag(tmp_path / 'in', 1)
    monkeypatch.chdir(tmp_path)
    assert planned('in', 'out') == [(tmp_path / 'in', tmp_path / 'out')]
    assert planned('i*', 'out') == [(tmp_path / 'in', tmp_path / 'out/in')]


def test_a_folder_of_one_recording_and_names_with_dots(tmp_path):
    write_bag(tmp_path / 'many/run_1.5', 1)
    out = tmp_path / 'out'
    assert planned(tmp_path / 'many', out) == [
        (tmp_path / 'many/run_1.5', out / 'run_1.5')]
    write_bag(tmp_path / 'many/run_1.6', 1)
    Path(tmp_path / 'many/run_1.6/part_0.mcap').rename(tmp_path / 'many/run_1.7.mcap')
    assert [target.name for _, target in planned(tmp_path / 'many', out)] == [
        'run_1.5', 'run_1.6', 'run_1.7']


def test_a_folder_of_one_file_is_a_recording(tmp_path):
    source = write_bag(tmp_path / 'in', 1)
    (source / 'metadata.yaml').unlink()
    assert planned(source, tmp_path / 'out') == [(source, tmp_path / 'out')]
