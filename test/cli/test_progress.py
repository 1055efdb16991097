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
"""Test the progress bar."""

import io

from graph_depth_refiner.cli.progress import Progress


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        """Say so."""
        return True


def test_lines_are_few_where_there_is_no_terminal():
    stream = io.StringIO()
    progress = Progress('bags', 90, stream=stream)
    for _ in range(90):
        progress.advance()
    progress.close()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 10
    assert '90/90 100%' in lines[-1]
    assert lines[-1].endswith('00:00 left')


def test_a_resumed_run_does_not_count_old_items_as_speed(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr('tqdm.std.time', lambda: clock[0])
    stream = io.StringIO()
    progress = Progress('bag', 10, done=6, stream=stream)
    clock[0] = 10.0
    progress.advance()
    progress.close()
    # one new frame took 10 s, so the last three take 30 s
    assert stream.getvalue() == f'bag [{"#" * 21}{"-" * 9}] 7/10  70% 00:30 left\n'


def test_a_terminal_gets_one_line_redrawn():
    stream = Terminal()
    progress = Progress('bag', 2, stream=stream)
    progress.advance()
    progress.advance()
    progress.close()
    assert stream.getvalue().count('\n') == 1
    assert f'\rbag [{"#" * 30}] 2/2 100%' in stream.getvalue()
