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
"""The messages of a noisy wall, without ROS."""

from array import array
from types import SimpleNamespace

from hostile import header
import numpy as np

from graph_depth_refiner.messages.assembly import Inputs

HEIGHT, WIDTH = 24, 32


def image(encoding, pixels):
    """Return an Image message of an array."""
    data = np.ascontiguousarray(pixels)
    return SimpleNamespace(
        header=header(), height=HEIGHT, width=WIDTH, encoding=encoding, is_bigendian=0,
        step=data.strides[0], data=array('B', data.tobytes()))


def inputs():
    """Return the messages of a noisy wall."""
    rng = np.random.default_rng(0)
    k = [40.0, 0, 16, 0, 40, 12, 0, 0, 1]
    info = SimpleNamespace(
        header=header(), height=HEIGHT, width=WIDTH, distortion_model='plumb_bob', d=[0.0] * 5,
        k=k, p=[40.0, 0, 16, 0, 0, 40, 12, 0, 0, 0, 1, 0], r=list(np.eye(3).ravel()),
        binning_x=0, binning_y=0, roi=SimpleNamespace(x_offset=0, y_offset=0, width=0, height=0))
    return Inputs(
        image('mono8', rng.integers(0, 255, (HEIGHT, WIDTH), np.uint8)),
        image('32FC1', rng.normal(2, 0.02, (HEIGHT, WIDTH)).astype(np.float32)),
        info, image('32FC1', rng.random((HEIGHT, WIDTH)).astype(np.float32)))
