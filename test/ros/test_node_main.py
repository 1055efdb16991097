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
"""OpenCV is told to let its idle threads sleep before it is imported, which is when it asks."""

import os
import subprocess
import sys

import pytest

NAME = 'OPENCV_THREAD_POOL_ACTIVE_WAIT_WORKER'
# what the node finds when it begins
CODE = f"""
import os, sys
from graph_depth_refiner.ros import node_main
node_main._live = lambda *_: print(os.environ[{NAME!r}], 'cv2' in sys.modules)
node_main.run('nodes', 'RefinerNode')
"""


@pytest.mark.parametrize('given, expected', [(None, '0'), ('2000', '2000')])
def test_idle_threads_of_opencv_sleep(given, expected):
    environment = {name: value for name, value in os.environ.items() if name != NAME}
    if given:
        environment[NAME] = given
    found = subprocess.run(
        [sys.executable, '-c', CODE], env=environment, capture_output=True, text=True)
    assert found.stdout.split() == [expected, 'False'], found.stderr
