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
"""Run a launch file: with `ros2 launch` where there is one, else through LaunchService."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
import sys

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext
from launch.invalid_launch_file_error import InvalidLaunchFileError
from launch.launch_description_sources import AnyLaunchDescriptionSource

from graph_depth_refiner.ros.launching import run_launch_file

PACKAGE = 'graph_depth_refiner'
USAGE = 'usage: scripts/launch FILE.launch.py [--show-args] [name:=value…]'


def main(arguments: list[str]) -> int:
    """Run or describe the launch file and return the exit code."""
    if not arguments or arguments[0] in ('-h', '--help'):
        print(USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else 2
    show = [text for text in arguments if text in ('-s', '--show-args', '--show-arguments')]
    name, *settings = [text for text in arguments if text not in show]
    try:
        path = find(name)
        if importlib.util.find_spec('ros2launch'):
            os.execvp('ros2', ['ros2', 'launch', path, *show, *settings])
        source = AnyLaunchDescriptionSource(path)
        declared = source.get_launch_description(LaunchContext()).get_launch_arguments()
        if show:
            return describe(declared)
        return run_launch_file(
            source, parse(settings, [one.name for one in declared]),
            noninteractive=not sys.stdin.isatty())
    except ValueError as error:
        return _fail(str(error), 2)
    except (InvalidLaunchFileError, OSError, SyntaxError) as error:
        return _fail(str(error), 1)


def find(name: str) -> str:
    """Return the path of a launch file given by path or by the name of an installed one."""
    installed = Path(get_package_share_directory(PACKAGE)) / 'launch'
    for path in (Path(name), installed / name, installed / f'{name}.launch.py'):
        if path.is_file():
            return str(path)
    known = ', '.join(sorted(path.name for path in installed.glob('*.launch.*'))) or 'none'
    raise ValueError(f'launch file: expected a path or one of {known}, got {name!r}')


def parse(settings: list[str], declared: list[str]) -> list[tuple[str, str]]:
    """Read `name:=value` texts; a name that the launch file does not know is refused."""
    pairs = []
    for setting in settings:
        name, assigned, value = setting.partition(':=')
        if not assigned:
            raise ValueError(f'argument: expected name:=value, got {setting!r}')
        if name not in declared:
            raise ValueError(
                f'{name}: unknown argument, expected one of {", ".join(declared) or "none"}')
        pairs.append((name, value))
    return pairs


def describe(declared: list) -> int:
    """Print the arguments of a launch file."""
    print('Arguments (pass them as name:=value):')
    for one in declared:
        print(f'\n    {one.name}')
        print(f'        {one.description}')
        if one.default_value is not None:
            default = ''.join(part.describe() for part in one.default_value).strip("'")
            print(f'        (default: {default!r})')
        if one.choices:
            print(f'        (one of: {", ".join(one.choices)})')
    return 0


def _fail(text: str, code: int) -> int:
    print(f'scripts/launch: {text}', file=sys.stderr)
    return code


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
