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
"""Which pairs of depth and image are of one camera, of two, or of nobody knows."""

from types import SimpleNamespace

import numpy as np
import pytest

from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.messages.assembly import Inputs
from graph_depth_refiner.messages.placement import Nowhere, placed

ASIDE = np.eye(4)
ASIDE[0, 3] = 0.05


class Places(Nowhere):
    """Knows the way from depth to colour, and where the depth is."""

    def __init__(self, motion=None):
        self.motion, self.asked = motion, []

    def transform(self, target, source, stamp):
        self.asked.append((target, source, stamp))
        return self.motion

    def pose(self, frame, stamp):
        return ASIDE if (frame, stamp) == ('depth', 7) else None


def inputs(image='color', depth='depth', info='its calibration'):
    """Return messages of these frames."""
    def message(frame):
        return SimpleNamespace(header=SimpleNamespace(frame_id=frame, stamp=7))
    return Inputs(message(image), message(depth), message(depth), image_info=info)


def motion(given, places, **settings):
    """Return the motion from depth to image."""
    return placed(given, NodeConfig().with_values(**settings), places).image_motion


def test_the_pose_is_that_of_the_depth():
    assert placed(inputs('depth'), NodeConfig(), Places()).pose is ASIDE


@pytest.mark.parametrize('image, depth', [('depth', 'depth'), ('/depth', 'depth'), ('', 'depth')])
def test_one_frame_needs_no_transform(image, depth):
    places = Places()
    assert motion(inputs(image, depth), places) is None
    assert not places.asked


def test_two_frames_by_tf():
    places = Places(ASIDE)
    assert motion(inputs(), places) is ASIDE
    assert places.asked == [('color', 'depth', 7)]


def test_two_names_of_one_place():
    assert motion(inputs(info=None), Places(np.eye(4))) is None
    assert motion(inputs(info=None), Places(), check_frames=False) is None


def test_a_parameter_goes_before_tf():
    places = Places(np.eye(4))
    found = motion(inputs(), places, depth_in_image='0.1 0 0 0 0 0 1')
    assert found[0, 3] == 0.1 and not places.asked


def test_what_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="image.header.frame_id: expected 'depth'.*got 'color'"):
        motion(inputs(), Places())
    with pytest.raises(ValueError, match='image_info: expected the camera_info of the image'):
        motion(inputs(info=None), Places(ASIDE))
