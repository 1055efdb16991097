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
"""Solids that a ray meets in closed form, for the synthetic stream."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

NEAR = 0.05  # metres; nothing nearer is seen
_TINY = np.float32(1e-9)


@dataclass
class Look:
    """What a solid looks like and which masks it belongs to."""

    textures: tuple[int, ...]  # one, or one per face of a room
    shift: tuple[float, float] = (0.0, 0.0)  # metres, so that equal solids look different
    dark: float = 1.0  # factor on the texture
    thin: bool = False
    moving: bool = False
    shiny: bool = False  # throws light away like a mirror
    open: bool = False  # nothing measurable behind: infinitely far


@dataclass
class Surface:
    """What is known of the visible points of one solid, N points."""

    normals: np.ndarray  # N 3, world, outward
    u: np.ndarray  # N, metres
    v: np.ndarray  # N, metres
    texture: np.ndarray  # N


@dataclass
class Box:
    """An oriented box; with `inside` the room around the camera."""

    centre: np.ndarray
    half: np.ndarray
    look: Look
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))  # local to world
    inside: bool = False
    curved = False

    def corners(self) -> np.ndarray | None:
        """Return 8 3 points that bound it, None for the room, which is everywhere."""
        if self.inside:
            return None
        signs = np.stack(np.meshgrid(*[(-1, 1)] * 3), -1).reshape(-1, 3)
        return self.centre + (signs * self.half) @ self.rotation.T

    def hit(self, origin: np.ndarray, rays: np.ndarray) -> np.ndarray:
        """Return the ray parameter of the first hit, infinite where there is none."""
        local = _rotate(rays, self.rotation)  # 3 ...
        start = ((origin - self.centre) @ self.rotation).astype(np.float32)
        enter = np.float32(-np.inf)
        leave = np.float32(np.inf)
        for axis in range(3):
            slope = 1 / np.where(np.abs(local[axis]) < _TINY, _TINY, local[axis])
            near = (-np.float32(self.half[axis]) - start[axis]) * slope
            far = (np.float32(self.half[axis]) - start[axis]) * slope
            enter = np.maximum(enter, np.minimum(near, far))
            leave = np.minimum(leave, np.maximum(near, far))
        if self.inside:
            return leave
        return np.where((enter < leave) & (enter > NEAR), enter, np.float32(np.inf))

    def surface(self, points: np.ndarray) -> Surface:
        """Return what is known of points (3 N) on its surface."""
        local = _rotate(points - self.centre[:, None], self.rotation)  # 3 N
        face = np.argmax(np.abs(local) / self.half[:, None], axis=0)
        sign = np.sign(np.take_along_axis(local, face[None], 0)[0])
        if self.inside:
            sign = -sign
        normals = self.rotation.T[face] * sign[:, None]
        u = np.where(face == 0, local[1], local[0])
        v = np.where(face == 2, local[1], local[2])
        textures = np.asarray(self.look.textures)
        if self.inside:  # floor, ceiling, four walls
            face = np.where(face == 2, (sign < 0), 2 + 2 * face + (sign < 0))
        return Surface(normals, u + 0.37 * face + self.look.shift[0],
                       v + self.look.shift[1], textures[face % len(textures)])


@dataclass
class Sphere:
    """A ball."""

    centre: np.ndarray
    radius: float
    look: Look
    curved = True

    def corners(self) -> np.ndarray:
        """Return 8 3 points that bound it."""
        return Box(self.centre, np.full(3, self.radius), self.look).corners()

    def hit(self, origin: np.ndarray, rays: np.ndarray) -> np.ndarray:
        """Return the ray parameter of the first hit, infinite where there is none."""
        start = (origin - self.centre).astype(np.float32)
        return _first_root(_dot(rays, rays), np.tensordot(start, rays, 1),
                           np.float32(start @ start - self.radius ** 2))

    def surface(self, points: np.ndarray) -> Surface:
        """Return what is known of points (3 N) on its surface."""
        normals = (points - self.centre[:, None]) / self.radius  # 3 N
        u = np.arctan2(normals[1], normals[0]) * self.radius
        v = np.arcsin(np.clip(normals[2], -1, 1)) * self.radius
        return Surface(normals.T, u + self.look.shift[0], v + self.look.shift[1],
                       np.full(u.shape, self.look.textures[0]))


@dataclass
class Cylinder:
    """A round bar from a base along an axis, without lids; thin ones are poles and legs."""

    base: np.ndarray
    axis: np.ndarray  # unit
    length: float
    radius: float
    look: Look

    @property
    def curved(self) -> bool:
        """Say whether it counts as a curved object; poles count as thin instead."""
        return not self.look.thin

    def corners(self) -> np.ndarray:
        """Return 16 3 points that bound it."""
        ends = (self.base, self.base + self.length * self.axis)
        return np.concatenate(
            [Box(end, np.full(3, self.radius), self.look).corners() for end in ends])

    def hit(self, origin: np.ndarray, rays: np.ndarray) -> np.ndarray:
        """Return the ray parameter of the first hit, infinite where there is none."""
        axis = self.axis.astype(np.float32)
        start = (origin - self.base).astype(np.float32)
        along = np.tensordot(axis, rays, 1)
        across = rays - axis[:, None, None] * along  # 3 ...
        offset = start - axis * (start @ axis)
        t = _first_root(_dot(across, across), np.tensordot(offset, across, 1),
                        np.float32(offset @ offset - self.radius ** 2))
        height = (start @ axis) + t * along
        return np.where((height >= 0) & (height <= self.length), t, np.float32(np.inf))

    def surface(self, points: np.ndarray) -> Surface:
        """Return what is known of points (3 N) on its surface."""
        offset = points - self.base[:, None]  # 3 N
        height = self.axis @ offset
        normals = (offset - self.axis[:, None] * height) / self.radius
        side = np.cross(self.axis, (0.6, 0.8, 0.0) if abs(self.axis[2]) > 0.9 else (0, 0, 1))
        side /= np.linalg.norm(side)
        u = np.arctan2(np.cross(self.axis, side) @ normals, side @ normals) * self.radius
        return Surface(normals.T, u + self.look.shift[0], height + self.look.shift[1],
                       np.full(u.shape, self.look.textures[0]))


@dataclass
class Capsule:
    """A bar with round ends between two points: limbs, bottles, lying rolls."""

    start: np.ndarray
    end: np.ndarray
    radius: float
    look: Look
    curved = True

    def corners(self) -> np.ndarray:
        """Return 16 3 points that bound it."""
        return np.concatenate([Box(end, np.full(3, self.radius), self.look).corners()
                               for end in (self.start, self.end)])

    def hit(self, origin: np.ndarray, rays: np.ndarray) -> np.ndarray:
        """Return the ray parameter of the first hit, infinite where there is none."""
        length = np.linalg.norm(self.end - self.start)
        parts = (Cylinder(self.start, (self.end - self.start) / length, length, self.radius,
                          self.look),
                 Sphere(self.start, self.radius, self.look),
                 Sphere(self.end, self.radius, self.look))
        return np.minimum.reduce([part.hit(origin, rays) for part in parts])

    def surface(self, points: np.ndarray) -> Surface:
        """Return what is known of points (3 N) on its surface."""
        axis = self.end - self.start
        along = np.clip(axis @ (points - self.start[:, None]) / (axis @ axis), 0, 1)
        middle = self.start[:, None] + axis[:, None] * along  # 3 N
        normals = (points - middle) / self.radius
        u = np.arctan2(normals[1], normals[0]) * self.radius
        return Surface(normals.T, u + self.look.shift[0],
                       along * np.linalg.norm(axis) + self.look.shift[1],
                       np.full(u.shape, self.look.textures[0]))


@dataclass
class Ellipsoid:
    """A stretched ball; flat ones are leaves."""

    centre: np.ndarray
    half: np.ndarray  # metres along its own axes
    look: Look
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))  # local to world

    @property
    def curved(self) -> bool:
        """Say whether it counts as a curved object; leaves count as thin instead."""
        return not self.look.thin

    def corners(self) -> np.ndarray:
        """Return 8 3 points that bound it."""
        return Box(self.centre, self.half, self.look, self.rotation).corners()

    def hit(self, origin: np.ndarray, rays: np.ndarray) -> np.ndarray:
        """Return the ray parameter of the first hit, infinite where there is none."""
        half = self.half.astype(np.float32)
        local = _rotate(rays, self.rotation) / half[:, None, None]
        start = ((origin - self.centre) @ self.rotation).astype(np.float32) / half
        return _first_root(_dot(local, local), np.tensordot(start, local, 1),
                           np.float32(start @ start - 1))

    def surface(self, points: np.ndarray) -> Surface:
        """Return what is known of points (3 N) on its surface."""
        local = _rotate(points - self.centre[:, None], self.rotation)  # 3 N
        slope = local / (self.half ** 2)[:, None]
        normals = self.rotation @ (slope / np.linalg.norm(slope, axis=0))
        return Surface(normals.T, local[0] + self.look.shift[0], local[1] + self.look.shift[1],
                       np.full(local.shape[1], self.look.textures[0]))


Solid = Box | Sphere | Cylinder | Capsule | Ellipsoid


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _rotate(vectors: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Turn world vectors (3 ...) into the local frame of a rotation."""
    turn = rotation.T.astype(vectors.dtype)
    return np.stack([row[0] * vectors[0] + row[1] * vectors[1] + row[2] * vectors[2]
                     for row in turn])


def _first_root(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the smaller root of a t^2 + 2 b t + c beyond NEAR, else infinite."""
    inner = b * b - a * c
    t = (-b - np.sqrt(np.maximum(inner, 0))) / np.maximum(a, _TINY)
    return np.where((inner > 0) & (t > NEAR), t, np.float32(np.inf))
