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
"""Test what the demo says, on a wall seen by three methods."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from graph_depth_refiner.files.pictures import png
from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.demo.score import (
    draw,
    dropped,
    format_rows,
    INPUT,
    is_better,
    median,
    Observation,
    REALSENSE,
    REFINED,
    score,
)

SHAPE = (24, 32)
TOWARDS = np.broadcast_to(np.array([0, 0, -1], np.float32), (*SHAPE, 3))


def observation(with_normals=True):
    """Return a wall at 2 m: input 2 % too far with a hole, filter 1 %, refined exact."""
    came = np.full(SHAPE, 2.04, np.float32)
    came[:, :8] = 0
    normals = TOWARDS if with_normals else np.full((*SHAPE, 3), np.nan, np.float32)
    return Observation(
        np.zeros((*SHAPE, 3), np.uint8), Intrinsics(30, 30, 15.5, 11.5),
        np.full(SHAPE, 2, np.float32), normals,
        {INPUT: came, REALSENSE: np.full(SHAPE, 2.02, np.float32),
         REFINED: np.full(SHAPE, 2, np.float32)},
        {REFINED: TOWARDS})


def test_scores_are_the_derived_numbers():
    rows = {method: score([observation()], method) for method in (INPUT, REALSENSE, REFINED)}
    # the hole is closed with the nearest value, so it is 2 % off as well
    assert rows[INPUT]['depth_error_percent'] == pytest.approx(2, abs=1e-3)
    assert rows[INPUT]['holes_percent'] == 25
    assert rows[REALSENSE]['depth_error_percent'] == pytest.approx(1, abs=1e-3)
    assert rows[REFINED]['depth_error_percent'] == 0
    assert rows[INPUT]['normal_error_deg'] == pytest.approx(0, abs=0.1)  # a plane fits a wall
    assert rows[REFINED]['holes_percent'] == 0


def test_planes_and_round_things_are_told_apart():
    # a wall on the left and something round on the right: 1 % off on the wall, 3 % off beside it
    seen = observation()
    normals = TOWARDS.copy()
    angle = np.linspace(0, 0.6, 16, dtype=np.float32)
    normals[:, 16:, 0], normals[:, 16:, 2] = np.sin(angle), -np.cos(angle)
    depth = np.full(SHAPE, 2.02, np.float32)
    depth[:, 15:] = 2.06  # from here on normals differ within two pixels
    found = score([replace(seen, true_normals=normals, depths={INPUT: depth})], INPUT)
    assert found['plane_error_percent'] == pytest.approx(1, abs=1e-3)
    assert found['curved_error_percent'] == pytest.approx(3, abs=1e-3)
    assert found['invented_percent'] is None


def test_a_value_where_nothing_is_counts_as_invented_and_a_gap_there_is_no_hole():
    seen = observation()
    true_depth, normals = seen.true_depth.copy(), TOWARDS.copy()
    true_depth[:, :16] = normals[:, :16] = np.nan  # an open door
    seen = replace(seen, true_depth=true_depth, true_normals=normals)
    came, refined = score([seen], INPUT), score([seen], REFINED)
    assert came['holes_percent'] == 0  # the gap is 8 columns of the door
    assert came['invented_percent'] == 50  # the others have a value
    assert refined['invented_percent'] == 100


def row(depth, normals, holes, invented=0.0):
    """Return one row of the table."""
    return {'depth_error_percent': depth, 'normal_error_deg': normals, 'holes_percent': holes,
            'invented_percent': invented}


@pytest.mark.parametrize(('after', 'better'), [
    (row(1.0, 5.0, 0.0), True), (row(2.5, 5.0, 0.0), False), (row(1.0, 9.0, 0.0), False),
    (row(1.0, 5.0, 3.0), False), (row(1.0, 5.0, 0.0, 1.0), True), (row(1.0, 5.0, 0.0, 1.1), False),
    (row(1.0, 5.0, 0.0, None), True)])
def test_better_means_in_every_measure(after, better):
    assert is_better({INPUT: row(2.0, 8.0, 1.0), REFINED: after}) is better


def test_without_true_normals_depth_decides():
    rows = {m: score([observation(with_normals=False)], m) for m in (INPUT, REFINED)}
    assert rows[INPUT]['normal_error_deg'] is None
    assert is_better(rows)
    assert '-' in format_rows(rows).splitlines()[1]


def test_without_any_truth_nothing_is_better():
    seen = replace(observation(), true_depth=np.full(SHAPE, np.nan, np.float32),
                   true_normals=np.full((*SHAPE, 3), np.nan, np.float32))
    rows = {method: score([seen], method) for method in (INPUT, REFINED)}
    assert rows[REFINED]['depth_error_percent'] is None
    assert not is_better(rows)
    assert draw(seen).shape[2] == 3


def test_drops_are_counted_over_all_depth_images():
    came = {(0, 1): 0.5, (0, 2): 1.0, (0, 3): 2.0, (0, 4): 3.0, (0, 5): 9.5}
    # the first came before the count, the last may still come back
    assert dropped(came, {(0, 2)}, 1.0, 9.0) == 2
    assert dropped(came, set(came), 1.0, 9.0) == 0


def test_no_latency_is_shown_as_such():
    assert median([]) is None
    assert median([3.0, 1.0, 2.0]) == 2.0
    shown = format_rows({REFINED: {'latency_ms': median([]), 'drops': 0}}).splitlines()[1]
    assert shown.split() == [REFINED, *['-'] * 8, '0']


def test_the_panel_is_a_small_png_of_all_methods():
    pixels = draw(observation())
    assert pixels.shape[2] == 3
    decoded = cv2.imdecode(np.frombuffer(png(pixels), np.uint8), cv2.IMREAD_COLOR)
    np.testing.assert_array_equal(decoded[..., ::-1], pixels)
