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
"""Run a launch file within this process."""

from __future__ import annotations

from collections.abc import Iterable
import signal

from launch import LaunchDescription, LaunchDescriptionSource, LaunchService
from launch.actions import IncludeLaunchDescription


def run_launch_file(source: LaunchDescriptionSource, arguments: Iterable[tuple[str, str]],
                    noninteractive: bool = True) -> int:
    """Run it until its processes have ended, by themselves or by SIGINT; return the exit code."""
    # In the background of a script SIGINT is ignored, and would be by all that is launched.
    # Nothing must be raised: LaunchService hears of the signal by itself, and an exception in
    # the midst of its loop can lose what it was about to do, such as to end the nodes.
    signal.signal(signal.SIGINT, lambda *_: None)
    service = LaunchService(noninteractive=noninteractive)
    service.include_launch_description(LaunchDescription([
        IncludeLaunchDescription(source, launch_arguments=arguments)]))
    return service.run()
