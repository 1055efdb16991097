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
"""Small recordings of a slanted plane, and a stand-in for the refiner, for tests of bags."""

import numpy as np

from graph_depth_refiner.bags.bags import BagWriter
from graph_depth_refiner.bags.make_bag import messages, topics
from graph_depth_refiner.frame import Frame, Intrinsics, Refined, Status

CAMERA = Intrinsics(20.0, 20.0, 7.5, 5.5)
SHAPE = (12, 16)


def frames(count, still=False):
    """Yield frames of a plane that comes nearer, with a hole; the image may be still."""
    x = np.arange(SHAPE[1], dtype=np.float32)
    for number in range(count):
        depth = np.tile(2 + 0.05 * x - 0.01 * number, (SHAPE[0], 1)).astype(np.float32)
        depth[3, 4 + number % 8] = np.nan
        rng = np.random.default_rng(0 if still else number)
        image = rng.integers(0, 255, (*SHAPE, 3), np.uint8)
        yield Frame(image, depth, CAMERA, stamp=10.0 + number / 30)


def write_bag(folder, count=6, storage='mcap', compressed=False, still=False):
    """Write a recording of the frames, in one part."""
    folder.mkdir(parents=True)
    writer = BagWriter(folder, storage, topics(compressed), [])
    for frame in frames(count, still):
        for message in messages((frame, round(frame.stamp * 1e9)), compressed):
            writer.write(message)
    writer.finish()
    return folder


class RunningMean:
    """Stands in for DepthRefiner: cheap, and its result depends on all earlier frames."""

    def __init__(self, config, device='auto'):
        """Start without a past."""
        self.config, self.state = config, None

    def refine(self, frame):
        """Average with the past."""
        depth = np.nan_to_num(frame.depth, nan=1.0)
        self.state = depth if self.state is None else 0.5 * self.state + 0.5 * depth
        normals = np.zeros((*depth.shape, 3), np.float32)
        normals[..., 2] = -1
        ones = np.ones(depth.shape, np.float32)
        return Refined(
            self.state.astype(np.float32), normals, ones, ones.astype(np.uint8),
            Status.REFINED, 1, 0.0)
