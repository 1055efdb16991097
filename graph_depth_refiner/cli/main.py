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
"""The command line: python -m graph_depth_refiner COMMAND."""

from __future__ import annotations

import argparse
from importlib import import_module
import os
from pathlib import Path
import sys

from graph_depth_refiner.config import preset, PRESETS, RefinerConfig

PROGRAM = 'graph_depth_refiner'

# Command -> module, help. The module has add_arguments(parser) and run(args) -> exit code or
# None, and is imported only when its command runs.
COMMANDS = {
    'refine': ('graph_depth_refiner.files.refine_files', 'refine image files'),
    'refine-bag': (
        'graph_depth_refiner.bags.refine_bag', 'add refined topics to recordings'),
    'make-bag': (
        'graph_depth_refiner.bags.make_bag', 'turn an RGB-D data set into a recording'),
    'evaluate': (
        'graph_depth_refiner.lab.evaluation.evaluate', 'compare with other methods on public data'),
    'evaluate recording': (
        'graph_depth_refiner.lab.evaluation.recording.command',
        'compare with other methods on a recording, without ground truth'),
    'demo': ('graph_depth_refiner.lab.demo.command', 'show it on a synthetic or recorded camera'),
    'config': ('graph_depth_refiner.cli.tables', 'show every tunable with its bounds'),
    'warm-up': ('graph_depth_refiner.cli.warm_up', 'compile the kernels ahead of the first frame'),
    'soak': (
        'graph_depth_refiner.lab.soak.soak',
        'let the node run under faults and explain every loss'),
    'benchmark solver': (
        'graph_depth_refiner.lab.benchmarks.solver', 'time graph and step of every backend'),
    'benchmark stream': (
        'graph_depth_refiner.lab.benchmarks.stream', 'compare methods on a synthetic stream'),
    'benchmark node': (
        'graph_depth_refiner.lab.benchmarks.node', 'measure the running node over DDS'),
}


def main(argv: list[str] | None = None) -> int:
    """Run one command and return the exit code; say a user's error in one sentence."""
    try:
        name, arguments = _command(_called(sys.argv) if argv is None else argv)
        return _run(name, arguments)
    except ValueError as error:
        return _fail(str(error), 2)
    except BrokenPipeError:
        # The reader left (`| head`): nobody is there to be told, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.filename is None:
            return _fail(str(error), 1)
        return _fail(f'{error.filename}: {error.strerror}', 1)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith(PROGRAM):
            raise
        return _fail(f'{error.name}: expected an installed Python module, got none', 1)
    except KeyboardInterrupt:
        return 130


def add_config_arguments(
        parser: argparse.ArgumentParser, default: str = next(iter(PRESETS))) -> None:
    """Add the options that choose how the refinement works."""
    group = parser.add_argument_group('refinement')
    group.add_argument(
        '--preset', metavar='NAME', default=default,
        help=f'values to start from: {", ".join(PRESETS)} (default: %(default)s)')
    group.add_argument(
        '--set', metavar='NAME=VALUE', action='append', default=[],
        help='change one tunable, may be repeated; see the command config')
    group.add_argument(
        '--device', default='auto', help='auto, cpu, cuda or cuda:N (default: %(default)s)')


def config_from(args: argparse.Namespace) -> RefinerConfig:
    """Return the configuration that the options ask for."""
    return preset(args.preset).with_settings(args.set)


def _called(argv: list[str]) -> list[str]:
    """Return the arguments; an executable named after a command stands for it."""
    name = Path(argv[0]).name.replace('_', '-')
    known = name in COMMANDS or any(key.startswith(name + ' ') for key in COMMANDS)
    return [name, *argv[1:]] if known else argv[1:]


def _command(argv: list[str]) -> tuple[str, list[str]]:
    """Split the arguments into a known command of one or two words and the rest."""
    for length in (2, 1):
        name = ' '.join(argv[:length])
        if len(argv) >= length and name in COMMANDS:
            return name, argv[length:]
    family = [key for key in COMMANDS if argv and key.startswith(argv[0] + ' ')]
    wanted = argv[1:2] if family else argv[:1]
    if wanted and wanted[0] not in ('-h', '--help'):
        names = ', '.join(family or COMMANDS)
        raise ValueError(f'command: expected one of {names}, got {" ".join(argv[:2])!r}')
    _print_help(family or list(COMMANDS))
    raise SystemExit(0 if wanted else 2)


def _print_help(names: list[str]) -> None:
    width = max(len(name) for name in names)
    print(f'usage: python -m {PROGRAM} COMMAND [-h] …\n\ncommands:')
    for name in names:
        print(f'  {name:{width}}  {COMMANDS[name][1]}')


def _run(name: str, arguments: list[str]) -> int:
    path, summary = COMMANDS[name]
    module = import_module(path)
    parser = argparse.ArgumentParser(
        prog=f'{PROGRAM} {name}', description=summary[0].upper() + summary[1:] + '.')
    module.add_arguments(parser)
    return module.run(parser.parse_args(arguments)) or 0


def _fail(text: str, code: int) -> int:
    print(f'{PROGRAM}: {text}', file=sys.stderr)
    return code
