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
"""Command `demo`: camera, refiner and monitor through the launch file; one table at the end."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
import re
import signal
import subprocess
import sys
import tempfile

from graph_depth_refiner.files.exports import check_place
from graph_depth_refiner.lab.demo import rerun_log
from graph_depth_refiner.lab.demo.rerun_log import VIEWER
from graph_depth_refiner.lab.synthetic.scene import ROOMS
from graph_depth_refiner.lab.synthetic.sensors import SENSORS
from graph_depth_refiner.lab.synthetic.stream import COMMAND_ROOM, COMMAND_SENSOR


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument('--bag', type=Path, metavar='FILE', help='play a recording')
    source.add_argument('--folder', type=Path, metavar='TUM_FOLDER', help='play a TUM folder')
    parser.add_argument(
        '--web', nargs='?', type=int, const=8080, default=-1, metavar='PORT',
        help='show the panel live in a browser on this machine, until Ctrl-C (default port: 8080)')
    parser.add_argument(
        '--rerun', nargs='?', const=VIEWER, default='', metavar='FILE.rrd',
        help='show it in the Rerun viewer, or write a file for it (needs rerun-sdk)')
    parser.add_argument(
        '--out', type=Path, default=Path('demo.png'), help='panel (default: %(default)s)')
    parser.add_argument('--size', default='', metavar='WxH', help='of synthetic frames')
    parser.add_argument('--rate', type=float, metavar='HZ', help='frames a second')
    parser.add_argument('--seconds', type=float, help='how long to compare')
    parser.add_argument('--seed', type=int, help='of the synthetic room')
    parser.add_argument('--sensor', choices=SENSORS,
                        help=f'that measures the synthetic room (default: {COMMAND_SENSOR})')
    parser.add_argument('--room', choices=ROOMS,
                        help=f'what is in the synthetic room (default: {COMMAND_ROOM})')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the table')


def run(args: argparse.Namespace) -> int:
    """Run the launch file; return 0 only if refined is better than the input."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / 'result.json'
        code = _launch(launch_arguments(args, result))
        if not result.exists():
            return code or 1
        found = json.loads(result.read_text())
    if args.json:
        args.json.write_text(json.dumps(found, indent=1, allow_nan=False) + '\n')
    return 0 if found['better'] else 1


def launch_arguments(args: argparse.Namespace, result: Path) -> dict[str, str]:
    """Return the arguments of the launch file; what is not given keeps its default there."""
    path = args.bag or args.folder
    if path is not None and not path.exists():
        raise ValueError(f'{path}: expected a recording or a folder, got nothing there')
    for name in ('rate', 'seconds'):
        value = getattr(args, name)
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f'{name}: expected a positive number, got {value:g}')
    if args.size and not re.fullmatch(r'[1-9]\d{0,4}x[1-9]\d{0,4}', args.size):
        raise ValueError(f'size: expected WxH such as 320x240, got {args.size!r}')
    check_place('out', args.out)
    if args.rerun:
        rerun_log.check(args.rerun)
    if args.json:
        check_place('json', args.json)
    known = {
        'source': 'bag' if args.bag else 'folder' if args.folder else 'synthetic',
        'path': path and path.resolve(), 'size': args.size or None, 'rate': args.rate,
        'seconds': args.seconds, 'seed': args.seed, 'sensor': args.sensor, 'room': args.room,
        'web': args.web, 'rerun': _absolute(args.rerun), 'png': args.out.resolve(),
        'result': result}
    return {name: str(value) for name, value in known.items() if value is not None}


def _absolute(rerun: str) -> str:
    return rerun if rerun in ('', VIEWER) else str(Path(rerun).resolve())


def _launch(arguments: dict[str, str]) -> int:
    """
    Launch in a process of its own and pass every wish to end on as SIGINT.

    LaunchService leaves its nodes running when it gets SIGTERM.
    """
    child = subprocess.Popen(
        [sys.executable, '-m', __name__, json.dumps(arguments)], start_new_session=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: child.send_signal(signal.SIGINT))
    return child.wait()


def launch(arguments: dict[str, str]) -> int:
    """Run the launch file until its nodes have ended."""
    from ament_index_python.packages import get_package_share_directory
    from launch.launch_description_sources import PythonLaunchDescriptionSource

    from graph_depth_refiner.ros.launching import run_launch_file
    share = Path(get_package_share_directory('graph_depth_refiner'))
    file = PythonLaunchDescriptionSource(str(share / 'launch' / 'demo.launch.py'))
    return run_launch_file(file, arguments.items())


if __name__ == '__main__':
    sys.exit(launch(json.loads(sys.argv[1])))
