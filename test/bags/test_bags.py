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
"""Test reading and writing of recordings, good and bad."""

from bag_helpers import frames, write_bag
import pytest

from graph_depth_refiner.bags.bags import (
    Bag,
    BagWriter,
    is_bag,
    Message,
    message_bytes,
    METADATA,
    reading,
    Topic,
    TYPES,
)
from graph_depth_refiner.bags.make_bag import info_fields, make_header
from graph_depth_refiner.cli.main import main

ODD = 'my_msgs/msg/Odd'  # a type nobody knows but the recording
TEXT = 'std_msgs/msg/String'


def text_message(topic, number, words):
    """Return a stored String."""
    data = bytes(TYPES.serialize_cdr(TYPES.types[TEXT](words), TEXT))
    return Message(topic, TEXT, number * 10 ** 9, data)


def refused(capsys, *arguments):
    """Run a command that must be refused; return what it said."""
    assert main([str(a) for a in arguments]) in (1, 2)
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1, said
    return said


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_parts_make_one_bag(tmp_path, storage):
    writer = BagWriter(tmp_path, storage, [Topic('/a', TEXT), Topic('/b', TEXT)], [])
    sent = [text_message('/a', 1, 'one'), text_message('/b', 2, 'two'),
            text_message('/a', 3, 'three')]
    for message in sent:
        writer.write(message)
        writer.finish()
    with reading(tmp_path) as bag:
        assert list(bag.messages()) == sent
        assert [t.name for t in bag.topics()] == ['/a', '/b']
        assert bag.storage == storage
    assert len(writer.parts) == 3


def test_no_messages_make_a_bag_too(tmp_path):
    BagWriter(tmp_path, 'mcap', [Topic('/a', TEXT)], []).finish()
    with reading(tmp_path) as bag:
        assert list(bag.messages()) == []


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_unknown_types_are_kept_as_they_are(tmp_path, storage):
    odd = Topic('/odd', ODD, 'int32 number\n', 'RIHS01_' + '7' * 64)
    (tmp_path / 'one').mkdir()
    writer = BagWriter(tmp_path / 'one', storage, [odd], [])
    writer.write(Message('/odd', ODD, 5, b'\x00\x01\x00\x00\x07\x00\x00\x00'))
    writer.finish()
    with reading(tmp_path / 'one') as bag:
        (topic,), messages = bag.topics(), list(bag.messages())
    (tmp_path / 'two').mkdir()
    copy = BagWriter(tmp_path / 'two', storage, [topic], [])
    for message in messages:
        copy.write(message)
    copy.finish()
    with reading(tmp_path / 'two') as bag:
        assert bag.topics() == [topic]
        assert list(bag.messages()) == messages
    assert topic.definition.strip() == 'int32 number'


def test_a_single_file_is_a_recording(tmp_path):
    source = write_bag(tmp_path / 'in', 2)
    with reading(source / 'part_0.mcap') as bag:
        assert len(list(bag.messages())) == 6
    (source / METADATA).unlink()  # the recorder was killed
    with reading(source) as bag:
        assert len(list(bag.messages())) == 6
    assert is_bag(source / 'part_0.mcap')
    assert not is_bag(source)


def test_stamps_are_read_without_decoding():
    frame = next(frames(1))
    kind = 'sensor_msgs/msg/CameraInfo'
    data = message_bytes(kind, make_header(3_250_000_000), info_fields(frame))
    message = Message('/camera_info', kind, 0, data)
    assert message.stamp() == 3.25
    assert message.decoded().k[0] == frame.intrinsics.fx


def test_damaged_messages_are_one_sentence():
    with pytest.raises(ValueError, match='/depth: expected a sensor_msgs/msg/Image, got 5 bytes'):
        Message('/depth', 'sensor_msgs/msg/Image', 0, b'\0\1\0\0\7').decoded()
    with pytest.raises(ValueError, match='expected a message with a header, got 5 bytes'):
        Message('/depth', 'sensor_msgs/msg/Image', 0, b'\0\1\0\0\7').stamp()


@pytest.mark.parametrize(('storage', 'suffix'), [('mcap', 'mcap'), ('sqlite3', 'db3')])
@pytest.mark.parametrize('share', [0.0, 0.1, 0.5, 0.9])
def test_a_truncated_recording_is_one_sentence(tmp_path, capsys, storage, suffix, share):
    source = write_bag(tmp_path / 'in', 6, storage)
    path = source / f'part_0.{suffix}'
    data = path.read_bytes()
    path.write_bytes(data[:int(share * len(data))])
    said = refused(capsys, 'refine-bag', source, tmp_path / 'out')
    assert 'truncated' in said
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize(('name', 'data'), [
    ('notes.txt', b'hello'), ('photo.png', b'\x89PNG'), ('a.mcap', b'hello'), ('a.db3', b'hello')])
def test_a_wrong_file_is_one_sentence(tmp_path, capsys, name, data):
    (tmp_path / name).write_bytes(data)
    said = refused(capsys, 'refine-bag', tmp_path / name, tmp_path / 'out')
    assert 'expected a recording (a folder' in said
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize('metadata', ['', 'hello', 'rosbag2_bagfile_information: {version: 9}'])
def test_wrong_metadata_is_one_sentence(tmp_path, capsys, metadata):
    source = tmp_path / 'in'
    source.mkdir()
    (source / METADATA).write_text(metadata)
    assert 'expected a recording (a folder' in refused(
        capsys, 'refine-bag', source, tmp_path / 'o')


def test_nothing_there_is_one_sentence(tmp_path, capsys):
    assert 'nothing there' in refused(capsys, 'refine-bag', tmp_path / 'no', tmp_path / 'out')


def test_a_recording_without_depth_is_one_sentence(tmp_path, capsys):
    (tmp_path / 'in').mkdir()
    writer = BagWriter(tmp_path / 'in', 'mcap', [Topic('/chatter', TEXT)], [])
    writer.write(text_message('/chatter', 1, 'hello'))
    writer.finish()
    said = refused(capsys, 'refine-bag', tmp_path / 'in', tmp_path / 'out')
    assert 'topics: expected a depth topic, got /chatter' in said
    assert not (tmp_path / 'out').exists()


def test_the_fingerprint_tells_recordings_apart(tmp_path):
    one, two = write_bag(tmp_path / 'one', 2), write_bag(tmp_path / 'two', 3)

    def fingerprint(path):
        with reading(path) as bag:
            assert isinstance(bag, Bag)
            return bag.fingerprint

    assert fingerprint(one) == fingerprint(one)
    assert fingerprint(one) != fingerprint(two)
