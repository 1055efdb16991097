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
"""What kind of surface each pixel of a judged frame shows, by its reference."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from graph_depth_refiner.core.camera import points
from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.lab.evaluation.filters import fill_nearest
from graph_depth_refiner.lab.evaluation.recording.reference import Reference

NAMES = ('plane', 'curved', 'edge', 'thin', 'hole')
JUMP = 0.04  # of the depth, between neighbours, that is an edge
EDGE_BAND = 4  # px to either side of one
THIN = 9  # px; what is narrower is thin
MOST_PLANES = 8
LEAST_PLANE, LEAST_PLANE_SHARE = 4000, 1 / 40  # px of a plane, or share of a small image
TRIES = 60  # pixels whose planes are tried, of which the best is kept (RANSAC)
SAMPLE = 6000  # pixels that vote for them
REFITS = 3
NEAR_PLANE, AROUND_PLANE = 0.004, 0.006  # of the depth, from the plane: to fit, and to belong
NEAR_PLANE_FLOOR = 0.001  # metres, on top of it
SAME_COSINE, LIKE_COSINE = 0.94, 0.9  # between the normals of pixel and plane, likewise
OPENING = 7  # px; narrower bridges belong to no plane
Plane = tuple[np.ndarray, float]  # unit normal n and c of n.P + c = 0


@dataclass(frozen=True, eq=False)
class Regions:
    """Masks H W, the truth in them, and the planes that were found."""

    plane: np.ndarray  # large flat parts
    curved: np.ndarray  # the calm rest: round things and clutter
    edge: np.ndarray  # around depth jumps
    thin: np.ndarray
    hole: np.ndarray  # not measured in this frame, but in later ones
    calm: np.ndarray  # plane and curved
    never: np.ndarray  # measured neither in this frame nor in any later one
    measured: np.ndarray  # in this frame, with a reference
    near: np.ndarray  # H W metres, the nearest and farthest depth around
    far: np.ndarray
    depth: np.ndarray  # H W metres, what counts as true, NaN where unknown
    normals: np.ndarray  # H W 3, the same
    label: np.ndarray  # H W, number of the plane from 1 on
    planes: tuple[Plane, ...]

    def judged(self, name: str) -> np.ndarray:
        """Return the pixels of a region that are judged: but for holes, measured ones."""
        area = getattr(self, name)
        return area if name == 'hole' else area & self.measured


def find_regions(reference: Reference, frame: Frame, at_rest: bool) -> Regions:
    """
    Divide a frame by its reference.

    Frames of a camera at rest share the fixed pattern of its sensor, so that their mean is not
    true: there the planes fitted to large flat parts are.
    """
    depth = reference.depth
    known, measured = np.isfinite(depth), frame.depth > 0
    whole = fill_nearest(depth) if known.any() else np.ones_like(depth)
    around = np.ones((3, 3))
    jump = cv2.dilate(whole, around) > (1 + JUMP) * cv2.erode(whole, around)
    side = np.ones((2 * EDGE_BAND + 1,) * 2)
    band = cv2.dilate(jump.astype(np.uint8), side) > 0
    thin = known & _thin(whole)
    calm = known & ~band & np.isfinite(reference.normals[..., 0])
    label, planes = find_planes(reference, calm, frame.intrinsics)
    truth, normals = depth.copy(), reference.normals.copy()
    if at_rest:
        rays = points(np.ones_like(depth), frame.intrinsics)  # H W 3
        for number, (normal, offset) in enumerate(planes, 1):
            area = label == number
            truth[area] = -offset / (rays[area] @ normal)
            normals[area] = normal
    return Regions(
        plane=calm & (label > 0), curved=calm & (label == 0), edge=known & band & ~thin, thin=thin,
        hole=known & ~measured, calm=calm, never=~measured & (reference.values == 0),
        measured=known & measured, near=cv2.erode(whole, side), far=cv2.dilate(whole, side),
        depth=truth, normals=normals, label=label, planes=tuple(planes))


def _thin(depth: np.ndarray) -> np.ndarray:
    """Return what a morphological opening of inverse depth removes."""
    d = 1 / depth
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (THIN, THIN))
    return d > (1 + JUMP) * cv2.morphologyEx(d, cv2.MORPH_OPEN, disc)


def find_planes(reference: Reference, calm: np.ndarray,
                camera: Intrinsics) -> tuple[np.ndarray, list[Plane]]:
    """Return labels H W (0 for none) and the planes of large flat parts, the largest first."""
    rng = np.random.default_rng(0)
    normals = reference.normals
    space = points(reference.smooth, camera)  # H W 3
    least = min(LEAST_PLANE, LEAST_PLANE_SHARE * calm.size)
    label, found, left = np.zeros(calm.shape, np.uint8), [], calm.copy()
    for _ in range(3 * MOST_PLANES):
        if left.sum() < least or len(found) == MOST_PLANES:
            break
        plane = _refitted(_likeliest(space, normals, left, rng), space, normals, left)
        inside = left & _belongs(space, normals, plane, AROUND_PLANE, LIKE_COSINE)
        area = _large_parts(inside, least)
        if area.any():
            found.append(plane)
            label[area] = len(found)
            left &= ~area
        else:  # not large enough in one piece, and not to be tried again
            left &= ~_belongs(space, normals, plane, NEAR_PLANE, -1)
    return label, found


def _belongs(space: np.ndarray, normals: np.ndarray, plane: Plane, near: float,
             cosine: float) -> np.ndarray:
    """Return which points lie near a plane and have about its normal."""
    normal, offset = plane
    close = np.abs(space @ normal + offset) < near * space[..., 2] + NEAR_PLANE_FLOOR
    return close & (normals @ normal > cosine)


def _likeliest(space: np.ndarray, normals: np.ndarray, left: np.ndarray,
               rng: np.random.Generator) -> Plane:
    """Return the plane of a pixel that most pixels agree with."""
    index = np.flatnonzero(left)
    space, normals = space.reshape(-1, 3), normals.reshape(-1, 3)
    seeds = rng.choice(index, TRIES)
    voters = rng.choice(index, min(SAMPLE, len(index)), replace=False)
    planes = [(normals[s], float(-normals[s] @ space[s])) for s in seeds]
    votes = [_belongs(space[voters], normals[voters], plane, NEAR_PLANE, SAME_COSINE).sum()
             for plane in planes]
    return planes[int(np.argmax(votes))]


def _refitted(plane: Plane, space: np.ndarray, normals: np.ndarray, left: np.ndarray) -> Plane:
    """Return the least-squares plane of the pixels near a plane."""
    for _ in range(REFITS):
        inside = left & _belongs(space, normals, plane, NEAR_PLANE, SAME_COSINE)
        if inside.sum() < 100:
            break
        chosen = space[inside]
        middle = chosen.mean(0)
        normal = np.linalg.svd(np.cov((chosen - middle).T))[2][2]
        normal = normal * np.sign(-(normal @ middle))  # towards the camera
        plane = normal, float(-normal @ middle)
    return plane


def _large_parts(inside: np.ndarray, least: float) -> np.ndarray:
    opened = cv2.morphologyEx(inside.astype(np.uint8), cv2.MORPH_OPEN, np.ones((OPENING, OPENING)))
    count, parts, statistics, _ = cv2.connectedComponentsWithStats(opened)
    large = [k for k in range(1, count) if statistics[k, cv2.CC_STAT_AREA] >= least]
    return np.isin(parts, large)
