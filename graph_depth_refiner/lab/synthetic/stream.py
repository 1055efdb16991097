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
"""A seeded stream of a depth camera in a furnished room, with its exact depth and normals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.lab.synthetic.clutter import LANE
from graph_depth_refiner.lab.synthetic.scene import Rendering, Scene
from graph_depth_refiner.lab.synthetic.sensors import make_sensor, Setup

MOTIONS = ('moving', 'static', 'object', 'camera')  # moving: camera and object
COMMAND_SENSOR, COMMAND_ROOM = 'active-stereo', 'clutter'  # of benchmarks and demo
RATE = 30.0  # frames a second
MIDDLE = 2.5  # metres, at which the image's motion is taken


@dataclass(frozen=True, eq=False)
class View:
    """
    One frame as the sensor gives it, and the truth.

    The truth is known wherever there is a surface, measured or not (holes, beyond the range,
    black or shiny things). Through open doors and windows there is none: depth is infinite and
    normals are NaN.
    """

    frame: Frame  # with the exact pose
    depth: np.ndarray  # H W float32 metres, exact
    normals: np.ndarray  # H W 3 float32, exact, towards the camera
    thin: np.ndarray  # H W bool: poles, table legs, cables and leaves
    curved: np.ndarray  # H W bool: balls, columns and all that is round
    moving: np.ndarray  # H W bool: the box that moves on its own


class SyntheticStream:
    """Frames of one random room; frame k is the same whenever it is asked for."""

    def __init__(self, seed: int = 0, size: tuple[int, int] = (320, 240),
                 motion: str = 'moving', sensor: str = 'independent',
                 room: str = 'furnished') -> None:
        """
        Lay out the room and the paths; size is (width, height).

        Without sensor and room it is the easy setting, for tests of what needs no hard one.
        """
        if motion not in MOTIONS:
            raise ValueError(f'motion: expected one of {", ".join(MOTIONS)}, got {motion!r}')
        if not all(16 <= side <= 4096 for side in size):
            raise ValueError(f'size: expected sides from 16 to 4096, got {size}')
        self.seed, self.size, self.motion = int(seed), tuple(size), motion
        width, height = size
        focal = 0.85 * width
        self.intrinsics = Intrinsics(focal, focal, (width - 1) / 2, (height - 1) / 2)
        self.sensor = make_sensor(sensor, Setup(self.seed, self.intrinsics, self.size))
        self.scene = Scene(self.seed, room)
        rng = np.random.default_rng((self.seed, 2))
        self._yaw, self._spin = rng.uniform(0, 2 * np.pi), rng.choice((-1, 1))
        self._pitch, self._height = rng.uniform(-0.25, -0.08), rng.uniform(1.1, 1.4)
        self._radii, self._phase = rng.uniform(0.4, 0.6, 2), rng.uniform(0, 2 * np.pi, 5)
        self._gain = rng.uniform(0.9, 1.15)

    def pose(self, index: int) -> np.ndarray:
        """Return the camera-to-world pose of a frame, 4 4."""
        k = index if self.motion in ('moving', 'camera') else 0
        a, b, c, d, _ = self._phase
        around = 0.032 * k + a  # 13 to 19 mm a frame
        middle = np.array([self._radii[0] * np.cos(around), self._radii[1] * np.sin(around),
                           self._height + 0.06 * np.sin(0.045 * k + b)])
        yaw = self._heading(k) + 0.05 * np.sin(0.03 * k + c)
        pitch = self._pitch + 0.05 * np.sin(0.035 * k + d)
        roll = 0.03 * np.sin(0.025 * k + a + d)
        forward = np.array([np.cos(pitch) * np.cos(yaw), np.cos(pitch) * np.sin(yaw),
                            np.sin(pitch)])
        right = np.array([np.sin(yaw), -np.cos(yaw), 0.0])
        down = np.cross(forward, right)
        pose = np.eye(4)
        pose[:3, 0] = np.cos(roll) * right + np.sin(roll) * down
        pose[:3, 1] = np.cos(roll) * down - np.sin(roll) * right
        pose[:3, 2] = forward
        pose[:3, 3] = middle
        return pose

    def view(self, index: int) -> View:
        """Return frame number `index`, from 0 on, as measured and as it is."""
        self._move_box(index if self.motion in ('moving', 'object') else 0)
        pose = self.pose(index)
        exact = self.scene.render(self.intrinsics, self.size, pose)
        rng = np.random.default_rng((self.seed, 3, index))
        depth, confidence = self.sensor.measure(exact, index, rng)
        image = self.sensor.photograph(self._lit(exact), index, self._image_motion(index))
        frame = Frame(_developed(image, rng), depth, self.intrinsics, confidence, index / RATE,
                      pose)
        return View(frame, exact.depth, exact.normals, exact.thin, exact.curved, exact.moving)

    def views(self, count: int) -> Iterator[View]:
        """Yield the first frames of the stream."""
        return (self.view(index) for index in range(count))

    def _heading(self, k: float) -> float:
        return self._yaw + self._spin * 0.0078 * k  # 0.45 degrees a frame

    def _move_box(self, index: int) -> None:
        k = index if self.motion == 'moving' else 0
        swing = 0.28 * np.sin(0.05 * index + self._phase[4])
        self.scene.place_mover(
            self._heading(k) + swing, LANE + 0.1 * np.sin(0.07 * index),
            self._height - 0.2 + 0.05 * np.sin(0.04 * index), 0.8 + 0.012 * index)

    def _image_motion(self, index: int) -> np.ndarray:
        """Return how far the middle of the image moves until the next frame, px."""
        here, there = self.pose(index), self.pose(index + 1)
        point = here[:3, 3] + MIDDLE * here[:3, 2]
        x, y, z = (point - there[:3, 3]) @ there[:3, :3]
        return np.array([self.intrinsics.fx * x / z, self.intrinsics.fy * y / z])

    def _lit(self, exact: Rendering) -> np.ndarray:
        """Return what reaches the lens under two lamps, H W 3 float32."""
        light = np.full(exact.depth.shape, np.float32(0.45))
        for lamp in self.scene.lights.astype(np.float32):
            offset = lamp[:, None, None] - exact.points  # 3 H W
            squared = (offset * offset).sum(0)
            cosine = np.einsum('hwc,chw->hw', exact.world_normals, offset) / np.sqrt(squared)
            light += np.float32(1.3) * np.maximum(cosine, 0) / (1 + np.float32(0.12) * squared)
        return exact.albedo * (light * np.float32(self._gain))[..., None]


def _developed(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the image as H W 3 uint8, with the noise of its sensor."""
    image = cv2.GaussianBlur(image, (3, 3), 0.55)  # a pixel sees a bit of its neighbours
    noise = rng.standard_normal(image.shape, dtype=np.float32)
    image = image + noise * (np.float32(0.004) + np.float32(0.008) * image)
    return (np.clip(image, 0, 1) * 255 + np.float32(0.5)).astype(np.uint8)
