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
"""Keep tests apart: every test file on a ROS domain of its own, on this machine only."""

from __future__ import annotations

from importlib.util import find_spec
import os
from pathlib import Path
import socket
import sys
import tempfile

import pytest

DOMAINS = range(1, 102)  # more would reach into the ports that the system hands out
PORT = 21100  # a bound port of this block is a claimed domain, for every clone on the machine
NEEDED = {  # by test files whose subject needs less; see scripts/test_with
    'torch': [f'core/test_{name}.py' for name in (
        'adam', 'energy', 'irls', 'kernels', 'no_read_back')],
    'sensor_msgs': [f'messages/test_{name}.py' for name in (
        'assembly', 'camera_info', 'conversions', 'outgoing')],
    'rosbags': ['test_refiner_determinism.py'],
}
collect_ignore = [file for module in NEEDED if not find_spec(module) for file in NEEDED[module]]


class Domain:
    """The claim of this process on a ROS domain."""

    def __init__(self) -> None:
        """Claim nothing yet."""
        self.path: Path | None = None
        self._claim: socket.socket | None = None

    def move_to(self, path: Path) -> None:
        """Take a fresh domain when another test file begins."""
        if path == self.path:
            return
        self.path = path
        before, self._claim = self._claim, None
        for domain in DOMAINS:
            claim = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                claim.bind(('127.0.0.1', PORT + domain))
            except OSError:
                claim.close()
                continue
            os.environ['ROS_DOMAIN_ID'] = str(domain)
            self._claim = claim
            break
        if before:
            before.close()  # only now, so that the next domain is another one
        if not self._claim:
            raise RuntimeError(f'ROS domain: expected a free one of {DOMAINS}, got none')


_domain = Domain()


def pytest_configure(config: pytest.Config) -> None:
    """Stay on this machine, and leave no logs behind."""
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    if os.environ.get('ROS_DISTRO') == 'humble':
        os.environ['ROS_LOCALHOST_ONLY'] = '1'  # newer ones warn about it
    folder = tempfile.TemporaryDirectory(prefix='graph_depth_refiner_test_')
    os.environ['ROS_LOG_DIR'] = folder.name
    config.add_cleanup(folder.cleanup)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Give a test file its domain before anything of it runs."""
    _domain.move_to(Path(item.fspath))  # pytest 6, of Ubuntu 22.04, has no path


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many hostile inputs were tried, where any were."""
    outcomes = getattr(sys.modules.get('hostile'), 'OUTCOMES', None)
    if outcomes:
        counts = ', '.join(f'{number} {what}' for what, number in sorted(outcomes.items()))
        terminalreporter.write_line(f'hostile inputs: {sum(outcomes.values())} tried, {counts}')
