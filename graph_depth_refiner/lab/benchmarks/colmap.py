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
"""Command `benchmark colmap`: fuse a rendered workspace with COLMAP, as it is and refined."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
import tempfile

import cv2
import numpy as np

from graph_depth_refiner.cli.main import add_config_arguments
from graph_depth_refiner.cli.table import format_table
from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.files.refine_colmap import (
    colmap_config,
    KINDS,
    link_workspace,
    plan_views,
    refine_view,
)
from graph_depth_refiner.lab.benchmarks.stream import image_size
from graph_depth_refiner.lab.synthetic.colmap import (
    render_views,
    world_points,
    write_workspace,
)
from graph_depth_refiner.lab.synthetic.stream import View

TOLERANCES = (0.01, 0.02, 0.05)  # metres
TRUTH_CELL = 0.005  # metres: one point of the true surface for each
DISC = 0.01  # metres: the surface around a true point, which its neighbours may be away
JUDGED = 50_000  # points of a cloud that are judged, at most
EXACT_TREE = {'algorithm': 4}  # FLANN_INDEX_KDTREE_SINGLE
EXACT_SEARCH = {'checks': -1}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `benchmark colmap`."""
    parser.add_argument('--seeds', type=int, nargs='+', default=[0], help='of the rooms')
    parser.add_argument('--views', type=int, default=16, help='of each room')
    parser.add_argument('--size', default='480x360', metavar='WxH', help='of the images')
    parser.add_argument('--input', choices=KINDS, default=KINDS[0], help='maps to fuse')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the records here')
    add_config_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Fuse every room twice; print the means over the rooms."""
    import pycolmap  # noqa: F401, it is missing now rather than after minutes of rendering
    config, size = colmap_config(args), image_size(args.size)
    rooms = [compare(render_views(seed, args.views, size), args.input, config)
             for seed in args.seeds]
    records = {name: {key: float(np.mean([room[name][key] for room in rooms]))
                      for key in rooms[0][name]} for name in rooms[0]}
    print(f'rooms {args.seeds}, {args.views} views of {args.size}, {args.input} maps')
    print(format_table(['', *records['input']], [
        [name, *(f'{value:.0f}' if key == 'points' else f'{value:.1f}'
                 for key, value in record.items())] for name, record in records.items()]))
    if args.json:
        args.json.write_text(json.dumps(records, indent=1) + '\n')
    return 0


def compare(views: list[View], kind: str, config: RefinerConfig) -> dict[str, dict[str, float]]:
    """Return the scores of the clouds fused from the maps as they are and refined."""
    truth = Truth(views)
    with tempfile.TemporaryDirectory() as folder:
        came, refined = Path(folder, 'input'), Path(folder, 'refined')
        write_workspace(came, views)
        link_workspace(came, refined)
        for job in plan_views(came, refined, (kind,), config):
            refine_view(job)
        return {path.name: truth.score(fuse(path, kind)) for path in (came, refined)}


def fuse(workspace: Path, kind: str) -> np.ndarray:
    """Return the points that COLMAP's stereo fusion makes of a workspace, N 3."""
    import pycolmap
    pycolmap.logging.minloglevel = 2  # warnings and below are not for the reader of a table
    with tempfile.TemporaryDirectory() as folder:
        fused = pycolmap.stereo_fusion(folder, str(workspace), input_type=kind)
    return np.array([point.xyz for point in fused.points3D.values()], np.float32).reshape(-1, 3)


class Truth:
    """The surface that the views see, as points with normals."""

    def __init__(self, views: list[View]) -> None:
        """Collect it at the resolution of TRUTH_CELL."""
        known = [np.isfinite(view.depth) for view in views]
        points = np.concatenate([
            world_points(view.depth, view)[where] for view, where in zip(views, known)])
        normals = np.concatenate([
            (view.normals @ view.frame.pose[:3, :3].T)[where]
            for view, where in zip(views, known)])
        cells = np.floor(points / TRUTH_CELL).astype(np.int64)
        _, first = np.unique(cells, axis=0, return_index=True)
        self.points = np.ascontiguousarray(points[first], np.float32)
        self.normals = normals[first]

    def score(self, cloud: np.ndarray) -> dict[str, float]:
        """
        Return how near a cloud (N 3) is to the surface, and how much of the surface it covers.

        Accuracy is the share of its points within a tolerance of the surface, completeness the
        share of the surface within it of a point, F their harmonic mean: the measures of ETH3D
        (Schoeps et al., CVPR 2017).
        """
        accuracy = self.distances(_some(cloud))
        missed = np.linalg.norm(_nearest(cloud, _some(self.points))[1], axis=1)
        found = {'points': float(len(cloud)), 'median mm': 1e3 * float(np.median(accuracy))}
        for limit in TOLERANCES:
            a, c = (float(100 * (d < limit).mean()) for d in (accuracy, missed))
            centimetres = f'{100 * limit:g} cm'
            found |= {f'accurate {centimetres} %': a, f'complete {centimetres} %': c,
                      f'F {centimetres} %': 2 * a * c / max(a + c, 1e-9)}
        return found

    def distances(self, cloud: np.ndarray) -> np.ndarray:
        """Return the distance of each point (N 3) from the disc around the nearest true point."""
        index, offset = _nearest(self.points, cloud)
        height = (offset * self.normals[index]).sum(1)
        aside = np.sqrt(np.maximum((offset * offset).sum(1) - height * height, 0))
        return np.hypot(height, np.maximum(aside - DISC, 0))


def _nearest(among: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return for each point the number of the nearest one, and the way from there to it."""
    tree = cv2.flann_Index(np.ascontiguousarray(among), EXACT_TREE)
    index = tree.knnSearch(np.ascontiguousarray(points), 1, params=EXACT_SEARCH)[0][:, 0]
    return index, points - among[index]


def _some(points: np.ndarray) -> np.ndarray:
    if len(points) <= JUDGED:
        return points
    return points[np.random.default_rng(0).choice(len(points), JUDGED, replace=False)]
