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
"""Command-line options that several commands share."""

from __future__ import annotations

import argparse

from graph_depth_refiner.config import preset, PRESETS, RefinerConfig


def add_refiner_options(parser: argparse.ArgumentParser, default: str = 'realtime') -> None:
    """Add --preset and --set."""
    parser.add_argument(
        '--preset', choices=tuple(PRESETS), default=default,
        help='named settings (default: %(default)s)')
    parser.add_argument(
        '--set', dest='settings', action='append', default=[], metavar='NAME=VALUE',
        help='change one setting; may be repeated')


def refiner_config(args: argparse.Namespace) -> RefinerConfig:
    """Return the settings these options ask for."""
    return preset(args.preset).with_settings(args.settings)
