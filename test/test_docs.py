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
"""README and docs: links lead somewhere, commands and parameters exist."""

from pathlib import Path
import re
import runpy

import pytest

from graph_depth_refiner.cli.main import COMMANDS
from graph_depth_refiner.config import RefinerConfig

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob('*.md'), *ROOT.glob('docs/*.md'), *ROOT.glob('benchmark/*.md')])
FENCE = re.compile(r'^```.*?^```', re.MULTILINE | re.DOTALL)
LINK = re.compile(r'\[[^\]]*\]\(([^)\s]+)\)')
FAMILIES = {name.split()[0] for name in COMMANDS}
MOST_LINES = 180  # of the README
MOST_BYTES = 500_000  # of a picture


def named(path):
    """Return the name of a page for the list of tests."""
    return str(path.relative_to(ROOT))


def anchors(path):
    """Return the anchors of the headings of a page, as GitHub and MyST make them."""
    headings = re.findall(r'^#+ (.*)$', FENCE.sub('', path.read_text()), re.MULTILINE)
    words = (re.sub(r'[^\w\- ]', '', heading.lower()) for heading in headings)
    return {heading.replace(' ', '-') for heading in words}


@pytest.mark.parametrize('page', PAGES, ids=named)
def test_links_lead_to_files_and_headings(page):
    for link in LINK.findall(FENCE.sub('', page.read_text())):
        if link.startswith(('http://', 'https://')):
            continue
        path, _, anchor = link.partition('#')
        target = page.parent / path if path else page
        assert target.exists(), f'{link}: nothing there'
        assert not anchor or anchor in anchors(target), f'{link}: no such heading'


@pytest.mark.parametrize('page', PAGES, ids=named)
def test_commands_exist(page):
    text = page.read_text()
    for words in re.findall(r'-m graph_depth_refiner ([a-z-]+(?: [a-z]+)?)', text):
        first = words.split()[0]
        assert words in COMMANDS or first in FAMILIES, words
        if first not in COMMANDS:
            assert words in COMMANDS, words
    for name in re.findall(r'\bscripts/(\w+)', text):
        assert list((ROOT / 'scripts').glob(f'{name}*')), f'scripts/{name}'


def test_the_values_of_the_tuning_guide_are_accepted():
    text = (ROOT / 'docs' / 'tuning.md').read_text()
    found = re.findall(r'`([a-z_]+\.[a-z_]+): ([\w.]+)`', text)
    assert len(found) > 10
    for name, value in found:
        RefinerConfig().with_settings([f'{name}={value}'])


def test_the_readme_is_short_and_pictures_are_small():
    assert len((ROOT / 'README.md').read_text().splitlines()) <= MOST_LINES
    for path in (*ROOT.glob('docs/*.png'), *ROOT.glob('docs/images/*')):
        assert path.stat().st_size < MOST_BYTES, path


def test_the_contents_name_pages_that_are_there_and_a_star_for_the_others():
    contents = (ROOT / 'docs' / 'index.rst').read_text()
    names = re.findall(r'^   (\w+|\*)$', contents, re.MULTILINE)
    assert names[-1] == '*'
    for name in {*names[:-1], *re.findall(r':doc:`(\w+)`', contents)}:
        assert (ROOT / 'docs' / f'{name}.md').is_file(), name


def test_the_tables_of_accuracy_mark_who_is_better():
    tables = runpy.run_path(str(ROOT / 'docs' / 'accuracy_tables.py'))
    seen = {'input': {'plane': 0.4, 'plane_normals': 9.0},
            'bilateral': {'plane': 0.2, 'plane_normals': 8.0},
            'ours': {'plane': 0.3, 'plane_normals': 4.0}}
    records = [{'scene': 'one', 'input': matcher, 'method': method, 'bad1': bad,
                'normal_mean': 2 * bad, 'ms': 1.0}
               for matcher in ('SGBM', 'BM')
               for method, bad in (('raw', 30.0), ('wls', 20.0), ('ours', 10.0))]
    lines = tables['short_table'](
        [{'recording': 'my_camera', 'table': seen}], records).splitlines()
    assert lines[2:] == [
        '| my_camera | 0.400 | **0.200** (bilateral filter) | 0.300 '
        '| 9.00 | 8.00 (bilateral filter) | **4.00** |',
        '| Middlebury v3, OpenCV SGBM | 30.00 | 20.00 (wls) | **10.00** '
        '| 60.00 | 40.00 (wls) | **20.00** |',
        '| Middlebury v3, OpenCV BM | 30.00 | 20.00 (wls) | **10.00** '
        '| 60.00 | 40.00 (wls) | **20.00** |']
