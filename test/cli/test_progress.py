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
    assert '0:00 left' in lines[-1]


def test_a_resumed_run_does_not_count_old_items_as_speed(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr('graph_depth_refiner.cli.progress.time.monotonic', lambda: clock[0])
    progress = Progress('bag', 90, done=86, stream=io.StringIO())
    clock[0] = 10.0
    progress.advance()
    # one new frame took 10 s, so the last three take 30 s
    assert progress.text().endswith('87/90  97% 0:30 left')


def test_a_terminal_gets_one_line_redrawn():
    stream = Terminal()
    progress = Progress('bag', 2, stream=stream)
    progress.advance()
    progress.advance()
    progress.close()
    assert stream.getvalue().count('\n') == 1
    assert stream.getvalue().rstrip().endswith('\x1b[K')
    assert '[##############################] 2/2' in stream.getvalue()
