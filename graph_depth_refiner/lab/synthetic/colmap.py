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
"""A COLMAP dense workspace of a rendered room: several views, their maps and the truth."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from graph_depth_refiner.core.camera import points
from graph_depth_refiner.files.colmap import write_array
from graph_depth_refiner.files.pictures import png
from graph_depth_refiner.lab.evaluation.depth_normals import fitted_normals
from graph_depth_refiner.lab.synthetic.sensors import (
    ColorFaults,
    Setup,
    STEREO,
    TriangulationSensor,
)
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream, View

APART = 10  # frames of the stream between two views: 15 cm and 4.5 degrees
SPARSE = 200  # points of the sparse model that each view adds
SAME = 0.01  # relative difference of depths up to which a view sees a point
AGREEING = 2  # other views that have to agree with a measurement: the filter of COLMAP


def render_views(seed: int, count: int, size: tuple[int, int]) -> list[View]:
    """
    Return views of a cluttered room in which nothing moves, and their truth.

    The depth is that of the generator's passive stereo: noise that neighbours share, disparity in
    steps, no match without texture, patches of wrong matches. The image belongs to the depth map
    as it does in multi-view stereo: it is not shifted and has no faults of another camera.
    """
    stream = SyntheticStream(seed, size, 'camera', 'stereo', 'clutter')
    stream.sensor = TriangulationSensor(
        Setup(seed, stream.intrinsics, size), STEREO, ColorFaults(0, 0, 0))
    return [stream.view(APART * index) for index in range(count)]


def write_workspace(folder: Path, views: list[View]) -> None:
    """Write views as COLMAP's tools leave them: photometric maps, and geometric ones filtered."""
    for part in ('images', 'sparse', 'stereo/depth_maps', 'stereo/normal_maps'):
        (folder / part).mkdir(parents=True)
    for index, view in enumerate(views):
        frame = view.frame
        (folder / 'images' / _name(index)).write_bytes(png(frame.image))
        agreed = agreeing(views, index) >= AGREEING
        for kind, depth in (('photometric', frame.depth),
                            ('geometric', np.where(agreed, frame.depth, 0))):
            normals = fitted_normals(np.where(depth > 0, depth, np.nan), frame.intrinsics)
            write_array(folder / f'stereo/depth_maps/{_name(index)}.{kind}.bin', depth)
            write_array(folder / f'stereo/normal_maps/{_name(index)}.{kind}.bin',
                        np.where((depth > 0)[..., None], normals, 0))
    names = [_name(index) for index in range(len(views))]
    (folder / 'stereo' / 'fusion.cfg').write_text('\n'.join(names) + '\n')
    _write_sparse(folder / 'sparse', views)


def agreeing(views: list[View], index: int) -> np.ndarray:
    """Return how many other views measure the same at each pixel of a view, H W."""
    count = np.zeros(views[index].frame.depth.shape, int)
    space = world_points(views[index].frame.depth, views[index])
    for other, view in enumerate(views):
        if other != index:
            count += sees(view, view.frame.depth, space)
    return count * (views[index].frame.depth > 0)


def world_points(depth: np.ndarray, view: View) -> np.ndarray:
    """Return the points of a depth map in the world, H W 3; NaN where depth is infinite."""
    pose = view.frame.pose
    depth = np.where(np.isfinite(depth), depth, np.nan)
    return points(depth, view.frame.intrinsics) @ pose[:3, :3].T + pose[:3, 3]


def sees(view: View, depth: np.ndarray, space: np.ndarray) -> np.ndarray:
    """Return which points of the world (... 3) a view sees at the depth of its map."""
    pixels, z = project(view, space)
    column, row = np.moveaxis(np.rint(pixels).astype(int), -1, 0)
    height, width = depth.shape
    inside = (z > 0) & (column >= 0) & (column < width) & (row >= 0) & (row < height)
    found = depth[np.where(inside, row, 0), np.where(inside, column, 0)]
    return inside & np.isfinite(found) & (np.abs(found - z) < SAME * z)


def project(view: View, space: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pixels (... 2) and depths (...) of points of the world (... 3)."""
    pose, camera = view.frame.pose, view.frame.intrinsics
    local = (space - pose[:3, 3]) @ pose[:3, :3]
    z = np.where(local[..., 2] > 0, local[..., 2], np.inf)
    pixels = np.stack([camera.fx * local[..., 0] / z + camera.cx,
                       camera.fy * local[..., 1] / z + camera.cy], -1)
    return np.clip(pixels, -1e6, 1e6), local[..., 2]


def _name(index: int) -> str:
    return f'{index:03}.png'


def _write_sparse(folder: Path, views: list[View]) -> None:
    """Write cameras, images and some true points with the views that see them, as text."""
    tracks = _sparse_points(views)
    height, width = views[0].depth.shape
    camera = views[0].frame.intrinsics
    (folder / 'cameras.txt').write_text(
        f'1 PINHOLE {width} {height} {camera.fx} {camera.fy} {camera.cx} {camera.cy}\n')
    images, seen = [], [[] for _ in tracks]
    for index, view in enumerate(views):
        here = [number for number, (_, who) in enumerate(tracks) if who[index]]
        pixels = [project(view, tracks[number][0])[0] for number in here]
        for place, number in enumerate(here):
            seen[number].append(f'{index + 1} {place}')
        images += [
            f'{index + 1} {_pose_text(view.frame.pose)} 1 {_name(index)}',
            ' '.join(f'{x} {y} {number + 1}' for (x, y), number in zip(pixels, here))]
    (folder / 'images.txt').write_text('\n'.join(images) + '\n')
    (folder / 'points3D.txt').write_text(''.join(
        f'{number + 1} {x} {y} {z} 128 128 128 0.5 {" ".join(seen[number])}\n'
        for number, ((x, y, z), _) in enumerate(tracks)))


def _sparse_points(views: list[View]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return true points that several views see, and for each which views do."""
    rng = np.random.default_rng(0)
    chosen = []
    for view in views:
        space = world_points(view.depth, view).reshape(-1, 3)
        space = space[np.isfinite(space).all(-1)]
        chosen.append(rng.choice(space, SPARSE))
    space = np.concatenate(chosen)
    who = np.stack([sees(view, view.depth, space) for view in views], -1)  # N V
    return [(point, seen) for point, seen in zip(space, who) if seen.sum() > 1]


def _pose_text(pose: np.ndarray) -> str:
    """Return rotation (quaternion, w first) and shift from world to camera."""
    turn = pose[:3, :3].T
    vector = cv2.Rodrigues(turn)[0].ravel()
    angle = float(np.linalg.norm(vector))
    axis = vector / max(angle, 1e-12)
    shift = -turn @ pose[:3, 3]
    return ' '.join(map(str, (np.cos(angle / 2), *(np.sin(angle / 2) * axis), *shift)))
