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
"""A random room and its exact view, for the synthetic stream."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.synthetic.clutter import clutter, LANE, yawed
from graph_depth_refiner.lab.synthetic.shapes import Box, Cylinder, Look, NEAR, Solid, Sphere
from graph_depth_refiner.lab.synthetic.textures import (
    Atlas,
    BRICKS,
    CARPET,
    make_textures,
    PLASTER,
    SHAPES,
    STRIPES,
    TILES,
    WOODEN,
)

UP = np.array([0.0, 0.0, 1.0])
ROOMS = ('clutter', 'furnished')
_WALLS = (PLASTER, BRICKS, STRIPES, SHAPES)
_FLOORS = (WOODEN, TILES, CARPET)
_THINGS = (WOODEN, SHAPES, CARPET, STRIPES, PLASTER, TILES)


@dataclass
class Rendering:
    """
    The exact view of a scene.

    Through an open door or window nothing can be measured: there depth is infinite and normals are
    NaN; all else is that of a screen in the opening, for the image's sake.
    """

    depth: np.ndarray  # H W float32 metres
    normals: np.ndarray  # H W 3 float32, camera frame, towards the camera
    world_normals: np.ndarray  # H W 3 float32
    facing: np.ndarray  # H W float32, cosine of normal and viewing ray, negative
    albedo: np.ndarray  # H W 3 float32 in [0, 1]
    points: np.ndarray  # 3 H W float32, world
    thin: np.ndarray  # H W bool
    curved: np.ndarray  # H W bool
    moving: np.ndarray  # H W bool
    shiny: np.ndarray  # H W bool


class Scene:
    """A room with furniture, curved and thin things, and one box that moves; or with clutter."""

    def __init__(self, seed: int, room: str = 'furnished') -> None:
        """Lay out a random room, one of ROOMS."""
        if room not in ROOMS:
            raise ValueError(f'room: expected one of {", ".join(ROOMS)}, got {room!r}')
        rng = np.random.default_rng((seed, 1))
        self.half = np.array([rng.uniform(2.7, 3.4), rng.uniform(2.5, 3.2),
                              rng.uniform(1.2, 1.45)])
        kinds = [int(rng.choice(_FLOORS)), PLASTER]
        kinds += [int(k) for k in rng.choice(_WALLS, 4)]
        kinds += [int(k) for k in rng.choice(_THINGS, 8)]
        self.atlas = Atlas(make_textures(kinds, rng))
        self._rng = rng
        self._things = range(6, len(kinds))
        self.solids: list[Solid] = [
            Box(self.half * (0, 0, 1), self.half, Look((0, 1, 2, 3, 4, 5)), inside=True)]
        self._furnish()
        if room == 'clutter':
            self.solids += clutter(self.half, seed, list(self._things))
        self.mover = Box(np.array([LANE, 0, 0.9]), rng.uniform((.1, .1, .14), (.16, .16, .24)),
                         self._look(moving=True))
        self.solids.append(self.mover)
        self._still = np.stack([_bounds(solid) for solid in self.solids])
        self.lights = np.stack([
            rng.uniform(-0.6, 0.6, 3) * self.half + (0, 0, 1.9 * self.half[2]) for _ in range(2)])

    def place_mover(self, angle: float, distance: float, height: float, turn: float) -> None:
        """Put the moving box somewhere on its lane around the middle of the room."""
        self.mover.centre = np.array(
            [distance * np.cos(angle), distance * np.sin(angle), height])
        self.mover.rotation = yawed(turn)

    def render(self, intrinsics: Intrinsics, size: tuple[int, int],
               pose: np.ndarray) -> Rendering:
        """Return the exact view from a camera-to-world pose; size is (width, height)."""
        width, height = size
        rays = _world_rays(intrinsics, width, height, pose)  # 3 H W
        depth = np.full((height, width), np.inf, np.float32)
        owner = np.zeros((height, width), np.uint16)
        windows = _windows(self._bounds(), intrinsics, width, height, pose)
        for index, (solid, window) in enumerate(zip(self.solids, windows, strict=True)):
            if window is None:
                continue
            t = solid.hit(pose[:3, 3], rays[:, window[0], window[1]])
            nearer = t < depth[window]
            np.copyto(depth[window], t, where=nearer)
            np.copyto(owner[window], np.uint16(index), where=nearer)
        return self._look_up(intrinsics, pose, rays, depth, owner)

    def _look_up(self, intrinsics: Intrinsics, pose: np.ndarray, rays: np.ndarray,
                 depth: np.ndarray, owner: np.ndarray) -> Rendering:
        points = pose[:3, 3].astype(np.float32)[:, None, None] + rays * depth  # 3 H W
        flat = points.reshape(3, -1)
        normals = np.empty((depth.size, 3), np.float32)
        u, v, texture, dark = (np.empty(depth.size, np.float32) for _ in range(4))
        order = np.argsort(owner.ravel(), kind='stable')
        starts = np.searchsorted(owner.ravel()[order], np.arange(len(self.solids) + 1))
        for index, solid in enumerate(self.solids):
            seen = order[starts[index]:starts[index + 1]]
            if not seen.size:
                continue
            surface = solid.surface(flat[:, seen])
            normals[seen] = surface.normals
            u[seen], v[seen], texture[seen] = surface.u, surface.v, surface.texture
            dark[seen] = solid.look.dark
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)  # radii of poles are small
        world_normals = normals.reshape(*depth.shape, 3)
        normals = world_normals @ pose[:3, :3].astype(np.float32)
        facing = _facing(normals, intrinsics)
        footprint = depth / (np.float32(intrinsics.fx) * np.maximum(-facing, 0.15))
        maps = (one.reshape(depth.shape) for one in (texture, u, v))
        color = self.atlas.sample(*maps, footprint)
        albedo = color * (dark.reshape(*depth.shape, 1) * np.float32(1 / 255))
        nothing = self._flags('open')[owner]
        if nothing.any():
            depth[nothing], normals[nothing] = np.inf, np.nan
        return Rendering(depth, normals, world_normals, facing, albedo, points, *(
            self._flags(name)[owner] for name in ('thin', 'curved', 'moving', 'shiny')))

    def _bounds(self) -> np.ndarray:
        """Return points that bound each solid, S 16 3; NaN for the room, which is everywhere."""
        self._still[-1] = _bounds(self.mover)
        return self._still

    def _flags(self, name: str) -> np.ndarray:
        return np.array([s.curved if name == 'curved' else getattr(s.look, name)
                         for s in self.solids])

    def _furnish(self) -> None:
        rng = self._rng
        makers = [self._cabinet, self._table, self._ball, self._column, self._crates, self._ball,
                  self._board, self._cabinet, self._table, self._ball, self._column]
        rng.shuffle(makers)
        slots = (np.arange(len(makers)) + rng.uniform(0.2, 0.8, len(makers))) / len(makers)
        for maker, angle in zip(makers, 2 * np.pi * slots):
            maker(angle)
        poles = 10
        for angle in 2 * np.pi * (np.arange(poles) + rng.uniform(0, 0.7, poles)) / poles:
            self._pole(angle)

    def _look(self, **flags: bool) -> Look:
        rng = self._rng
        dark = 0.25 if rng.random() < 0.12 and not flags else rng.uniform(0.8, 1.1)
        return Look((int(rng.choice(self._things)),), tuple(rng.uniform(0, 2, 2)), dark, **flags)

    def _spot(self, angle: float, near: float, far: float) -> np.ndarray:
        """Return a point on the floor; near and far are shares of the way lane to wall."""
        direction = np.array([np.cos(angle), np.sin(angle)])
        wall = np.min(self.half[:2] / np.maximum(np.abs(direction), 1e-6))
        start = LANE + 0.35
        reach = start + (wall - start) * self._rng.uniform(near, far)
        return np.array([*(direction * reach), 0.0])

    def _cabinet(self, angle: float) -> None:
        half = self._rng.uniform((.2, .3, .4), (.3, .6, 1.0))
        spot = self._spot(angle, 0.75, 0.8)
        axis = np.argmax(np.abs(spot[:2]) / self.half[:2])
        if axis == 1:
            half = half[[1, 0, 2]]
        spot[axis] = np.sign(spot[axis]) * (self.half[axis] - half[axis])
        self.solids.append(Box(spot + half * (0, 0, 1), half, self._look()))
        if half[2] < 0.6:
            self._on_top(spot + UP * 2 * half[2])

    def _table(self, angle: float) -> None:
        spot = self._spot(angle, 0.25, 0.5)
        turn = yawed(self._rng.uniform(0, np.pi))
        half = self._rng.uniform((.4, .3, .02), (.6, .4, .03))
        top = self._rng.uniform(0.65, 0.8)
        self.solids.append(Box(spot + UP * top, half, self._look(), turn))
        leg = self._look(thin=True)
        for corner in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
            foot = spot + turn @ (np.array([*corner, 0]) * (half - 0.04))
            self.solids.append(Cylinder(foot * (1, 1, 0), UP, top - half[2], 0.015, leg))
        self._on_top(spot + UP * (top + half[2]))

    def _on_top(self, spot: np.ndarray) -> None:
        if self._rng.random() < 0.5:
            radius = self._rng.uniform(0.1, 0.18)
            self.solids.append(Sphere(spot + UP * radius, radius, self._look()))
        else:
            radius, tall = self._rng.uniform((.07, .2), (.12, .4))
            self.solids.append(Cylinder(spot, UP, tall, radius, self._look()))

    def _ball(self, angle: float) -> None:
        radius = self._rng.uniform(0.25, 0.42)
        spot = self._spot(angle, 0.3, 0.6)
        self.solids.append(
            Sphere(spot + UP * self._rng.uniform(radius, 1.3), radius, self._look()))

    def _column(self, angle: float) -> None:
        radius = self._rng.uniform(0.15, 0.28)
        self.solids.append(
            Cylinder(self._spot(angle, 0.3, 0.7), UP, 2 * self.half[2], radius, self._look()))

    def _crates(self, angle: float) -> None:
        spot = self._spot(angle, 0.3, 0.6)
        for _ in range(self._rng.integers(2, 4)):
            half = self._rng.uniform((.15, .15, .12), (.35, .3, .25))
            turn = yawed(self._rng.uniform(0, np.pi))
            self.solids.append(Box(spot + half * (0, 0, 1), half, self._look(), turn))
            spot = spot + UP * 2 * half[2]

    def _board(self, angle: float) -> None:
        spot = self._spot(angle, 0.4, 0.6)
        half = self._rng.uniform((.02, .4, .6), (.04, .7, .9))
        lean = self._rng.uniform(0.15, 0.5)
        tilt = np.array([[np.cos(lean), 0, np.sin(lean)], [0, 1, 0],
                         [-np.sin(lean), 0, np.cos(lean)]])
        self.solids.append(Box(spot + half * (0, 0, 1), half, self._look(),
                               yawed(angle + self._rng.uniform(-0.4, 0.4)) @ tilt))

    def _pole(self, angle: float) -> None:
        spot = self._spot(angle, 0.0, 0.35)
        lean = np.array([*self._rng.normal(0, 0.08, 2), 1.0])
        radius = self._rng.uniform(0.009, 0.015)
        self.solids.append(Cylinder(spot, lean / np.linalg.norm(lean), 2 * self.half[2], radius,
                                    self._look(thin=True)))


def _world_rays(k: Intrinsics, width: int, height: int, pose: np.ndarray) -> np.ndarray:
    """Return rays 3 H W of unit depth, so that the ray parameter is the depth."""
    x = ((np.arange(width) - k.cx) / k.fx).astype(np.float32)
    y = ((np.arange(height) - k.cy) / k.fy).astype(np.float32)
    turn = pose[:3, :3].astype(np.float32)
    return np.stack([row[0] * x[None] + row[1] * y[:, None] + row[2] for row in turn])


def _facing(normals: np.ndarray, k: Intrinsics) -> np.ndarray:
    """Return the cosine between normal and viewing ray, H W; negative towards the camera."""
    height, width = normals.shape[:2]
    x = ((np.arange(width) - k.cx) / k.fx).astype(np.float32)
    y = ((np.arange(height) - k.cy) / k.fy).astype(np.float32)
    along = normals[..., 0] * x + normals[..., 1] * y[:, None] + normals[..., 2]
    return along / np.sqrt(1 + x * x + (y * y)[:, None])


def _bounds(solid: Solid) -> np.ndarray:
    """Return points that bound a solid, 16 3; NaN where it is everywhere."""
    corners = solid.corners()
    return np.full((16, 3), np.nan) if corners is None else np.resize(corners, (16, 3))


def _windows(bounds: np.ndarray, k: Intrinsics, width: int, height: int,
             pose: np.ndarray) -> list[tuple[slice, slice] | None]:
    """Return the rows and columns each solid can cover, None when it is out of view."""
    x, y, z = np.moveaxis((bounds - pose[:3, 3]) @ pose[:3, :3], -1, 0)  # S 16
    near = z < NEAR
    behind, everywhere = near.all(1), near.any(1) | np.isnan(z).any(1)
    z = np.where(near, NEAR, z)
    x, y = k.fx * x / z + k.cx, k.fy * y / z + k.cy
    left, top = (np.maximum(0, np.floor(one.min(1))) for one in (x, y))
    right = np.minimum(width, np.ceil(x.max(1)) + 1)
    bottom = np.minimum(height, np.ceil(y.max(1)) + 1)
    windows: list[tuple[slice, slice] | None] = []
    for number in range(len(bounds)):
        if behind[number] or not everywhere[number] and (
                left[number] >= right[number] or top[number] >= bottom[number]):
            windows.append(None)
        elif everywhere[number]:
            windows.append((slice(0, height), slice(0, width)))
        else:
            windows.append((slice(int(top[number]), int(bottom[number])),
                            slice(int(left[number]), int(right[number]))))
    return windows
