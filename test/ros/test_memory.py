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
"""Freed memory is kept, and what is held is known."""

import os
import subprocess
import sys
import time

from graph_depth_refiner.ros.memory import cpu_seconds, resident_megabytes

# minor page faults while 20 MB come and go twenty times, as messages do
COUNT_FAULTS = """
import resource
import numpy as np
from graph_depth_refiner.ros.memory import keep_freed_memory
{keep}
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    bytearray(20_000_000)
before = faults()
for _ in range(20):
    bytearray(b'x') * 20_000_000
print(faults() - before)
"""


def faults(keep):
    """Count page faults in a process of its own."""
    code = COUNT_FAULTS.format(keep='keep_freed_memory()' if keep else '')
    run = subprocess.run([sys.executable, '-c', code], capture_output=True, check=True, text=True)
    return int(run.stdout)


def test_memory_of_a_frame_is_found_again():
    assert faults(keep=True) <= faults(keep=False)
    assert faults(keep=True) < 20_000_000 / 4096  # less than one of the twenty is new


def test_memory_held_is_known():
    assert 1 < resident_megabytes() < 1e5
    assert resident_megabytes(os.getpid()) > 1
    assert resident_megabytes(2 ** 22 + 1) != resident_megabytes(2 ** 22 + 1)  # NaN: no such


# 200 MB come and go, then 50 MB come to stay
LEAK = """
from graph_depth_refiner.ros.memory import free_megabytes, keep_freed_memory, resident_megabytes
keep_freed_memory()
gone = [bytearray(b'x') * 10_000_000 for _ in range(20)]
last = bytearray(100_000)
del gone
held, free = resident_megabytes(), free_megabytes()
leaked = [bytearray(b'x') * 10_000_000 for _ in range(5)]
print(resident_megabytes() - held, free - free_megabytes())
"""


def test_a_leak_within_the_memory_that_is_kept_is_seen():
    run = subprocess.run([sys.executable, '-c', LEAK], capture_output=True, check=True, text=True)
    more_held, less_free = map(float, run.stdout.split())
    assert more_held < 1
    assert 49 < less_free < 51


def test_cpu_time_of_a_process_is_known():
    # in ticks of a hundredth of a second
    assert abs(cpu_seconds() - time.process_time()) < 0.1
    assert cpu_seconds(os.getpid()) > 0
    assert cpu_seconds(2 ** 22 + 1) != cpu_seconds(2 ** 22 + 1)  # NaN: no such
