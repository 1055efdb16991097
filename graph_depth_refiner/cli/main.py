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
from collections.abc import Sequence
from importlib import import_module
import logging
import os
from pathlib import Path
import sys
from typing import Any, NoReturn

from graph_depth_refiner.config import preset, PRESETS, RefinerConfig
from graph_depth_refiner.ros.memory import keep_freed_memory

PROGRAM = 'graph_depth_refiner'

EVALUATE = 'graph_depth_refiner.lab.evaluation.evaluate'

# Command -> module, help. The module has add_arguments(parser) and run(args) -> exit code or
# None, and is imported only when its command runs.
COMMANDS = {
    'refine': ('graph_depth_refiner.files.refine_files', 'refine image files'),
    'refine-bag': ('graph_depth_refiner.bags.refine_bag', 'add refined topics to recordings'),
    'refine-colmap': (
        'graph_depth_refiner.files.refine_colmap', 'refine the maps of a COLMAP workspace'),
    'make-bag': ('graph_depth_refiner.bags.make_bag', 'turn an RGB-D data set into a recording'),
    'evaluate middlebury': (EVALUATE, 'compare with other methods on Middlebury stereo, v3'),
    'evaluate kitti': (EVALUATE, 'compare with other methods on KITTI stereo'),
    'evaluate icl': (EVALUATE, 'compare with other methods on ICL-NUIM, with noise'),
    'evaluate tum': (EVALUATE, 'compare with other methods on withheld spots of TUM RGB-D'),
    'evaluate folder': (EVALUATE, 'compare with other methods on a folder with true depth'),
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
    'benchmark gpu': (
        'graph_depth_refiner.lab.benchmarks.gpu',
        'compare a GPU with the CPU, or count what a frame would ask of one'),
    'benchmark stream': (
        'graph_depth_refiner.lab.benchmarks.stream', 'compare methods on a synthetic stream'),
    'benchmark shedding': (
        'graph_depth_refiner.lab.benchmarks.shedding',
        'measure what less work saves and what it costs'),
    'benchmark node': (
        'graph_depth_refiner.lab.benchmarks.node', 'measure the running node over DDS'),
    'benchmark colmap': (
        'graph_depth_refiner.lab.benchmarks.colmap',
        'fuse a rendered COLMAP workspace as it is and refined'),
}


class CommandParser(argparse.ArgumentParser):
    """
    Parses the arguments of a command, or the name of one; says an error in one sentence.

    The module of a command is imported when its arguments are parsed.
    """

    def __init__(self, *, module: str = '', **options: Any) -> None:
        """Take the module of the command; without one, `add_command` follows."""
        super().__init__(**options)
        self._module = module
        self._words: Sequence[str] = ()
        self._commands = None if module else self.add_subparsers(
            metavar='COMMAND', required=True, title='commands')

    def add_command(self, words: list[str], module: str, summary: str) -> None:
        """Add a command of one word, or of a family and a word."""
        first, *rest = words
        if not rest:
            self._commands.add_parser(
                first, module=module, help=summary,
                description=summary[0].upper() + summary[1:] + '.')
            return
        if first not in self._commands.choices:
            self._commands.add_parser(first, help=f'see {first} --help')
        self._commands.choices[first].add_command(rest, module, summary)

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:
        """Parse; what is not known is an error of the command that it was given to."""
        self._words = args or ()
        if self._module:
            module = import_module(self._module)
            module.add_arguments(self)
            self.set_defaults(run=module.run)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f'unrecognized arguments: {" ".join(unknown)}')
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Raise ValueError; print the commands where none was named."""
        if self._commands is None:
            raise ValueError(message)
        if not self._words:
            self.print_help()
            raise SystemExit(2)
        family = self.prog.split()[1:]
        names = ', '.join(' '.join((*family, name)) for name in self._commands.choices)
        got = ' '.join((*family, self._words[0]))
        raise ValueError(f'command: expected one of {names}, got {got!r}')


class _StandardError(logging.Handler):
    """Shows what the package logs, as plain lines."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record to what is standard error at the time."""
        print(record.getMessage(), file=sys.stderr, flush=True)


def _show_logs() -> None:
    """Let users see what takes long, such as compiling."""
    logger = logging.getLogger(PROGRAM)
    logger.setLevel(logging.INFO)
    if not logger.handlers:
        logger.addHandler(_StandardError())


def main(argv: list[str] | None = None) -> int:
    """Run one command and return the exit code; say a user's error in one sentence."""
    _show_logs()
    if argv is None:  # a process of its own
        keep_freed_memory()
    try:
        try:
            args = _parser().parse_args(_called(sys.argv) if argv is None else argv)
            return args.run(args) or 0
        finally:
            sys.stdout.flush()  # while a reader that left can still be heard of
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
        parser: argparse.ArgumentParser, default: str | None = next(iter(PRESETS))) -> None:
    """Add the options that choose how the refinement works; None leaves the preset open."""
    group = parser.add_argument_group('refinement')
    group.add_argument(
        '--preset', metavar='NAME', default=default,
        help=f'values to start from: {", ".join(PRESETS)} (default: '
        f'{default or "that of the camera, else " + next(iter(PRESETS))})')
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
    commands = {key.split()[0] for key in COMMANDS}
    return [name, *argv[1:]] if name in commands else argv[1:]


def _parser() -> CommandParser:
    parser = CommandParser(prog=PROGRAM, description='Refine depth images.')
    for name, (module, summary) in COMMANDS.items():
        parser.add_command(name.split(), module, summary)
    return parser


def _fail(text: str, code: int) -> int:
    print(f'{PROGRAM}: {text}', file=sys.stderr)
    return code
