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
"""Scenes that several tests look at, and how a stage is run on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from graph_depth_refiner.core.kernels import Kernels
from graph_depth_refiner.frame import Frame, Intrinsics

IMAGES = (np.float32, np.uint8, np.bool_)  # what goes to a device; matrices and numbers do not


def run(k: Kernels, stage: Callable, *arguments: Any) -> Any:
    """Return what a stage of the kernels gives for numpy arrays, as numpy arrays."""
    given = [one if not isinstance(one, np.ndarray) else k.array(one) if one.dtype in IMAGES
             else k.motion(one) for one in arguments]
    result = stage(*given)
    return tuple(map(k.numpy, result)) if isinstance(result, tuple) else k.numpy(result)


def ramp(shape: tuple[int, int], d: float = 0.5, ux: float = 2e-3, uy: float = -1e-3
         ) -> np.ndarray:
    """Return the map d + ux x + uy y, float32."""
    y, x = np.mgrid[:shape[0], :shape[1]].astype(np.float32)
    return (d + ux * x + uy * y).astype(np.float32)


def ramp_planes(shape: tuple[int, int], d: float = 0.5, ux: float = 2e-3, uy: float = -1e-3
                ) -> np.ndarray:
    """Return the planes, 3 H W, of a ramp."""
    value = ramp(shape, d, ux, uy)
    return np.stack([value, np.full_like(value, ux), np.full_like(value, uy)])


def noisy_stream(size: tuple[int, int], number: int, **values: Any) -> Iterator[Frame]:
    """Yield frames of a noisy slanted wall with a ball, which comes nearer, and a hole."""
    width, height = size
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    ball = np.hypot(x - 0.7 * width, y - 0.6 * height) < 0.2 * height
    camera = {'fx': width, 'fy': width, 'cx': width / 2, 'cy': height / 2}
    for k in range(number):
        rng = np.random.default_rng(k)
        inverse = 0.5 + 0.3 * (x + y) / (width + height) + 0.005 * k + 0.3 * ball
        depth = (rng.normal(1, 0.005, x.shape) / inverse).astype(np.float32)
        depth[height // 3:height // 2, width // 3:width // 2] = 0
        shade = 80 + 60 * np.sin((x + k) / 7) + 40 * ball
        image = (shade[..., None] * np.ones(3)).astype(np.uint8)
        yield Frame(image, depth, Intrinsics(**{**camera, **values}),
                    rng.random(depth.shape).astype(np.float32), 1 + k / 30)
