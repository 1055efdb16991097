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
"""Read recordings and write those of ROS 2 (sqlite3 and mcap) without ROS, by `rosbags`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
import os
from pathlib import Path
import shutil
import struct
from typing import Any

import numpy as np
from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import get_types_from_msg, get_typestore, Stores
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

STORAGES = {'mcap': StoragePlugin.MCAP, 'sqlite3': StoragePlugin.SQLITE3}
SUFFIXES = {'.mcap': 'mcap', '.db3': 'sqlite3'}
ROS1_SUFFIX = '.bag'
METADATA = 'metadata.yaml'
INFORMATION = 'rosbag2_bagfile_information'
ORIGIN = 'graph_depth_refiner'  # key among the custom data of the metadata
UNKNOWN_HASH = 'RIHS01_' + '0' * 64
# fields that are messages of their own, by type and name
NESTED = {
    ('stereo_msgs/msg/DisparityImage', 'image'): 'sensor_msgs/msg/Image',
    ('sensor_msgs/msg/PointCloud2', 'fields'): 'sensor_msgs/msg/PointField',
}
TYPES = get_typestore(Stores.ROS2_JAZZY)


@dataclass(frozen=True)
class Topic:
    """One topic of a bag to be written."""

    name: str
    kind: str  # message type
    definition: str | None = None  # None where the type is a common one
    digest: str | None = None
    qos: tuple = ()


@dataclass(frozen=True)
class Message:
    """One stored message, undecoded."""

    topic: str
    kind: str
    time: int  # when it was recorded, ns
    data: bytes

    def decoded(self) -> Any:
        """Return the message with the fields ROS gives it."""
        try:
            return TYPES.deserialize_cdr(self.data, self.kind)
        except Exception as error:  # rosbags raises whatever comes: struct, Unicode, key errors
            raise ValueError(
                f'{self.topic}: expected a {self.kind}, got {len(self.data)} bytes that are none '
                f'({type(error).__name__})') from None

    def stamp(self) -> float:
        """Return the stamp of the header in seconds, without decoding the rest."""
        if len(self.data) < 12:
            raise ValueError(
                f'{self.topic}: expected a message with a header, got {len(self.data)} bytes')
        order = '<' if self.data[1] & 1 else '>'  # the encapsulation says which
        seconds, nanoseconds = struct.unpack_from(f'{order}iI', self.data, 4)
        return seconds + nanoseconds * 1e-9


class Bag:
    """An open recording."""

    def __init__(self, path: Path, reader: Reader) -> None:
        """Keep the reader."""
        self.path, self._reader = path, reader

    @property
    def storage(self) -> str:
        """Return how it is stored, a name of STORAGES."""
        suffix = next(
            (p.suffix for p in [self.path, *sorted(self._files())] if p.suffix in SUFFIXES), '')
        return SUFFIXES.get(suffix, 'sqlite3')

    @property
    def fingerprint(self) -> tuple:
        """Return what tells this recording from another."""
        sizes = tuple((p.name, p.stat().st_size) for p in sorted(self._files()))
        return (sizes, self._reader.message_count, self._reader.start_time)

    def count(self, topic: str) -> int:
        """Return the number of messages of a topic."""
        return sum(c.msgcount for c in self._reader.connections if c.topic == topic)

    def topics(self) -> list[Topic]:
        """Return the topics in the order of the recording, each once."""
        topics = {}
        for connection in self._reader.connections:
            topics.setdefault((connection.topic, connection.msgtype), _topic(connection))
        return list(topics.values())

    @property
    def left_out(self) -> list[str]:
        """Return the topics that are not read."""
        return []

    def messages(self, topics: Collection[str] | None = None) -> Iterator[Message]:
        """Yield every message, or those of some topics, in the order of recording."""
        count = 0
        wanted = [
            c for c in self._reader.connections if topics is None or c.topic in topics]
        try:
            # rosbags takes an empty choice for all
            for connection, time, data in self._reader.messages(wanted) if wanted else ():
                yield Message(connection.topic, connection.msgtype, time, bytes(data))
                count += 1
        except Exception as error:  # of rosbags, apsw, struct: all mean that it cannot be read
            raise ValueError(
                f'{self.path}: expected a whole recording, got one that is truncated or damaged '
                f'after {count} messages ({_reason(error)})') from None

    def _files(self) -> list[Path]:
        if self.path.is_file():
            return [self.path]
        return [p for p in self.path.iterdir() if p.is_file() and p.name != METADATA]


@contextmanager
def reading(path: Path) -> Iterator[Bag]:
    """Open a recording: a folder with metadata.yaml, or a .mcap, .db3 or ROS 1 .bag file."""
    path = _only_file(Path(path))
    if path.suffix == ROS1_SUFFIX and path.is_file():
        from graph_depth_refiner.bags.ros1 import open_ros1  # which builds on this module
        bag, reader = open_ros1(path)
    else:
        bag, reader = _open(path)
    try:
        yield bag
    finally:
        reader.close()


def _open(path: Path) -> tuple[Bag, Reader]:
    try:
        reader = Reader(path)
        reader.open()
    except Exception as error:
        raise ValueError(
            f'{path}: expected a recording (a folder with {METADATA}, .mcap, .db3, or .bag of '
            f'ROS 1), got one that is truncated, damaged or something else ({_reason(error)})'
        ) from None
    return Bag(path, reader), reader


def origin_of(folder: Path) -> str:
    """Return what a bag was made from, if this package made it."""
    try:
        information = YAML(typ='safe').load((folder / METADATA).read_text())[INFORMATION]
        return str(information['custom_data'][ORIGIN])
    except (OSError, KeyError, TypeError, ValueError, YAMLError):
        return ''


def is_bag(path: Path) -> bool:
    """Say whether a path looks like a recording."""
    suffixes = (*SUFFIXES, ROS1_SUFFIX)
    return path.suffix in suffixes if path.is_file() else (path / METADATA).is_file()


def message_bytes(kind: str, header: Any, fields: dict[str, Any]) -> bytes:
    """Return the stored form of a message made of a header and the other fields."""
    return bytes(TYPES.serialize_cdr(_message(kind, {'header': header, **fields}), kind))


class BagWriter:
    """
    Writes a recording in parts of one file each, as `ros2 bag record` splits.

    Whenever a part is finished the folder is a whole, readable bag. What it holds depends on
    the messages alone: not on the time, the path or the run.
    """

    def __init__(self, folder: Path, storage: str, topics: list[Topic],
                 parts: list[dict[str, Any]], origin: str = '') -> None:
        """Go on after the parts of an earlier run; `origin` says what the bag was made from."""
        self._folder, self._storage, self._topics = folder, storage, topics
        self._origin = origin
        self.parts = list(parts)
        self.bytes = 0  # of messages in the unfinished part
        self._writer: Writer | None = None
        self._connections: dict[tuple[str, str], Connection] = {}
        self._clear()
        if self.parts:
            self._write_metadata()

    def write(self, message: Message) -> None:
        """Append one message to the unfinished part."""
        if self._writer is None:
            self._begin()
        connection = self._connections[message.topic, message.kind]
        self._writer.write(connection, message.time, message.data)
        self.bytes += len(message.data)

    def finish(self) -> None:
        """Close the unfinished part and let it belong to the bag."""
        if self._writer is None:
            if self.parts:
                return
            self._begin()  # a bag of no messages is a bag too
        writer, self._writer, self.bytes = self._writer, None, 0
        try:
            writer.close()
        except BaseException:
            writer.abort()
            raise
        information = YAML(typ='safe').load((writer.path / METADATA).read_text())[INFORMATION]
        name = information['relative_file_paths'][0]
        os.replace(writer.path / name, self._folder / name)
        shutil.rmtree(writer.path.parent)
        self.parts.append(information)
        self._write_metadata()

    def discard(self) -> None:
        """Drop the unfinished part."""
        if self._writer is not None:
            writer, self._writer, self.bytes = self._writer, None, 0
            writer.abort()
        shutil.rmtree(self._scratch, ignore_errors=True)

    @property
    def _scratch(self) -> Path:
        return self._folder / 'unfinished'

    def _begin(self) -> None:
        # not named after the folder: the same messages make the same bytes anywhere
        path = self._scratch / f'part_{len(self.parts)}'
        self._writer = Writer(
            path, version=Writer.VERSION_LATEST, storage_plugin=STORAGES[self._storage])
        if self._origin:
            self._writer.set_custom_data(ORIGIN, self._origin)
        self._writer.open()
        self._connections = {(t.name, t.kind): self._add(t) for t in self._topics}

    def _add(self, topic: Topic) -> Connection:
        known = {} if topic.definition is None else {
            'msgdef': topic.definition, 'rihs01': topic.digest or UNKNOWN_HASH}
        return self._writer.add_connection(
            topic.name, topic.kind, typestore=TYPES, offered_qos_profiles=topic.qos, **known)

    def _clear(self) -> None:
        """Remove what an interrupted run left behind after its last finished part."""
        shutil.rmtree(self._scratch, ignore_errors=True)
        kept = {name for part in self.parts for name in part['relative_file_paths']}
        for path in self._folder.glob('part_*'):
            if path.name not in kept:
                path.unlink()
        if not self.parts:
            (self._folder / METADATA).unlink(missing_ok=True)

    def _write_metadata(self) -> None:
        stream = StringIO()
        yaml = YAML(typ='safe')
        yaml.default_flow_style = False
        yaml.dump({INFORMATION: merged(self.parts)}, stream)
        replace_file(self._folder / METADATA, stream.getvalue().encode())


def merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the metadata of a bag from those of its parts."""
    files = [file for part in parts for file in part['files'] if file['message_count']]
    spans = [
        (start := file['starting_time']['nanoseconds_since_epoch'],
         start + file['duration']['nanoseconds']) for file in files] or [(0, 0)]
    first, last = min(start for start, _ in spans), max(end for _, end in spans)
    topics = []
    for rows in zip(*(part['topics_with_message_count'] for part in parts), strict=True):
        count = sum(row['message_count'] for row in rows)
        topics.append({**rows[0], 'message_count': count})
    return {
        **parts[0],
        'relative_file_paths': [p for part in parts for p in part['relative_file_paths']],
        'files': [file for part in parts for file in part['files']],
        'starting_time': {'nanoseconds_since_epoch': first},
        'duration': {'nanoseconds': last - first},
        'message_count': sum(part['message_count'] for part in parts),
        'topics_with_message_count': topics,
    }


