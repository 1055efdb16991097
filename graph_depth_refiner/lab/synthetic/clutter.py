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
"""What people leave in a room: heaps, cables, plants, people themselves, and open doors."""

from __future__ import annotations

import cv2
import numpy as np

from graph_depth_refiner.lab.synthetic.shapes import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Look,
    Solid,
    Sphere,
)

LANE = 1.45  # metres from the middle: the camera keeps inside, the furniture outside
HEAPS, PEOPLE, PLANTS, CABLES = 10, 4, 5, 6
LEAVES, LINKS = 22, 9  # of a plant, of a cable


def clutter(half: np.ndarray, seed: int, textures: list[int]) -> list[Solid]:
    """Return all of it for a room of this half size; textures are those for things."""
    return _Clutter(half, np.random.default_rng((seed, 10)), textures).solids


def yawed(angle: float) -> np.ndarray:
    """Return the rotation around the vertical."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])


class _Clutter:
    """Collects solids; what stands on the floor stands around the camera's lane."""

    def __init__(self, half: np.ndarray, rng: np.random.Generator, textures: list[int]) -> None:
        self.solids: list[Solid] = []
        self._half, self._rng, self._textures = half, rng, textures
        self._openings()
        for make, count in ((self._heap, HEAPS), (self._person, PEOPLE), (self._plant, PLANTS),
                            (self._cable, CABLES)):
            start = rng.uniform(0, 2 * np.pi)
            for number in range(count):
                make(start + 2 * np.pi * (number + rng.uniform(-0.25, 0.25)) / count)

    def _look(self, **flags: bool) -> Look:
        """Return a look; one thing in six is black, one in eight shiny."""
        rng = self._rng
        kind = rng.random()
        dark = 0.12 if kind < 1 / 6 else rng.uniform(0.7, 1.1)
        shiny = not flags and kind > 7 / 8
        return Look((int(rng.choice(self._textures)),), tuple(rng.uniform(0, 2, 2)), dark,
                    shiny=shiny, **flags)

    def _spot(self, angle: float, near: float, far: float) -> np.ndarray:
        """Return a point on the floor, metres beyond the lane, inside the room."""
        reach = LANE + self._rng.uniform(near, far)
        spot = reach * np.array([np.cos(angle), np.sin(angle), 0.0])
        inside = np.array([*(self._half[:2] - 0.3), 0])
        return np.clip(spot, -inside, inside)

    def _turn(self) -> np.ndarray:
        """Return a random rotation."""
        return cv2.Rodrigues(self._rng.normal(0, 1.2, 3))[0]

    def _openings(self) -> None:
        """Put an open door and an open window into every wall."""
        rng = self._rng
        for axis in (0, 1):
            for sign in (-1, 1):
                left = rng.choice((-1, 1))
                for door in (True, False):
                    wide, tall = rng.uniform(*((.4, .95), (.5, 1.05)) if door
                                             else ((.3, .35), (.6, .5)))
                    centre = np.zeros(3)
                    centre[axis] = sign * self._half[axis]
                    centre[1 - axis] = rng.uniform(0.4, 0.6) * self._half[1 - axis] * (
                        left if door else -left)
                    centre[2] = tall if door else rng.uniform(1.2, 1.5)
                    self._opening(centre, axis, wide, tall, 0.1 if door else 1.3)

    def _opening(self, centre: np.ndarray, axis: int, wide: float, tall: float,
                 bright: float) -> None:
        """Add a screen of no depth in a wall, and a frame around it."""
        rng, side = self._rng, np.eye(3)[1 - axis]
        beyond = Look((int(rng.choice(self._textures)),), dark=bright, open=True)
        depth = np.eye(3)[axis]
        self.solids.append(
            Box(centre, 0.002 * depth + wide * side + (0, 0, tall), beyond))
        look = self._look(thin=False)
        for way in (-1, 1):
            self.solids.append(Box(centre + way * wide * side,
                                   0.06 * depth + 0.04 * side + (0, 0, tall), look))
            self.solids.append(Box(centre + (0, 0, way * tall),
                                   0.06 * depth + (wide + 0.04) * side + (0, 0, 0.04), look))

    def _heap(self, angle: float) -> None:
        """Throw boxes and round things on each other, most of them on a stand."""
        rng = self._rng
        spot = self._spot(angle, 0.3, 1.0)
        if rng.random() < 0.7:
            half = rng.uniform((.25, .2, .2), (.4, .3, .45))
            self.solids.append(
                Box(spot + (0, 0, half[2]), half, self._look(), yawed(rng.uniform(0, np.pi))))
            spot = spot + (0, 0, 2 * half[2])
        for number in range(14):
            size = rng.uniform(0.03, 0.1)
            away = rng.uniform(-0.24, 0.24, 2)
            height = size + 0.3 * rng.random() * np.exp(-8 * (away @ away)) * (number > 4)
            middle = spot + (*away, height)
            kind = rng.random()
            if kind < 0.5:
                self.solids.append(Box(middle, size * rng.uniform(0.5, 1.3, 3), self._look(),
                                       self._turn()))
            elif kind < 0.7:
                self.solids.append(Sphere(middle, size, self._look()))
            elif kind < 0.85:
                along = size * 1.5 * self._turn()[0]
                self.solids.append(Capsule(middle - along, middle + along, 0.5 * size,
                                           self._look()))
            else:
                self.solids.append(Ellipsoid(middle, size * rng.uniform(0.4, 1.2, 3),
                                             self._look(), self._turn()))

    def _cable(self, angle: float) -> None:
        """Hang a cable between two points of the room, as a chain of thin bars."""
        rng = self._rng
        ends = [self._spot(angle + turn, 0.1, 0.7) + (0, 0, rng.uniform(0.1, 2.0))
                for turn in (0, rng.uniform(0.3, 0.7))]
        sag, radius = rng.uniform(0.1, 0.5), rng.uniform(0.003, 0.007)
        look = self._look(thin=True)
        way = np.linspace(0, 1, LINKS + 1)[:, None]
        line = ends[0] + way * (ends[1] - ends[0]) - 4 * sag * way * (1 - way) * (0, 0, 1)
        line[:, 2] = np.maximum(line[:, 2], radius)
        for a, b in zip(line[:-1], line[1:]):
            length = float(np.linalg.norm(b - a))
            self.solids.append(Cylinder(a, (b - a) / length, length, radius, look))

    def _plant(self, angle: float) -> None:
        """Put many small leaves around a stem in a pot."""
        rng = self._rng
        spot = self._spot(angle, 0.2, 0.9)
        pot, tall = rng.uniform(0.1, 0.16), rng.uniform(0.6, 1.4)
        self.solids.append(Cylinder(spot, np.array([0, 0, 1.0]), 1.6 * pot, pot, self._look()))
        self.solids.append(Cylinder(spot, np.array([0, 0, 1.0]), tall, 0.01,
                                    self._look(thin=True)))
        look = self._look(thin=True)
        for _ in range(LEAVES):
            around, up = rng.uniform(0, 2 * np.pi), rng.uniform(0.3, 1.05)
            out = rng.uniform(0.06, 0.28)
            middle = spot + (out * np.cos(around), out * np.sin(around), up * tall)
            leaf = rng.uniform((.05, .02, .002), (.11, .045, .004))
            turn = yawed(around) @ cv2.Rodrigues(rng.normal(0, 0.6, 3))[0]
            self.solids.append(Ellipsoid(middle, leaf, look, turn))

    def _person(self, angle: float) -> None:
        """Let somebody stand there."""
        rng = self._rng
        spot, turn = self._spot(angle, 0.2, 0.6), yawed(rng.uniform(0, 2 * np.pi))
        size = rng.uniform(0.85, 1.05)
        cloth, skin, legs = self._look(), self._look(thin=False), self._look()

        def at(x: float, y: float, z: float) -> np.ndarray:
            return spot + turn @ (size * np.array([x, y, z]))

        for height, half, look in ((1.15, (.14, .21, .36), cloth), (1.62, (.1, .08, .13), skin)):
            self.solids.append(Ellipsoid(at(0, 0, height), size * np.array(half), look, turn))
        for side in (-1, 1):
            reach, lift = rng.uniform(-0.1, 0.4), rng.uniform(0.85, 1.3)
            hip, knee = at(0, 0.1 * side, 0.9), at(rng.uniform(-.05, .15), 0.11 * side, 0.5)
            elbow = at(0.5 * reach, 0.3 * side, 1.1)
            for a, b, radius, look in (
                    (hip, knee, .08, legs), (knee, at(0, 0.11 * side, 0.07), .06, legs),
                    (at(0, 0.22 * side, 1.38), elbow, .05, cloth),
                    (elbow, at(reach, 0.3 * side, lift), .04, skin)):
                self.solids.append(Capsule(a, b, size * radius, look))
