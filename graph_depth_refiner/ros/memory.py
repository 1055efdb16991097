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
"""Keeps the memory of freed images for the next frame; tells what a process uses."""

from __future__ import annotations

import ctypes
import math
import os
import resource

# of glibc's malloc.h
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENAS = -1, -3, -8
LARGEST = 64 << 20  # bytes of one array or message, four times a cloud of 640x480
KEPT = 512 << 20  # bytes of free memory that are not given back


class Mallinfo(ctypes.Structure):
    """What glibc's mallinfo2() returns, in bytes or numbers."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        'arena', 'ordblks', 'smblks', 'hblks', 'hblkhd', 'usmblks', 'fsmblks', 'uordblks',
        'fordblks', 'keepcost')]


def keep_freed_memory() -> None:
    """
    Let malloc keep large blocks that are freed, in one place for all threads.

    By default each message of some megabytes is new memory from the kernel, cleared page by
    page, and given back a moment later; that costs more than copying the message. And what one
    thread freed would not serve another, so that the memory kept grows for minutes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # not glibc
        return
    mallopt(ARENAS, 1)
    mallopt(MMAP_THRESHOLD, LARGEST)
    mallopt(TRIM_THRESHOLD, KEPT)


def resident_megabytes(process: int | str = 'self') -> float:
    """Return the memory a process holds, NaN where that is not known."""
    try:
        with open(f'/proc/{process}/statm') as statm:
            return int(statm.read().split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        return math.nan


def free_megabytes() -> float:
    """Return how much of the memory this process holds is free: kept, see above, not in use."""
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):  # not glibc, or one before 2.33
        return 0.0
    mallinfo.restype = Mallinfo
    return mallinfo().fordblks / 1e6


def cpu_seconds(process: int | str = 'self') -> float:
    """Return the CPU time that a process has used, NaN where that is not known."""
    try:
        with open(f'/proc/{process}/stat') as stat:
            after_name = stat.read().rpartition(')')[2].split()
        return sum(map(int, after_name[11:13])) / os.sysconf('SC_CLK_TCK')
    except OSError:
        return math.nan