def replace_file(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    scratch = path.with_name(path.name + '.new')
    scratch.write_bytes(data)
    os.replace(scratch, path)


def _only_file(path: Path) -> Path:
    """Return the storage file of a folder whose metadata was never written."""
    if path.is_dir() and not (path / METADATA).exists():
        files = [p for p in path.iterdir() if p.suffix in SUFFIXES]
        if len(files) == 1:
            return files[0]
    return path


def _topic(connection: Connection) -> Topic:
    """Keep the definition that came with the recording; find it where there is none."""
    qos = tuple(connection.ext.offered_qos_profiles)
    if connection.msgtype in TYPES.fielddefs and not connection.digest:
        return Topic(connection.topic, connection.msgtype, qos=qos)
    has_none = connection.msgdef.format == MessageDefinitionFormat.NONE
    if has_none and connection.msgtype in TYPES.fielddefs:
        return Topic(connection.topic, connection.msgtype, qos=qos)
    definition = connection.msgdef.data
    return Topic(
        connection.topic, connection.msgtype, definition,
        connection.digest or _digest(definition, connection.msgtype), qos)


def _digest(definition: str, kind: str) -> str:
    """Return the hash of a type known by its definition alone."""
    try:
        store = get_typestore(Stores.ROS2_JAZZY)
        store.register(get_types_from_msg(definition, kind))
        return store.hash_rihs01(kind)
    except Exception:  # without it the messages are still worth keeping
        return UNKNOWN_HASH


def _message(kind: str, fields: dict[str, Any]) -> Any:
    made = {}
    for name, value in fields.items():
        inner = NESTED.get((kind, name))
        if inner and isinstance(value, list):
            value = [_message(inner, part) for part in value]
        elif inner and isinstance(value, dict):
            value = _message(inner, {'header': fields['header'], **value})
        elif isinstance(value, (list, tuple)):
            value = np.array(value, np.float64)
        made[name] = value
    return TYPES.types[kind](**made)


def _reason(error: Exception) -> str:
    text = ' '.join(str(error).split()).rstrip('.')
    return text or type(error).__name__
