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
"""CameraInfo of any content gives a camera or is refused in words, and so do whole sets."""

from types import SimpleNamespace

from hostile import doubles, header, image, image_messages, outcome, sides, small_sides, uint32
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.frame import MAX_SIDE
from graph_depth_refiner.messages.assembly import Assembler, Inputs, OUTPUTS
from graph_depth_refiner.messages.camera_info import camera_model
from graph_depth_refiner.messages.conversions import LAYOUTS

MODELS = ['plumb_bob', 'rational_polynomial', '', 'none', 'equidistant', 'fisheye', 'x']


def camera_info(width, height, k, p, d=(), model='plumb_bob', binning=(0, 0), roi=(0, 0, 0, 0)):
    """Return a CameraInfo message."""
    return SimpleNamespace(
        header=header(), width=width, height=height, distortion_model=model,
        d=list(d), k=list(k), r=[1.0, 0, 0, 0, 1.0, 0, 0, 0, 1.0], p=list(p),
        binning_x=binning[0], binning_y=binning[1],
        roi=SimpleNamespace(
            x_offset=roi[0], y_offset=roi[1], width=roi[2], height=roi[3], do_rectify=False))


def matrices(focal, centre):
    """Draw K and P: proper ones of any focal length, and arbitrary ones."""
    def proper(fx, fy, cx, cy):
        return [fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0], [
            fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0]
    return st.one_of(
        st.builds(proper, focal, focal, centre, centre),
        st.tuples(st.lists(doubles, min_size=9, max_size=9),
                  st.lists(doubles, min_size=12, max_size=12)))


@st.composite
def infos(draw, width, height):
    """Draw a CameraInfo message whose size is right more often than not."""
    k, p = draw(matrices(st.one_of(st.floats(1, 1000), doubles), doubles))
    fits = draw(st.booleans())
    return camera_info(
        width if fits else draw(sides), height if fits else draw(sides), k, p,
        draw(st.one_of(
            st.just([]), st.lists(doubles, max_size=14),
            st.sampled_from([4, 5, 8, 12, 14]).flatmap(
                lambda n: st.lists(st.floats(-1, 1), min_size=n, max_size=n)))),
        draw(st.sampled_from(MODELS)),
        (0, 0) if fits else (draw(uint32), draw(uint32)),
        (0, 0, 0, 0) if fits else draw(st.tuples(uint32, uint32, uint32, uint32)))


modes = st.sampled_from(['refuse', 'undistort', 'rectified'])


@given(st.data(), small_sides, small_sides, modes)
def test_camera_info(data, width, height, mode):
    info = data.draw(infos(width, height))
    model = outcome(camera_model, info, (height, width), mode)
    if model is None:
        return
    i = model.intrinsics
    assert np.isfinite([i.fx, i.fy, i.cx, i.cy]).all() and i.fx > 0 and i.fy > 0
    depth = np.ones((height, width), np.float32)
    assert model.undistorted(depth, nearest=True).shape == depth.shape


def good(encoding, width, height):
    """Return a whole message of an encoding."""
    kind, channels = LAYOUTS[encoding]
    row = width * channels * int(kind[1:])
    return image(width, height, encoding, row, bytes(row * height))


@given(st.data(), small_sides, small_sides, modes)
def test_sets_of_messages(data, width, height, mode):
    def part(encoding):
        return data.draw(st.one_of(
            st.just(good(encoding, width, height)), image_messages(LAYOUTS)))
    inputs = Inputs(
        part('rgb8'), part('16UC1'), data.draw(infos(width, height)),
        data.draw(st.none() | st.just(part('mono8'))))
    config = NodeConfig().with_values(
        max_pixels=4096, distortion=mode,
        **{'confidence.preset': data.draw(st.sampled_from(['none', 'zed', 'l515', 'unit'])),
           'confidence.scale': data.draw(st.sampled_from([0.0, 5e-324, 1.0, 1e9]))})
    assembled = outcome(Assembler().assemble, inputs, config)
    if assembled is not None:
        assert assembled.frame.depth.shape == (inputs.depth.height, inputs.depth.width)
        assert OUTPUTS['depth_refined/camera_info'].fields(assembled, None)


@pytest.mark.parametrize('mode', ['rectified', 'undistort'])
def test_a_side_beyond_the_limit_is_refused_before_it_is_worked_on(mode):
    # OpenCV cannot remap sides beyond 2^15 - 1, so this has to be stopped before
    width = 2 * MAX_SIDE + 1
    k, p = [9.0, 0, 1, 0, 9, 1, 0, 0, 1], [9.0, 0, 1, 0, 0, 9, 1, 0, 0, 0, 1, 0]
    inputs = Inputs(good('mono8', width, 1), good('16UC1', width, 1),
                    camera_info(width, 1, k, p, [0.1, 0, 0, 0, 0]))
    with pytest.raises(ValueError, match=f'depth: expected sides of at most {MAX_SIDE}'):
        Assembler().assemble(inputs, NodeConfig(distortion=mode))
