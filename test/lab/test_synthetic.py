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
"""The synthetic stream is repeatable, and its truth is true."""

from __future__ import annotations

import numpy as np
import pytest

from graph_depth_refiner.lab.synthetic.stream import MOTIONS, SyntheticStream

SIZE = (80, 60)


@pytest.mark.parametrize('motion', MOTIONS)
def test_frames_do_not_depend_on_what_was_asked_before(motion):
    one, other = SyntheticStream(5, SIZE, motion), SyntheticStream(5, SIZE, motion)
    list(one.views(4))
    first, second = one.view(7), other.view(7)
    for name in ('image', 'depth', 'confidence', 'pose'):
        assert (getattr(first.frame, name) == getattr(second.frame, name)).all()
    assert (first.depth == second.depth).all()


def test_seeds_differ():
    assert (SyntheticStream(1, SIZE).view(0).depth != SyntheticStream(2, SIZE).view(0).depth).any()


def test_floor_and_walls_are_where_the_room_has_them():
    # a point of the world is pose * (z ray); on the floor its height is 0, on a wall one of
    # its coordinates is half the room, and the exact normal says which surface it is
    stream = SyntheticStream(3, SIZE)
    view = stream.view(4)
    k, pose = view.frame.intrinsics, view.frame.pose
    y, x = np.mgrid[:SIZE[1], :SIZE[0]]
    rays = np.stack([(x - k.cx) / k.fx, (y - k.cy) / k.fy, np.ones_like(x)])
    world = np.einsum('ij,jhw->ihw', pose[:3, :3], rays * view.depth) + pose[:3, 3, None, None]
    normals = view.normals @ pose[:3, :3].T
    floor = (normals[..., 2] > 0.999) & (world[2] < 0.01)
    wall = (np.abs(normals[..., 0]) > 0.999) & (np.abs(world[0]) > stream.scene.half[0] - 0.01)
    wall |= (np.abs(normals[..., 1]) > 0.999) & (np.abs(world[1]) > stream.scene.half[1] - 0.01)
    assert floor.sum() > 100 and wall.sum() > 100
    assert np.abs(world[2][floor]).max() < 1e-4
    off = np.minimum(np.abs(np.abs(world[0]) - stream.scene.half[0]),
                     np.abs(np.abs(world[1]) - stream.scene.half[1]))
    assert off[wall].max() < 1e-4


def test_normals_are_unit_and_face_the_camera():
    view = SyntheticStream(2, SIZE).view(9)
    k = view.frame.intrinsics
    y, x = np.mgrid[:SIZE[1], :SIZE[0]]
    rays = np.stack([(x - k.cx) / k.fx, (y - k.cy) / k.fy, np.ones_like(x)], -1)
    assert np.allclose(np.linalg.norm(view.normals, axis=-1), 1, atol=1e-4)
    assert ((view.normals * rays).sum(-1) < 1e-3).all()


def test_what_moves():
    for motion, camera, box in (('moving', True, True), ('static', False, False),
                                ('object', False, True)):
        stream = SyntheticStream(1, SIZE, motion)
        first, later = stream.view(0), stream.view(20)
        assert (first.frame.pose != later.frame.pose).any() == camera
        assert (first.moving != later.moving).any() == box
        if not camera:  # all but the box is as it was
            still = ~first.moving & ~later.moving
            assert (first.depth[still] == later.depth[still]).all()


def test_noise_grows_with_distance_and_holes_have_no_confidence():
    stream = SyntheticStream(4, (160, 120), 'static')
    views = [stream.view(k) for k in range(6)]
    truth = views[0].depth
    errors = np.stack([np.where(v.frame.depth > 0, v.frame.depth - truth, np.nan) for v in views])
    spread = np.nanstd(errors, axis=0)
    near, far = truth < np.percentile(truth, 20), truth > np.percentile(truth, 80)
    assert np.nanmedian(spread[far]) > 1.5 * np.nanmedian(spread[near])
    for view in views:
        hole = view.frame.depth == 0
        assert hole.any() and (view.frame.confidence[hole] == 0).all()


def test_thin_curved_and_moving_things_are_there():
    views = list(SyntheticStream(0, (160, 120)).views(40))
    for name in ('thin', 'curved', 'moving'):
        assert np.mean([getattr(view, name).any() for view in views]) > 0.5


@pytest.mark.parametrize('wrong', [
    {'motion': 'jumping'}, {'sensor': 'pink'}, {'room': 'bath'}, {'size': (4, 4)}])
def test_refuses_in_one_sentence(wrong):
    name = next(iter(wrong))
    with pytest.raises(ValueError, match=f'^{name}: expected .*, got '):
        SyntheticStream(0, **wrong)
