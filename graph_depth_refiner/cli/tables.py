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
"""Show the tunables to people: on the terminal and in docs/parameters.md."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path

from graph_depth_refiner import config
from graph_depth_refiner.cli.main import add_config_arguments, config_from

PAGE = Path('docs', 'parameters.md')
BEGIN = f'<!-- Written by: python -m graph_depth_refiner config --write {PAGE} -->'
END = '<!-- End of what is written -->'
COLUMNS = ('Name', 'Default', 'Accepted', 'Unit', 'Meaning')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command config."""
    add_config_arguments(parser)
    parser.add_argument('--markdown', action='store_true', help='print the tables of the page')
    parser.add_argument('--write', nargs='?', const=PAGE, metavar='FILE', type=Path,
                        help=f'renew the tables in a file (default: {PAGE})')


def run(args: argparse.Namespace) -> int:
    """Print or write the tables."""
    chosen = config_from(args)
    if args.write:
        text = args.write.read_text(encoding='utf-8')
        args.write.write_text(renewed(text), encoding='utf-8')
    elif args.markdown:
        print(markdown())
    else:
        for kind in sets():
            print(_listing(chosen if isinstance(chosen, kind) else kind()))
    return 0


def sets() -> list[type[config.Tunables]]:
    """List the dataclasses of tunables in the order of their definition."""
    found = [kind for _, kind in inspect.getmembers(config, inspect.isclass)
             if issubclass(kind, config.Tunables) and kind is not config.Tunables]
    return sorted(found, key=lambda kind: inspect.getsourcelines(kind)[1])


def markdown() -> str:
    """Return one table per set."""
    return '\n\n'.join(_table(kind) for kind in sets())


def renewed(text: str) -> str:
    """Return a text with what stands between the marks renewed."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f'text: expected the marks {BEGIN!r} and {END!r}, got none')
    return f'{before}{BEGIN}\n\n{markdown()}\n\n{END}{after}'


def _table(kind: type[config.Tunables]) -> str:
    rows = [COLUMNS, ('---',) * len(COLUMNS)]
    for one in kind.tunables().values():
        meaning = one.meaning + (' (read at start)' if one.fixed else '')
        rows.append((f'`{one.name}`', f'`{_text(one.default)}`', one.bounds, one.unit, meaning))
    lines = ['| ' + ' | '.join(cell.replace('|', '\\|') for cell in row) + ' |' for row in rows]
    return f'{inspect.getdoc(kind)}\n\n' + '\n'.join(lines)


def _listing(values: config.Tunables) -> str:
    lines = [inspect.getdoc(type(values))]
    for one in values.tunables().values():
        unit = f' {one.unit}' if one.unit else ''
        lines.append(f'  {one.name}={_text(values.value(one.name))}{unit}')
        lines.append(f'      {one.meaning} ({one.bounds})')
    return '\n'.join(lines) + '\n'


def _text(value: object) -> str:
    """Write a value the way `--set` and YAML take it."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if value == '' else str(value)
