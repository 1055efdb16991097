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
"""Test the live panel in a real browser."""

import json
import threading
import time
from urllib.error import HTTPError
from urllib.request import urlopen

import browser
import numpy as np
import pytest

from graph_depth_refiner.files.pictures import jpeg
from graph_depth_refiner.lab.demo.web import WebPanel


@pytest.fixture
def web():
    """Serve on any free port."""
    panel = WebPanel(0)
    yield panel
    panel.close()


def picture(level):
    """Return a small grey JPEG."""
    return jpeg(np.full((16, 16, 3), level, np.uint8))


def test_the_newest_panel_is_served(web):
    with pytest.raises(HTTPError):
        urlopen(web.address + 'panel.jpg')
    web.show(1, 'first', picture(10))
    web.show(2, 'second', picture(20))
    state = json.loads(urlopen(web.address + 'state.json').read())
    assert state == {'frame': 2, 'table': 'second'}
    assert urlopen(web.address + 'panel.jpg?2').read() == picture(20)


def test_nothing_else_is_served(web):
    for path in ('etc/passwd', '../web.py', 'nothing'):
        with pytest.raises(HTTPError):
            urlopen(web.address + path)


def test_a_taken_port_is_one_sentence(web):
    port = int(web.address.rstrip('/').rpartition(':')[2])
    with pytest.raises(ValueError, match=f'web: expected a free port, got {port}'):
        WebPanel(port)


def test_the_page_follows_the_frames_without_errors(web, tmp_path):
    browser.find()
    ended = threading.Event()

    def play():
        number = 0
        while not ended.wait(0.05):
            number += 1
            web.show(number, f'table {number}', picture(number % 250))

    player = threading.Thread(target=play)
    player.start()
    try:
        time.sleep(0.2)
        document, console = browser.look(web.address, tmp_path, seconds=5)
    finally:
        ended.set()
        player.join()
    assert console == []
    assert 'src="panel.jpg?' in document
    number = int(document.partition('panel.jpg?')[2].partition('"')[0])
    assert number > 5  # not only the first picture
    assert 'table ' in document
