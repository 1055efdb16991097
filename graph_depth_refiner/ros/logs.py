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
"""Hands what the core logs on to ROS."""

from __future__ import annotations

import logging
from typing import Any

CORE = logging.getLogger('graph_depth_refiner')


class RosHandler(logging.Handler):
    """Logs under the name of a node."""

    def __init__(self, node: Any) -> None:
        """Keep the logger of the node."""
        super().__init__(logging.INFO)
        self._logger = node.get_logger()

    def emit(self, record: logging.LogRecord) -> None:
        """Log a record; rclpy wants a line of code for each level."""
        if record.levelno >= logging.ERROR:
            self._logger.error(record.getMessage())
        elif record.levelno >= logging.WARNING:
            self._logger.warning(record.getMessage())
        else:
            self._logger.info(record.getMessage())


def forward_to(node: Any) -> None:
    """Let a node log what the core says; the last one that asks does."""
    CORE.setLevel(logging.INFO)
    CORE.handlers = [RosHandler(node)]
