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
"""
Make the pictures of README and docs.

scripts/run python docs/figures.py method              docs/images/*.jpg, of a rendered room
scripts/run python docs/figures.py camera TUM_FOLDER   docs/images/real_camera.jpg
"""

from __future__ import annotations

from pathlib import Path
import sys

import cv2
import numpy as np

from graph_depth_refiner import DepthRefiner, Frame, Intrinsics, Refined, RefinerConfig
from graph_depth_refiner.core import kernels
from graph_depth_refiner.core.camera import points
from graph_depth_refiner.core.downsampling import downsample, downsample_image
from graph_depth_refiner.core.history import start_noise
from graph_depth_refiner.core.initialise import gate_edges, initialise
from graph_depth_refiner.core.observation import observe
from graph_depth_refiner.core.patch_graph import offsets, update_graph
from graph_depth_refiner.files.pictures import depth_colors, depth_range, jpeg, panel, Picture
from graph_depth_refiner.lab.evaluation.datasets import READERS
from graph_depth_refiner.lab.evaluation.depth_normals import fitted_normals
from graph_depth_refiner.lab.evaluation.realsense import RealsenseFilter
from graph_depth_refiner.lab.evaluation.recording.report import error_colors
from graph_depth_refiner.lab.synthetic.stream import SyntheticStream, View
from graph_depth_refiner.messages.outgoing import normal_colors

FOLDER = Path(__file__).parent / 'images'
FRAMES = 25  # of the stream that is refined up to the one shown
SEED, SIZE = 3, (640, 480)  # of the rendered room
TUM_FRAME = 60
WIDTH = 300  # px, of a picture
FIT_RADIUS = 4  # px, of normals for what has none of its own
SIDE, UP, AWAY = -0.6, 0.1, 0.1  # radians and share of the depth: from where clouds are seen
ZOOM, SPLAT = 1.3, 3  # of these views; px
LAMP = np.array([0.75, -0.35, -0.56])  # unit, from the right and above
NEAR = 1.6  # metres, up to which the cloud of the real camera is shown


def main() -> None:
    """Make the pictures that the arguments ask for."""
    FOLDER.mkdir(exist_ok=True)
    if sys.argv[1:] == ['method']:
        method()
    elif len(sys.argv) == 3 and sys.argv[1] == 'camera':
        camera(Path(sys.argv[2]))
    else:
        sys.exit(__doc__)


def method() -> None:
    """Show what the stages do to frames of a rendered room."""
    stream = SyntheticStream(SEED, SIZE, sensor='active-stereo', room='clutter')
    views = list(stream.views(FRAMES))
    last = views[-1]
    alone = DepthRefiner().refine(last.frame)
    refined = last_of([view.frame for view in views])
    rows = [stage('input', last, last.frame.depth, None),
            stage('refined, this frame alone', last, alone.depth, alone.normals),
            stage(f'refined, after {FRAMES} frames', last, refined.depth, refined.normals)]
    truth = [Picture('image', last.frame.image),
             Picture('true depth', depth_colors(last.depth)),
             Picture('true normals', normal_colors(last.normals))]
    save('stages', [truth, *rows])
    save('graph', [graph_pictures(last.frame)])


def stage(title: str, view: View, depth: np.ndarray, normals: np.ndarray | None) -> list[Picture]:
    """Return error, depth and normals of one stage."""
    known = np.where(depth > 0, depth, np.nan)
    if normals is None:
        normals = fitted_normals(known, view.frame.intrinsics, FIT_RADIUS)
    normals = np.where(np.isfinite(known)[..., None], normals, np.nan)
    true = np.where(np.isfinite(view.depth), view.depth, np.nan)
    error = 100 * (known - true) / true
    return [Picture(f'{title}: error, +-2 %', error_colors(error)),
            Picture('depth', depth_colors(known, depth_range(view.depth))),
            Picture('normals', normal_colors(normals))]


def last_of(frames: list[Frame]) -> Refined:
    """Refine a stream; return what comes of its last frame."""
    refiner = DepthRefiner()
    return [refiner.refine(frame) for frame in frames][-1]


