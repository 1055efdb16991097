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
"""Read the camera topics of ROS 1 recordings (.bag) as if they were of ROS 2."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rosbags.rosbag1 import Reader

from graph_depth_refiner.bags.bags import Message, Topic, TYPES
from graph_depth_refiner.bags.topics import CAMERA_INFO, COMPRESSED, DISPARITY, IMAGE

SUFFIX = '.bag'
# what a frame is made of; these types are the same in both but for the header's `seq`
READ = (IMAGE, COMPRESSED, CAMERA_INFO, DISPARITY)


class Ros1Bag:
    """An open ROS 1 recording, with what `plan_frames` and `read_inputs` need of a `Bag`."""

    def __init__(self, path: Path, reader: Reader) -> None:
        """Keep the reader."""
        self.path, self._reader = path, reader
        self._read = [c for c in reader.connections if c.msgtype in READ]

    def topics(self) -> list[Topic]:
        """Return the camera topics in the order of the recording, each once."""
        return [Topic(*one) for one in dict.fromkeys((c.topic, c.msgtype) for c in self._read)]

    def messages(self) -> Iterator[Message]:
        """Yield the messages of the camera topics in the order of recording."""
        count = 0
        try:
            if self._read:  # rosbags takes an empty choice for all
                for connection, time, data in self._reader.messages(self._read):
                    stored = bytes(TYPES.ros1_to_cdr(data, connection.msgtype))
                    yield Message(connection.topic, connection.msgtype, time, stored)
                    count += 1
        except Exception as error:  # of rosbags, struct, lz4: all mean that it cannot be read
            raise ValueError(
                f'{self.path}: expected a whole recording, got one that is truncated or damaged '
                f'after {count} messages ({type(error).__name__})') from None


@contextmanager
def reading_ros1(path: Path) -> Iterator[Ros1Bag]:
    """Open a ROS 1 recording."""
    try:
        reader = Reader(Path(path))
        reader.open()
    except Exception as error:
        raise ValueError(
            f'{path}: expected a ROS 1 recording ({SUFFIX}), got one that is truncated, damaged '
            f'or something else ({type(error).__name__})') from None
    try:
        yield Ros1Bag(Path(path), reader)
    finally:
        reader.close()
