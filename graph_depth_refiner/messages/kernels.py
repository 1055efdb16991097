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
"""
The one place where implementations of what touches every pixel of a message are chosen.

Compiled by numba, or in numpy where numba is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np


class MessageKernels(NamedTuple):
    """All of them in one implementation; arrays are contiguous."""

    # depth (H W float32 metres) into H W uint16
    millimetres: Callable[[np.ndarray, np.ndarray], None]
    # normals (H W 3 float32) into H W 3 uint8
    normal_colors: Callable[[np.ndarray, np.ndarray], None]
    # depth, normals, colours (H W uint32), camera (4 float32), step between pixels, into points
    # H W F float32 and their view as uint32; returns whether all of it is finite
    cloud_points: Callable[
        [np.ndarray, np.ndarray, np.ndarray, np.ndarray, int, np.ndarray, np.ndarray], bool]
    # depth (H W float32 metres) into inverse depth, 0 where it is none
    inverse_depth: Callable[[np.ndarray, np.ndarray], None]
    # inverse depth, its 3x3 median, noise, jump and grades into confidence, all H W float32
    judge: Callable[
        [np.ndarray, np.ndarray, np.float32, np.float32, tuple[np.float32, np.float32],
         np.ndarray], None]
    # code and number of pixels to uint16
    decode_rvl: Callable[[bytes, int], np.ndarray]
    # image, depth, where it is measured, motion, cameras, colours to fill; where they are
    project_colors: Callable[..., np.ndarray]
    # depth, where there are colours, colours, in place
    spread_colors: Callable[[np.ndarray, np.ndarray, np.ndarray], None]


@cache
def kernels() -> MessageKernels:
    """Return the fastest there are."""
    return numba_kernels() if find_spec('numba') else numpy_kernels()


def numba_kernels() -> MessageKernels:
    """Return the compiled ones."""
    from graph_depth_refiner.messages import (
        confidence_numba,
        outgoing_numba,
        registration_numba,
        rvl_numba,
    )
    return MessageKernels(
        millimetres=outgoing_numba.millimetres,
        normal_colors=outgoing_numba.normal_colors,
        cloud_points=outgoing_numba.cloud_points,
        inverse_depth=confidence_numba.inverse_depth,
        judge=confidence_numba.judge,
        decode_rvl=rvl_numba.decode_rvl,
        project_colors=registration_numba.project_colors,
        spread_colors=registration_numba.spread_colors)


def numpy_kernels() -> MessageKernels:
    """Return the reference."""
    from graph_depth_refiner.messages import (
        confidence_numpy,
        outgoing_numpy,
        registration_numpy,
        rvl_numpy,
    )
    return MessageKernels(
        millimetres=outgoing_numpy.millimetres,
        normal_colors=outgoing_numpy.normal_colors,
        cloud_points=outgoing_numpy.cloud_points,
        inverse_depth=confidence_numpy.inverse_depth,
        judge=confidence_numpy.judge,
        decode_rvl=rvl_numpy.decode_rvl,
        project_colors=registration_numpy.project_colors,
        spread_colors=registration_numpy.spread_colors)
