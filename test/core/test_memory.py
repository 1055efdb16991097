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
"""What a frame frees is there for the next one, without the system clearing pages again."""

import subprocess
import sys

PROGRAM = """
import resource
import numpy as np
import graph_depth_refiner.core.jit

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def frame():
    for one in [np.empty((480, 640, 3), np.float32) for _ in range(10)]:
        one[:] = 1

frame()
before = faults()
for _ in range(5):
    frame()
print(faults() - before)
"""


def test_pages_of_a_frame_are_kept_for_the_next():
    # 5 frames of 10 arrays of 900 pages of 4 kB; not one of the arrays is paid for again
    done = subprocess.run(
        [sys.executable, '-c', PROGRAM], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 900
