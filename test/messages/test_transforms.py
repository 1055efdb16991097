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
"""Transforms: from messages and texts, interpolated in time, along a tree."""

from types import SimpleNamespace

import numpy as np
import pytest

from graph_depth_refiner.messages.transforms import (
    checked,
    LONGEST_GAP,
    matrix_of,
    parse_transform,
    pose_row,
    Track,
    TransformTree,
)

HALF = 0.5 ** 0.5


def about_z(angle, x=0.0):
    """Return the numbers of a turn about z at (x, 0, 0)."""
    return np.array([x, 0, 0, 0, 0, np.sin(angle / 2), np.cos(angle / 2)])


def angle_of(matrix):
    """Return by how much a matrix turns about z."""
    return np.arctan2(matrix[1, 0], matrix[0, 0])


def message(parent, child, row):
    """Return a TransformStamped message."""
    x, y, z, qx, qy, qz, qw = row
    return SimpleNamespace(
        header=SimpleNamespace(frame_id=parent), child_frame_id=child,
        transform=SimpleNamespace(
            translation=SimpleNamespace(x=x, y=y, z=z),
            rotation=SimpleNamespace(x=qx, y=qy, z=qz, w=qw)))


def test_a_quarter_turn_about_z():
    # x goes to y: q = (0, 0, sin 45, cos 45)
    pose = SimpleNamespace(position=SimpleNamespace(x=1, y=2, z=3),
                           orientation=SimpleNamespace(x=0, y=0, z=HALF, w=HALF))
    matrix = matrix_of(pose_row('pose', pose))
    np.testing.assert_allclose(matrix @ [1, 0, 0, 1], [1, 3, 3, 1], atol=1e-12)


@pytest.mark.parametrize('row, sentence', [
    ([0] * 7, 'pose.orientation: expected a quaternion'),
    ([0, 0, 0, 0, 0, 0, 0.1], 'pose.orientation: expected'),
    ([0, 0, 0, np.nan, 0, 0, 1], 'pose.orientation: expected'),
    ([np.inf, 0, 0, 0, 0, 0, 1], 'pose.position: expected finite')])
def test_what_is_no_pose_is_refused(row, sentence):
    with pytest.raises(ValueError, match=sentence):
        checked('pose', row)


def test_text():
    assert parse_transform('place', '') is None
    matrix = parse_transform('place', '1 2 3, 0 0 1 1')
    np.testing.assert_allclose(matrix @ [1, 0, 0, 1], [1, 3, 3, 1], atol=1e-12)
    for text in ('1 2 3', 'a b c d e f g', '1 2 3 0 0 0 0', '1 2 inf 0 0 0 1'):
        with pytest.raises(ValueError, match="place: expected seven numbers 'x y z qx qy qz qw'"):
            parse_transform('place', text)


def test_poses_of_30_hz_at_1_radian_a_second_are_exact_between():
    track, worst = Track(), 0.0
    for n in range(31):
        track.add(n / 30, about_z(n / 30, x=n / 30))
    for stamp in np.linspace(0, 1, 997):
        matrix = track.at(stamp)
        worst = max(worst, abs(angle_of(matrix) - stamp), abs(matrix[0, 3] - stamp))
    assert worst < 1e-12  # radians and metres; 0.05 degrees are 8.7e-4


def test_nothing_is_extrapolated_or_made_up_in_a_gap():
    track = Track()
    for stamp in (1.0, 1.1, 1.2 + LONGEST_GAP):
        track.add(stamp, about_z(stamp))
    assert track.at(0.999) is None
    assert track.at(1.21 + LONGEST_GAP) is None
    assert track.at(1.3) is None  # within the gap,
    assert track.at(1.05) is not None
    assert angle_of(track.at(1.2 + LONGEST_GAP)) == pytest.approx(1.2 + LONGEST_GAP)


def test_the_shorter_way_round():
    # q and -q are one rotation: half way from +10 to -10 degrees is none at all
    track = Track()
    track.add(0.0, about_z(np.radians(10)))
    track.add(0.1, np.concatenate([np.zeros(3), -about_z(np.radians(-10))[3:]]))
    np.testing.assert_allclose(track.at(0.05), np.eye(4), atol=1e-12)


def test_order_does_not_matter_and_the_oldest_go():
    track = Track(most=2)
    for stamp in (0.3, 0.1, 0.2, 0.2):
        track.add(stamp, about_z(stamp))
    assert track.at(0.1) is None
    assert angle_of(track.at(0.25)) == pytest.approx(0.25)
    assert track.newest == 0.3
    track.clear()
    assert track.newest == -np.inf and track.at(0.25) is None


def robot():
    """Return odom -> base (turning) -> camera (static) -> depth and colour (static)."""
    tree = TransformTree()
    for stamp in (0.0, 0.1, 0.2):
        tree.add(message('odom', 'base', about_z(stamp)), stamp, static=False)
    tree.add(message('base', '/camera', about_z(0.0, x=2.0)), 0.0, static=True)
    tree.add(message('camera', 'depth', about_z(0.0)), 0.0, static=True)
    tree.add(message('camera', 'color', about_z(0.0, x=0.05)), 0.0, static=True)
    return tree


def test_a_tree_up_and_down():
    tree = robot()
    # at 0.15 s the camera, 2 m ahead of the base, has turned with it by 0.15 rad
    pose = tree.lookup('odom', 'depth', 0.15)
    np.testing.assert_allclose(pose[:3, 3], [2 * np.cos(0.15), 2 * np.sin(0.15), 0])
    # static transforms hold at any time; a point of depth is 5 cm to the left in colour
    np.testing.assert_allclose(
        tree.lookup('color', 'depth', 99.0) @ [0, 0, 1, 1], [-0.05, 0, 1, 1], atol=1e-12)


@pytest.mark.parametrize('target, source, stamp', [
    ('odom', 'depth', 0.21), ('odom', 'depth', -0.1), ('map', 'depth', 0.1),
    ('odom', 'nowhere', 0.1)])
def test_what_a_tree_does_not_know(target, source, stamp):
    assert robot().lookup(target, source, stamp) is None


def test_a_loop_is_no_tree():
    tree = TransformTree()
    tree.add(message('a', 'b', about_z(0.0)), 0.0, static=True)
    tree.add(message('b', 'a', about_z(0.0)), 0.0, static=True)
    assert tree.lookup('c', 'a', 0.0) is None
