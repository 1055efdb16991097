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

from collections.abc import Collection, Iterator
from pathlib import Path

from rosbags.rosbag1 import Reader

from graph_depth_refiner.bags.bags import Bag, Message, Topic, TYPES
from graph_depth_refiner.bags.places import ODOMETRY, POSE, TRANSFORMS
from graph_depth_refiner.bags.topics import CAMERA_INFO, COMPRESSED, DISPARITY, IMAGE

# what a frame is made of and where it was seen; these types are the same in both but for the
# header's `seq` and the package that tf messages once had
READ = {kind: kind for kind in (
    IMAGE, COMPRESSED, CAMERA_INFO, DISPARITY, TRANSFORMS, ODOMETRY, POSE)}
READ['tf/msg/tfMessage'] = TRANSFORMS


class Ros1Bag(Bag):
    """An open ROS 1 recording; what comes of it is stored as mcap."""

    storage = 'mcap'

    def __init__(self, path: Path, reader: Reader) -> None:
        """Keep the reader."""
        super().__init__(path, reader)
        self._read = [c for c in reader.connections if c.msgtype in READ]

    @property
    def left_out(self) -> list[str]:
        """Return the topics that are of other types."""
        return sorted({c.topic for c in self._reader.connections if c.msgtype not in READ})

    def topics(self) -> list[Topic]:
        """Return the topics that are read in the order of the recording, each once."""
        return [Topic(*one) for one in dict.fromkeys(
            (c.topic, READ[c.msgtype]) for c in self._read)]

    def messages(self, topics: Collection[str] | None = None) -> Iterator[Message]:
        """Yield the messages of the topics that are read in the order of recording."""
        wanted = [c for c in self._read if topics is None or c.topic in topics]
        count = 0
        try:
            if wanted:  # rosbags takes an empty choice for all
                for connection, time, data in self._reader.messages(wanted):
                    kind = READ[connection.msgtype]
                    stored = bytes(TYPES.ros1_to_cdr(data, kind))
                    yield Message(connection.topic, kind, time, stored)
                    count += 1
        except Exception as error:  # of rosbags, struct, lz4: all mean that it cannot be read
            raise ValueError(
                f'{self.path}: expected a whole recording, got one that is truncated or damaged '
                f'after {count} messages ({type(error).__name__})') from None


def open_ros1(path: Path) -> tuple[Ros1Bag, Reader]:
    """Open a ROS 1 recording."""
    try:
        reader = Reader(Path(path))
        reader.open()
    except Exception as error:
        raise ValueError(
            f'{path}: expected a ROS 1 recording (.bag), got one that is truncated, damaged or '
            f'something else ({type(error).__name__})') from None
    return Ros1Bag(Path(path), reader), reader
