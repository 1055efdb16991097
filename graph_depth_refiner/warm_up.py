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
"""Compile the kernels ahead of time, so that the first frame does not wait for them."""

from __future__ import annotations

import argparse
import time

from graph_depth_refiner.cli import add_config_arguments, config_from
from graph_depth_refiner.refiner import DepthRefiner


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command warm-up."""
    add_config_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Load the kernels, compiled where they were not yet."""
    start = time.perf_counter()
    DepthRefiner(config_from(args), args.device).warm_up()
    print(f'kernels ready after {time.perf_counter() - start:.1f} s')
    return 0
