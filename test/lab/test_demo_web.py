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
from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.demo.clouds import cloud, MAX_POINTS, pivot, pixels_apart
from graph_depth_refiner.lab.demo.web import Shown, WebPanel

CAMERA = Intrinsics(54, 54, 31.5, 23.5)  # as wide as the view of the page


@pytest.fixture
def web():
    """Serve on any free port."""
    panel = WebPanel(0)
    yield panel
    panel.close()


def picture(level):
    """Return a small grey JPEG."""
    return jpeg(np.full((16, 16, 3), level, np.uint8))


def wall(depth, color=(255, 0, 0)):
    """Return the cloud of a wall that fills the view."""
    pixels = np.full((48, 64), depth, np.float32)
    return cloud(pixels, np.full((48, 64, 3), color, np.uint8), CAMERA)


def test_a_cloud_has_the_known_pixels_at_their_places():
    depth = np.full((48, 64), 2, np.float32)
    depth[0, :3] = np.nan, 0, np.inf
    made = cloud(depth, np.full((48, 64, 3), (1, 2, 3), np.uint8), CAMERA)
    assert len(made) == 48 * 64 - 3
    assert made.tobytes()[12:16] == bytes((1, 2, 3, 255))
    # the last pixel is 31.5 and 23.5 px from the middle
    np.testing.assert_allclose(made['xyz'][-1], (2 * 31.5 / 54, 2 * 23.5 / 54, 2), rtol=1e-6)
    assert pivot(made) == [0, 0, 2]
    assert pivot(made[:0]) == [0, 0, 1]


def test_large_images_are_thinned():
    depth = np.full((480, 640), 2, np.float32)  # 307,200: every second pixel
    assert pixels_apart(depth) == 2
    assert len(cloud(depth, np.zeros((480, 640), np.uint8), CAMERA)) == 240 * 320 <= MAX_POINTS


def test_both_clouds_are_drawn_and_turn(web, tmp_path):
    browser.find()
    web.show(Shown(1, '', picture(0), wall(2.0, (255, 0, 0)), wall(2.0, (0, 255, 0)), 54))
    early, late = (browser.photograph(web.address, tmp_path, seconds) for seconds in (2, 4))
    red = (early[..., 0] > 200) & (early[..., 1] < 50)
    green = (early[..., 1] > 200) & (early[..., 0] < 50)
    # canvases of 480x360 that a wall fills but for what the turn leaves at the sides
    assert 0.5 < red.sum() / (480 * 360) < 1
    assert 0.5 < green.sum() / (480 * 360) < 1
    assert np.argwhere(red).mean(0)[1] < np.argwhere(green).mean(0)[1]
    assert (early != late).any()


def test_the_newest_panel_is_served(web):
    with pytest.raises(HTTPError):
        urlopen(web.address + 'panel.jpg')
    web.show(Shown(1, 'first', picture(10)))
    web.show(Shown(2, 'second', picture(20), wall(1.0), wall(3.0)[:7]))
    state = json.loads(urlopen(web.address + 'state.json').read())
    assert (state['frame'], state['table']) == (2, 'second')
    assert (state['input'], state['refined'], state['pivot']) == (48 * 64, 7, [0, 0, 3])
    assert urlopen(web.address + 'panel.jpg?2').read() == picture(20)
    assert urlopen(web.address + 'clouds.bin').read() == (
        wall(1.0).tobytes() + wall(3.0)[:7].tobytes())


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
            web.show(Shown(number, f'table {number}', picture(number % 250), wall(2.0)))

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
