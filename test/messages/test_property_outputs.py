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
"""Whatever is refined, all output messages are whole; poses are matrices or refused."""

from types import SimpleNamespace

from hostile import bounded, doubles, header, outcome, singles, small_sides
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from wall_messages import inputs

from graph_depth_refiner.frame import Frame, Intrinsics, Refined, Status
from graph_depth_refiner.messages.assembly import Assembled, OUTPUTS
from graph_depth_refiner.messages.camera_info import CameraModel
from graph_depth_refiner.messages.outgoing import warm_up
from graph_depth_refiner.ros.poses import Poses

warm_up()  # loads the kernels, so that no example is billed for it
CAMERA = Intrinsics(20.0, 20.0, 3.0, 3.0)
SIZES = {'16UC1': 2, 'mono16': 2, '32FC1': 4, '64FC1': 8, '32FC3': 12, 'rgb8': 3, 'mono8': 1}
depths = st.one_of(
    st.just(float('nan')), st.floats(0.001, 1e5), st.sampled_from([65.535, 65.536, 1e5, 1e-3]))


def refined_of(depth, normal):
    """Return a refined frame of this depth and one normal wherever there is any."""
    length = np.linalg.norm(normal) or 1.0
    normals = np.where(
        np.isnan(depth)[..., None], np.nan, np.asarray(normal) / length).astype(np.float32)
    known = np.isfinite(depth)
    return Refined(
        depth, normals, known.astype(np.float32), known.astype(np.uint8), Status.REFINED, 1, 0.0)


def check_image(fields):
    """Check that an image is as large as it says."""
    assert fields['step'] == fields['width'] * SIZES[fields['encoding']]
    assert len(fields['data']) == fields['step'] * fields['height']


@given(small_sides, small_sides, st.lists(depths, min_size=1, max_size=9),
       st.tuples(*[st.floats(-1, 1)] * 3), st.sampled_from(['16UC1', 'mono16', '32FC1', '64FC1']),
       st.booleans(), singles)
def test_output_messages(height, width, values, normal, encoding, color, least):
    shape = (height, width)
    depth = np.resize(np.array(values, np.float32), shape)
    frame = Frame(np.zeros((*shape, 3) if color else shape, np.uint8), depth, CAMERA)
    source = SimpleNamespace(
        header=header(), f=20.0, t=0.1, min_disparity=least, max_disparity=64.0, delta_d=0.1,
        valid_window=None)
    messages = inputs()
    assembled = Assembled(
        SimpleNamespace(depth=source, camera_info=messages.camera_info), frame, encoding,
        CameraModel(CAMERA))
    refined = refined_of(depth, normal)
    for topic, output in OUTPUTS.items():
        fields = bounded(depth.size, 0, output.fields, assembled, refined)
        if topic == 'points':
            assert fields['row_step'] == width * fields['point_step']
            assert len(fields['data']) == fields['row_step'] * height
            assert fields['is_dense'] is False or np.isfinite(depth).all()
        elif topic == 'disparity_refined':
            check_image(fields['image'])
        elif 'encoding' in fields:
            check_image(fields)


@given(st.lists(doubles, min_size=7, max_size=7), st.integers(-2 ** 31, 2 ** 31 - 1),
       st.integers(0, 2 ** 32 - 1))
def test_poses(numbers, sec, nanosec):
    x, y, z, a, b, c, d = numbers
    message = SimpleNamespace(
        header=header(sec, nanosec), pose=SimpleNamespace(
            position=SimpleNamespace(x=x, y=y, z=z),
            orientation=SimpleNamespace(x=a, y=b, z=c, w=d)))
    poses = Poses()
    # with one beside it, so that there is something to interpolate
    outcome(poses.add, 'camera_pose', message)
    outcome(poses.add, 'camera_pose', SimpleNamespace(
        header=header(sec, (nanosec + 10 ** 8) % 2 ** 32), pose=SimpleNamespace(
            position=SimpleNamespace(x=0, y=0, z=0),
            orientation=SimpleNamespace(x=0, y=0, z=0, w=1))))
    for later in (0, 0.05):
        pose = poses.at(sec + nanosec * 1e-9 + later, 0.0)
        assert pose is None or np.isfinite(pose).all()
