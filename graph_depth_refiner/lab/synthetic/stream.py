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
from graph_depth_refiner.lab.synthetic.scene import LANE, Rendering, Scene

MOTIONS = ('moving', 'static', 'object')
NOISES = ('independent', 'correlated')
RATE = 30.0  # frames a second
RANGE = 5.5  # metres; the sensor sees nothing beyond
_NOISE_FLOOR, _NOISE_GROWTH = 0.003, 0.003  # deviation in metres: floor + growth * depth^2
_WEAK = 0.004  # returned signal below which nothing is measured
_KNOT = 12  # frames between two independent states of the drifting drop-outs
_CROSS = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))
_GREY = np.array([0.299, 0.587, 0.114], np.float32)


@dataclass(frozen=True, eq=False)
class View:
    """One frame as the sensor gives it, and the truth."""

    frame: Frame  # with the exact pose
    depth: np.ndarray  # H W float32 metres, exact
    normals: np.ndarray  # H W 3 float32, exact, towards the camera
    thin: np.ndarray  # H W bool: poles and table legs
    curved: np.ndarray  # H W bool: balls and columns
    moving: np.ndarray  # H W bool: the box that moves on its own


class SyntheticStream:
    """Frames of one random room; frame k is the same whenever it is asked for."""

    def __init__(self, seed: int = 0, size: tuple[int, int] = (320, 240),
                 motion: str = 'moving', noise: str = 'independent') -> None:
        """Lay out the room and the paths; size is (width, height)."""
        if motion not in MOTIONS:
            raise ValueError(f'motion: expected one of {", ".join(MOTIONS)}, got {motion!r}')
        if noise not in NOISES:
            raise ValueError(f'noise: expected one of {", ".join(NOISES)}, got {noise!r}')
        if not all(16 <= side <= 4096 for side in size):
            raise ValueError(f'size: expected sides from 16 to 4096, got {size}')
        self.seed, self.size, self.motion, self.noise = int(seed), tuple(size), motion, noise
        width, height = size
        focal = 0.85 * width
        self.intrinsics = Intrinsics(focal, focal, (width - 1) / 2, (height - 1) / 2)
        self.scene = Scene(self.seed)
        rng = np.random.default_rng((self.seed, 2))
        self._yaw, self._spin = rng.uniform(0, 2 * np.pi), rng.choice((-1, 1))
        self._pitch, self._height = rng.uniform(-0.25, -0.08), rng.uniform(1.1, 1.4)
        self._radii, self._phase = rng.uniform(0.4, 0.6, 2), rng.uniform(0, 2 * np.pi, 5)
        self._gain = rng.uniform(0.9, 1.15)

    def pose(self, index: int) -> np.ndarray:
        """Return the camera-to-world pose of a frame, 4 4."""
        k = index if self.motion == 'moving' else 0
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
        self._move_box(0 if self.motion == 'static' else index)
        pose = self.pose(index)
        exact = self.scene.render(self.intrinsics, self.size, pose)
        rng = np.random.default_rng((self.seed, 3, index))
        depth, confidence = self._measure(exact, rng, index)
        frame = Frame(self._photograph(exact, rng), depth, self.intrinsics, confidence,
                      index / RATE, pose)
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

    def _photograph(self, exact: Rendering, rng: np.random.Generator) -> np.ndarray:
        """Return the image, H W 3 uint8: two lamps, optics and sensor noise."""
        light = np.full(exact.depth.shape, np.float32(0.45))
        for lamp in self.scene.lights.astype(np.float32):
            offset = lamp[:, None, None] - exact.points  # 3 H W
            squared = (offset * offset).sum(0)
            cosine = np.einsum('hwc,chw->hw', exact.world_normals, offset) / np.sqrt(squared)
            light += np.float32(1.3) * np.maximum(cosine, 0) / (1 + np.float32(0.12) * squared)
        image = exact.albedo * (light * np.float32(self._gain))[..., None]
        image = cv2.GaussianBlur(image, (3, 3), 0.55)  # a pixel sees a bit of its neighbours
        noise = rng.standard_normal(image.shape, dtype=np.float32)
        image = image + noise * (np.float32(0.004) + np.float32(0.008) * image)
        return (np.clip(image, 0, 1) * 255 + np.float32(0.5)).astype(np.uint8)

    def _measure(self, exact: Rendering, rng: np.random.Generator,
                 index: int) -> tuple[np.ndarray, np.ndarray]:
        """Return measured depth (0 in holes) and confidence, H W float32."""
        signal = self._signal(exact)
        noise = self._noise(rng, index)
        floor = np.float32(_NOISE_FLOOR) + np.float32(_NOISE_GROWTH) * exact.depth ** 2
        weaker = np.clip(np.sqrt(np.float32(0.06) / np.maximum(signal, 1e-6)), 0.7, 1.6)
        flying, mixed = self._fly(exact.depth, rng)
        depth = mixed + noise * floor * weaker
        gone = (signal < _WEAK) | (exact.depth > RANGE) | self._drop_outs(index)
        gone |= flying & (rng.random(gone.shape, dtype=np.float32) < 0.3)
        confidence = signal / (signal + np.float32(0.02))
        confidence = np.where(flying, np.float32(0.7) * confidence, confidence)
        depth[gone], confidence[gone] = 0, 0
        return depth, confidence

    def _signal(self, exact: Rendering) -> np.ndarray:
        """Return what comes back of the sensor's own light: albedo cosine / depth^2."""
        cosine = np.maximum(-exact.facing, 0)
        return (exact.albedo @ _GREY) * cosine / (exact.depth * exact.depth)

    def _noise(self, rng: np.random.Generator, index: int) -> np.ndarray:
        """Return unit noise H W; correlated noise spans pixels and stays for some frames."""
        width, height = self.size
        noise = rng.standard_normal((height, width), dtype=np.float32)
        if self.noise == 'correlated':
            # unit variance: 0.6^2 independent + 0.8^2 smooth
            return np.float32(0.6) * noise + np.float32(0.8) * self._drifting(index, 4, 3)
        return noise

    def _drop_outs(self, index: int) -> np.ndarray:
        """Return where nothing is measured, H W bool: blobs that drift over the image."""
        cell = self.size[0] / 12  # so that the blobs do not depend on the resolution
        return self._drifting(index, cell, 4) > 2.1

    def _drifting(self, index: int, cell: float, stream: int) -> np.ndarray:
        """Return smooth noise of unit deviation, H W, that changes over _KNOT frames."""
        width, height = self.size
        grid = (max(2, round(width / cell)), max(2, round(height / cell)))
        knot, part = divmod(index, _KNOT)
        states = [np.random.default_rng((self.seed, stream, n)).standard_normal(
            grid[::-1], dtype=np.float32) for n in (knot, knot + 1)]
        angle = 0.5 * np.pi * part / _KNOT
        state = np.cos(angle) * states[0] + np.sin(angle) * states[1]
        smooth = cv2.resize(state.astype(np.float32), self.size, interpolation=cv2.INTER_CUBIC)
        return smooth / max(float(smooth.std()), 1e-6)

    def _fly(self, depth: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return where pixels mix two surfaces, and the depth with them mixed, H W."""
        near, far = cv2.erode(depth, _CROSS), cv2.dilate(depth, _CROSS)
        flying = (far - near > 0.05 * depth) & (
            rng.random(depth.shape, dtype=np.float32) < 0.45)
        share = rng.random(depth.shape, dtype=np.float32)
        return flying, np.where(flying, near + share * (far - near), depth)
