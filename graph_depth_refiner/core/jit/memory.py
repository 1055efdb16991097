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
"""Memory of one frame serves the next: it is not given back to the system in between."""

from __future__ import annotations

import ctypes
import os
import sys

# Parameters of mallopt in glibc (malloc.h), the variables that users set instead, and bytes: an
# image of 1280x720 with three floats has 11 MB, and all that a frame frees at its end 100 MB.
KEPT = ((-3, 'MALLOC_MMAP_THRESHOLD_', 32 << 20), (-1, 'MALLOC_TRIM_THRESHOLD_', 128 << 20))


def keep() -> None:
    """
    Let malloc keep what is freed, where it is glibc's and nobody has said otherwise.

    Pages that were given back are cleared by the system when they are needed again, in the next
    frame: some 1000 of 640x480, about a millisecond.
    """
    mallopt = getattr(ctypes.CDLL(None), 'mallopt', None) if sys.platform == 'linux' else None
    for parameter, variable, size in KEPT:
        if mallopt is not None and variable not in os.environ:
            mallopt(parameter, size)
