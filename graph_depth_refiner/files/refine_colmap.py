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
"""Command `refine-colmap`: a COLMAP dense workspace in, one with refined maps out."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
import os
from pathlib import Path

import numpy as np

from graph_depth_refiner.cli.batch import add_cluster_argument, report_failures, run_shown
from graph_depth_refiner.cli.main import add_config_arguments, config_from
from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.files.colmap import read_array, read_views, View, write_array
from graph_depth_refiner.files.reading import read_image
from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.messages.conversions import resize_image

KINDS = ('geometric', 'photometric')  # of maps, the better one first
DEPTHS, NORMALS = Path('stereo', 'depth_maps'), Path('stereo', 'normal_maps')
# The fusion averages views: it wants errors that differ from view to view, not smooth ones, and
# wide smoothing lets it take worse points.
SETTINGS = ('planes.passes=1',)
USUAL_DEPTH = 2.0  # metres: the scale of a reconstruction is arbitrary, limits are in metres


@dataclass(frozen=True)
class Job:
    """One view to refine; travels to other processes."""

    workspace: Path
    out: Path
    view: View
    kind: str
    config: RefinerConfig
    device: str

    def depth(self, folder: Path) -> Path:
        """Return the file of the depth map in a workspace."""
        return folder / DEPTHS / f'{self.view.name}.{self.kind}.bin'

    def normals(self, folder: Path) -> Path:
        """Return the file of the normal map in a workspace."""
        return folder / NORMALS / f'{self.view.name}.{self.kind}.bin'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        'workspace', type=Path,
        help='dense workspace of COLMAP, as image_undistorter and patch_match_stereo leave it')
    parser.add_argument(
        '--out', type=Path, metavar='FOLDER',
        help='the workspace to write (default: WORKSPACE_refined); images and sparse are linked')
    parser.add_argument(
        '--input', choices=('auto', *KINDS), default='auto',
        help='maps to refine; auto: geometric where there are some (default: %(default)s)')
    add_cluster_argument(parser)
    add_config_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Refine every view; return the exit code."""
    jobs = plan(args)
    link_workspace(jobs[0].workspace, jobs[0].out)
    outcomes = run_shown('refine-colmap', refine_view, jobs, args.cluster)
    refined = report_failures(outcomes)
    print(f'{refined} of {len(outcomes)} views refined -> {jobs[0].out}')
    return 0 if refined == len(outcomes) else 1


def colmap_config(args: argparse.Namespace) -> RefinerConfig:
    """Return the configuration that the options ask for, the settings for fusion below them."""
    args.set = [*SETTINGS, *args.set]
    return config_from(args)


def plan(args: argparse.Namespace) -> list[Job]:
    """Return the jobs that the arguments ask for."""
    workspace = args.workspace.resolve()
    out = (args.out or workspace.with_name(f'{workspace.name}_refined')).resolve()
    if out == workspace:
        raise ValueError(f'out: expected another folder than the workspace, got {str(args.out)!r}')
    kinds = KINDS if args.input == 'auto' else (args.input,)
    return plan_views(workspace, out, kinds, colmap_config(args), args.device)


def plan_views(
        workspace: Path, out: Path, kinds: Sequence[str], config: RefinerConfig,
        device: str = 'auto') -> list[Job]:
    """Return a job for every view that has a depth map of the first kind that is there."""
    views = read_views(workspace / 'sparse')
    for kind in kinds:
        jobs = [Job(workspace, out, view, kind, config, device) for view in views]
        jobs = [job for job in jobs if job.depth(workspace).is_file()]
        if jobs:
            return jobs
    raise ValueError(
        f'{workspace / DEPTHS}: expected depth maps of the images of the sparse model, got none')


def link_workspace(workspace: Path, out: Path) -> None:
    """Make a workspace that shares all but the maps with another one."""
    for folder in (DEPTHS, NORMALS):
        (out / folder).mkdir(parents=True, exist_ok=True)
    ours = {workspace / part for part in (DEPTHS.parent, DEPTHS, NORMALS)}
    for path in (*workspace.iterdir(), *(workspace / DEPTHS.parent).iterdir()):
        link = out / path.relative_to(workspace)
        if path not in ours and path != out and not link.exists():
            link.symlink_to(os.path.relpath(path, link.parent))


def refine_view(job: Job) -> str:
    """Refine one view and write its maps; return a line about it."""
    from graph_depth_refiner.refiner import DepthRefiner  # a worker loads it, not the command line

    frame, unit = read_view(job)
    refined = DepthRefiner(job.config, job.device).refine(frame)
    for path, values in ((job.depth(job.out), refined.depth * np.float32(unit)),
                         (job.normals(job.out), refined.normals)):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_array(path, values)
    return f'{job.view.name}: {refined.status.value}'


def read_view(job: Job) -> tuple[Frame, float]:
    """Return the frame of a view, and its units of length in a metre."""
    depth = read_array(job.depth(job.workspace))
    if depth.ndim != 2:
        raise ValueError(f'{job.depth(job.workspace)}: expected one channel, got {depth.shape[2]}')
    known = depth[np.isfinite(depth) & (depth > 0)]
    unit = float(np.median(known)) / USUAL_DEPTH if known.size else 1.0
    image = read_image(job.workspace / 'images' / job.view.name)
    return Frame(resize_image(image, depth.shape), depth / np.float32(unit),
                 scaled_intrinsics(job.view, depth.shape)), unit


def scaled_intrinsics(view: View, shape: tuple[int, int]) -> Intrinsics:
    """Return the camera of a depth map, which may be smaller than its image."""
    x, y = shape[1] / view.camera.width, shape[0] / view.camera.height
    camera = view.camera.intrinsics
    return replace(camera, fx=x * camera.fx, cx=x * camera.cx, fy=y * camera.fy, cy=y * camera.cy)
