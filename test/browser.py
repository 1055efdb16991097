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
"""A headless Chromium for tests of pages, where there is one."""

import json
import shutil
import subprocess

import cv2
import pytest

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome')
OPTIONS = ('--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage')
ASK = """<script>
window.addEventListener('load', () => setTimeout(() => {
  const images = [...document.images];
  const shown = images.filter(i => i.complete && i.naturalWidth > 0).length;
  document.title = JSON.stringify({images: images.length, shown: shown});
}, WAIT));
</script>"""


def find():
    """Return the path of a browser or skip the test."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip('no Chromium on this machine')
    return path


def look(address, tmp_path, seconds=8):
    """Open a page; return its document after that time and what the console said."""
    done = subprocess.run(
        [find(), *OPTIONS, f'--user-data-dir={tmp_path / "profile"}', '--enable-logging=stderr',
         f'--virtual-time-budget={1000 * seconds}', '--dump-dom', address],
        capture_output=True, text=True, timeout=120)
    console = [line for line in done.stderr.splitlines() if 'CONSOLE' in line]
    return done.stdout, console


def photograph(address, tmp_path, seconds=8, size=(1100, 700)):
    """Open a page; return a picture of it after that time, H W 3."""
    file = tmp_path / 'page.png'
    subprocess.run(
        [find(), *OPTIONS, f'--user-data-dir={tmp_path / "profile"}',
         f'--virtual-time-budget={1000 * seconds}', f'--window-size={size[0]},{size[1]}',
         f'--screenshot={file}', address], capture_output=True, timeout=120)
    return cv2.imread(str(file))[..., ::-1]


def count_images(page, tmp_path):
    """Open a copy of a page that counts its pictures; return all, shown and the console."""
    probe = page.with_name('probe.html')  # beside it, where its pictures are
    probe.write_text(page.read_text().replace('</body>', ASK.replace('WAIT', '500') + '</body>'))
    document, console = look(probe.as_uri(), tmp_path)
    title = document.partition('<title>')[2].partition('</title>')[0]
    found = json.loads(title)
    return found['images'], found['shown'], console
