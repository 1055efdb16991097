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
"""Command `refine`: image files in; refined depth, normals, cloud and a preview out."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
import glob
import json
from pathlib import Path

import numpy as np

from graph_depth_refiner.cli.batch import add_cluster_argument, report_failures, run_shown
from graph_depth_refiner.cli.main import add_config_arguments, config_from
from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.files.exports import (
    CLOUD_FORMATS,
    MAP_FORMATS,
    write_cloud,
    write_depth,
    write_normals,
)
from graph_depth_refiner.files.pictures import (
    depth_colors,
    depth_range,
    image_colors,
    panel,
    Picture,
    png,
)
from graph_depth_refiner.files.reading import read_image, read_map, read_text
from graph_depth_refiner.frame import Frame, Intrinsics, Refined
from graph_depth_refiner.messages.conversions import fit_image
from graph_depth_refiner.messages.outgoing import normal_colors

CONFIDENCE_TOP = 255.0  # integer confidence images reach from 0 to this
PREVIEW_WIDTH = 400  # px, of each picture


@dataclass(frozen=True)
class Job:
    """One set of files to refine; travels to other processes."""

    image: Path
    depth: Path
    confidence: Path | None
    intrinsics: Intrinsics
    scale: float  # counts per metre of integer depth files
    stem: Path  # what the names of the results start with
    depth_format: str
    cloud_format: str
    config: RefinerConfig
    device: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument('image', help='image file, folder or pattern such as "rgb/*.png"')
    parser.add_argument(
        'depth', help='depth file, folder or pattern: PNG 16 bit, EXR, NPY, PFM or TIFF')
    parser.add_argument('out', type=Path, help='folder for the results')
    parser.add_argument(
        '--confidence', help='confidence file, folder or pattern; 1 or 255 is sure')
    parser.add_argument(
        '--intrinsics', required=True, metavar='FX,FY,CX,CY[,BASELINE]',
        help='camera in pixels (baseline in metres), or a JSON file with fx, fy, cx, cy')
    parser.add_argument(
        '--depth-scale', type=float, default=1000.0, metavar='N',
        help='counts per metre of integer depth files, in and out (default: %(default)g)')
    parser.add_argument(
        '--depth-format', choices=MAP_FORMATS, default=MAP_FORMATS[0],
        help='of refined depth and normals (default: %(default)s)')
    parser.add_argument(
        '--cloud-format', choices=(*CLOUD_FORMATS, 'none'), default=CLOUD_FORMATS[0],
        help='of the organised cloud (default: %(default)s)')
    add_cluster_argument(parser)
    add_config_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Refine every set of files; return the exit code."""
    jobs = plan(args)
    args.out.mkdir(parents=True, exist_ok=True)
    if len(jobs) == 1 and not args.cluster:
        print(refine_job(jobs[0]))
        return 0
    outcomes = run_shown('refine', refine_job, jobs, args.cluster)
    refined = report_failures(outcomes)
    print(f'{refined} of {len(outcomes)} refined')
    return 0 if refined == len(outcomes) else 1


def plan(args: argparse.Namespace) -> list[Job]:
    """Pair the files; refuse what does not pair up."""
    if not (np.isfinite(args.depth_scale) and args.depth_scale > 0):
        raise ValueError(f'depth-scale: expected a positive number, got {args.depth_scale}')
    depths = matching_files('depth', args.depth)
    images = _as_many('image', matching_files('image', args.image), depths)
    confidences: list[Path] | list[None] = [None] * len(depths)
    if args.confidence:
        confidences = _as_many(
            'confidence', matching_files('confidence', args.confidence), depths)
    stems = [path.stem for path in depths]
    if len(set(stems)) < len(stems):
        raise ValueError('depth: expected files of different names, got some of the same')
    intrinsics, config, out = (
        parse_intrinsics(args.intrinsics), config_from(args), args.out.absolute())
    return [
        Job(image, depth, confidence, intrinsics, args.depth_scale, out / depth.stem,
            args.depth_format, args.cloud_format, config, args.device)
        for image, depth, confidence in zip(images, depths, confidences, strict=True)]


