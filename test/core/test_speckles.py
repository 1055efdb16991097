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
"""Patches of a map and the doubt in small ones, on hand-made maps."""

import numpy as np

from graph_depth_refiner.core.speckles import in_range, patch_areas, RANGE_MARGIN


def test_a_patch_ends_at_a_step_and_at_a_hole():
    z = np.array([[5, 5.5, 6, 9], [5, 5, 9, 9]], np.float32)
    reliable = np.array([[1, 1, 1, 1], [1, 0, 1, 1]], bool)
    # steps of at most 1: 5 5.5 6 and the 5 below hang together (4), as do the three 9s
    expected = [[4, 4, 4, 3], [4, 0, 3, 3]]
    np.testing.assert_array_equal(patch_areas(z, reliable, 1.0), expected)


def test_diagonal_neighbours_do_not_touch():
    areas = patch_areas(np.ones((3, 3), np.float32), np.eye(3, dtype=bool), 1.0)
    np.testing.assert_array_equal(areas, np.eye(3))


def test_one_pixel_and_one_row():
    assert patch_areas(np.ones((1, 1), np.float32), np.ones((1, 1), bool), 1.0).item() == 1
    row = patch_areas(np.ones((1, 5), np.float32), np.array([[1, 1, 0, 1, 1]], bool), 1.0)
    np.testing.assert_array_equal(row, [[2, 2, 0, 2, 2]])


def test_small_patches_out_of_range_are_doubted():
    # 100 x 100: large is more than 50 pixels for the far side, more than 10 for the near one
    z = np.full((100, 100), 20, np.float32)
    z[:, 50:] = 40  # the range of the large ones is 20 to 40
    for row, (value, length) in enumerate(SMALL):
        z[2 * row, :length] = value
    areas = patch_areas(z, np.ones(z.shape, bool), 1.0)
    kept = in_range(z, areas)
    found = [bool(kept[2 * row, 0]) for row in range(len(SMALL))]
    # near patches of 12 pixels are large enough to be believed, far ones are not
    assert found == [False, True, False, True, True]
    assert kept[:, 50:].all()


SMALL = [
    (20 - 2 * RANGE_MARGIN, 12), (20 - 0.9 * RANGE_MARGIN, 12), (40 + 2 * RANGE_MARGIN, 8),
    (40 + 2 * RANGE_MARGIN, 12), (30, 8)]


def test_without_large_patches_nothing_is_doubted():
    z = np.arange(16, dtype=np.float32).reshape(4, 4) * 10
    assert in_range(z, np.zeros(z.shape, int)).all()
