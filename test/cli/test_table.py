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
"""Test the tables for a terminal."""

from graph_depth_refiner.cli.table import format_figures, format_table


def test_columns_are_as_wide_as_what_they_hold():
    assert format_table(['', 'ms', 'error'], [['input', 0.5, '-'], ['ours', 12.25, 3]]) == (
        '          ms  error\n'
        'input    0.5      -\n'
        'ours   12.25      3')


def test_figures_stand_below_each_other():
    assert format_figures({'sent': 9, 'refined': [7]}) == 'sent     9\nrefined  [7]'