def matching_files(name: str, text: str) -> list[Path]:
    """
    Return the files a path, folder or pattern stands for, sorted by name.

    The paths are absolute: a worker of a cluster may run elsewhere.
    """
    path = Path(text)
    if path.is_dir():
        found = [p for p in path.iterdir() if p.is_file() and not p.name.startswith('.')]
    elif path.exists():
        found = [path]
    else:
        found = [p for p in map(Path, glob.glob(text, recursive=True)) if p.is_file()]
    if not found:
        raise ValueError(f'{name}: expected files at {text!r}, got none')
    return sorted(path.absolute() for path in found)


def parse_intrinsics(text: str) -> Intrinsics:
    """Read FX,FY,CX,CY[,BASELINE] or a JSON file."""
    try:
        if text.endswith('.json'):
            known = json.loads(read_text(Path(text)))
            names = ('fx', 'fy', 'cx', 'cy', 'baseline')
            values = [float(known[n]) for n in names if n in known or n != 'baseline']
        else:
            values = [float(part) for part in text.split(',')]
        if len(values) not in (4, 5):
            raise ValueError
    except (OSError, KeyError, TypeError, ValueError):
        raise ValueError(
            'intrinsics: expected FX,FY,CX,CY[,BASELINE] or a JSON file of them, '
            f'got {text!r}') from None
    return Intrinsics(*values)


def refine_job(job: Job) -> str:
    """Refine one set of files and write the results; return a line about it."""
    from graph_depth_refiner.refiner import DepthRefiner  # a worker loads it, not the command line

    frame = read_frame(job)
    refined = DepthRefiner(job.config, job.device).refine(frame)
    write_results(job, frame, refined)
    filled = np.isfinite(refined.depth).mean() - np.isfinite(frame.depth).mean()
    return (
        f'{job.depth}: {refined.status.value}, {filled:+.1%} of the pixels known, '
        f'{sum(refined.milliseconds.values()):.0f} ms -> {job.stem}_*')


def read_frame(job: Job) -> Frame:
    """Read the files of one job."""
    depth = read_map(job.depth, job.scale)
    confidence = None
    if job.confidence is not None:
        confidence = np.nan_to_num(read_map(job.confidence, CONFIDENCE_TOP))
    image = fit_image(read_image(job.image), depth.shape)
    return Frame(image, depth, job.intrinsics, confidence)


def write_results(job: Job, frame: Frame, refined: Refined) -> None:
    """Write depth, normals, cloud and preview beside each other."""
    write_depth(_named(job, 'depth', job.depth_format), refined.depth, job.scale)
    write_normals(_named(job, 'normals', job.depth_format), refined.normals)
    colors = image_colors(frame.image)
    if job.cloud_format != 'none':
        write_cloud(
            _named(job, 'cloud', job.cloud_format), refined.depth, refined.normals, colors,
            frame.intrinsics)
    span = depth_range(refined.depth)
    preview = panel([
        [Picture('image', colors), Picture('depth as it came', depth_colors(frame.depth, span))],
        [Picture('refined normals', normal_colors(refined.normals)),
         Picture('refined depth', depth_colors(refined.depth, span))],
    ], PREVIEW_WIDTH)
    _named(job, 'preview', 'png').write_bytes(png(preview))


def _named(job: Job, what: str, suffix: str) -> Path:
    return job.stem.with_name(f'{job.stem.name}_{what}.{suffix}')


def _as_many(name: str, found: list[Path], depths: list[Path]) -> list[Path]:
    """Pair by name where every depth file has its namesake, else in the order of the names."""
    by_stem = {path.stem: path for path in found}
    if all(depth.stem in by_stem for depth in depths):
        return [by_stem[depth.stem] for depth in depths]
    if len(found) != len(depths):
        raise ValueError(
            f'{name}: expected {len(depths)} files, as many as depth files, got {len(found)}')
    return found
