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
"""Tables and lists of figures for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def format_table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a line for the header and for each row: names to the left, values to the right."""
    lines = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return '\n'.join(
        '  '.join([name.ljust(widths[0]), *map(str.rjust, values, widths[1:])])
        for name, *values in lines)


def format_figures(figures: Mapping[str, Any]) -> str:
    """Return a line for each figure: its name and its value."""
    width = max(map(len, figures))
    return '\n'.join(f'{name:{width}}  {value}' for name, value in figures.items())