def graph_pictures(frame: Frame) -> list[Picture]:
    """Show the weights of the edges to the right: of the image, and freed of depth jumps."""
    config = RefinerConfig()
    k = kernels.make(kernels.choose('cpu', 'auto'))
    obs = observe(k, frame, config)
    guide = downsample_image(k, obs, config)
    level = downsample(k, obs.d, obs.m, start_noise(k, obs, config), guide.scale)
    weights = update_graph(k, None, guide.guide, config).weights
    gated, _ = gate_edges(k, weights, initialise(k, level, weights, config), level, config)
    right = offsets(config.graph.window).index((0, 1))
    maps = [np.array(k.numpy(one)[right]) for one in (weights, gated)]
    top = np.quantile(maps[0], 0.95)
    grey = [np.rint(255 * np.clip(one / top, 0, 1)).astype(np.uint8) for one in maps]
    return [Picture('image', frame.image),
            *(Picture(title, cv2.cvtColor(one, cv2.COLOR_GRAY2RGB)) for title, one in zip(
                ('weights of the image', 'without depth jumps'), grey))]


def camera(folder: Path) -> None:
    """Show a frame of a TUM recording: as it came, through a filter, refined."""
    scenes = READERS['tum'](folder)
    frames = [scenes[number].frame for number in range(TUM_FRAME - FRAMES + 1, TUM_FRAME + 1)]
    refined = last_of(frames)
    other = RealsenseFilter()
    filtered = [other.filter(np.nan_to_num(frame.depth)) for frame in frames][-1]
    frame = frames[-1]
    span = depth_range(frame.depth)
    blank = Picture('', np.full((*frame.depth.shape, 3), 255, np.uint8))
    columns = [[Picture('image', frame.image), blank, blank]]
    for title, depth, normals in (('input', frame.depth, None),
                                  ('RealSense-style filter', filtered, None),
                                  ('graph_depth_refiner', refined.depth, refined.normals)):
        known = np.where(depth > 0, depth, np.nan)
        if normals is None:
            normals = fitted_normals(known, frame.intrinsics, FIT_RADIUS)
            normals[~np.isfinite(known)] = np.nan
        columns.append([
            Picture(f'{title}: depth', depth_colors(known, span)),
            Picture('normals', normal_colors(normals)),
            Picture('cloud from the side, lit', seen_from_aside(
                np.where(known < NEAR, known, np.nan), normals, frame.intrinsics))])
    save('real_camera', list(zip(*columns)))


def seen_from_aside(depth: np.ndarray, normals: np.ndarray, k: Intrinsics) -> np.ndarray:
    """Draw the cloud of a depth map from beside the camera, lit by its normals, H W 3."""
    height, width = depth.shape
    known = np.isfinite(depth)
    middle = np.array([0, 0, np.median(depth[known])])
    turn = cv2.Rodrigues(np.array([0.0, SIDE, 0.0]))[0] @ cv2.Rodrigues(np.array([UP, 0, 0.0]))[0]
    space = (points(depth, k)[known] - middle) @ turn.T + middle * (1 + AWAY)
    order = np.argsort(-space[:, 2])  # the nearest last, over the others
    x, y, z = space[order].T
    column = np.rint(ZOOM * k.fx * x / z + k.cx).astype(int)
    row = np.rint(ZOOM * k.fy * y / z + k.cy).astype(int)
    light = 0.1 + 0.9 * np.clip(np.nan_to_num(normals[known][order]) @ LAMP, 0, 1)
    color = np.rint(255 * light).astype(np.uint8)[:, None]
    drawn = np.full((height, width, 3), 255, np.uint8)
    inside = (z > 0.1) & (row >= 0) & (row < height - SPLAT)
    inside &= (column >= 0) & (column < width - SPLAT)
    for dy in range(SPLAT):
        for dx in range(SPLAT):
            drawn[row[inside] + dy, column[inside] + dx] = color[inside]
    return drawn


def save(name: str, rows: list) -> None:
    """Write a panel."""
    path = FOLDER / f'{name}.jpg'
    path.write_bytes(jpeg(panel(rows, WIDTH)))
    print(path, path.stat().st_size)


if __name__ == '__main__':
    main()
