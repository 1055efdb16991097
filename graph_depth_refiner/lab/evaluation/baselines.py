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
"""Every method of the evaluation behind one call: the same frame in, depth and normals out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np

from graph_depth_refiner.config import preset, RefinerConfig
from graph_depth_refiner.frame import Frame
from graph_depth_refiner.lab.evaluation import filters
from graph_depth_refiner.lab.evaluation.librealsense import LibrealsenseFilter
from graph_depth_refiner.refiner import DepthRefiner

OURS = 'ours'


@dataclass(frozen=True, eq=False)
class Pair:
    """The disparities of both images of a stereo pair, px."""

    left: np.ndarray  # H W, NaN where unknown
    right: np.ndarray  # H W, positive too
    offset: float  # px to add before they are proportional to inverse depth


@dataclass(frozen=True, eq=False)
class Task:
    """What a method may use."""

    frame: Frame
    pair: Pair | None = None


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a method returns; NaN where it knows nothing."""

    depth: np.ndarray  # H W float32 metres
    normals: np.ndarray | None = None  # H W 3 float32, where the method has its own


Method = Callable[[Task], Estimate]
Filter = Callable[[Frame], 'tuple[np.ndarray, float]']


def methods(config: RefinerConfig) -> dict[str, Method]:
    """Return every method this machine can run, by name, ours with the given settings."""
    paper = preset('paper', **{'solver.mode': 'converged'})
    known: dict[str, Method] = {
        'raw': _raw,
        'nearest': _filtered(_nearest),
        'background': _filtered(_background),
        'median': _filtered(filters.median),
        'weighted-median': _filtered(filters.weighted_median),
        'bilateral': _filtered(filters.bilateral),
        'wls': _wls,
        'guided': _filtered(filters.guided),
        'fgs': _filtered(filters.fast_global_smoother),
        'bilateral-solver': _filtered(filters.bilateral_solver),
        'librealsense': _librealsense(),
        # all of 5x5 neighbours: as good as 20 of 9x9, and it ends within the hour
        'nltgv': _refined(paper.with_values(
            **{'energy.regulariser': 'nltgv', 'graph.window': 5, 'graph.neighbours': 0})),
        'paper': _refined(paper),
        'ours-converged': _refined(config.with_values(**{'solver.mode': 'converged'})),
        OURS: _refined(config),
    }
    missing = absent()
    return {name: method for name, method in known.items() if name not in missing}


def absent() -> dict[str, str]:
    """Return the methods this machine cannot run, each with the reason."""
    reasons = {}
    if not hasattr(cv2, 'ximgproc'):
        for name in ('weighted-median', 'wls', 'guided', 'fgs', 'bilateral-solver'):
            reasons[name] = 'OpenCV has no ximgproc; opencv-contrib-python has it'
    elif not _has_bilateral_solver():
        reasons['bilateral-solver'] = 'OpenCV was built without Eigen'
    try:
        import pyrealsense2  # noqa: F401
    except ImportError as error:
        reasons['librealsense'] = f'pyrealsense2 does not import ({error})'
    return reasons


def _has_bilateral_solver() -> bool:
    flat = np.zeros((8, 8), np.float32)
    try:
        cv2.ximgproc.fastBilateralSolverFilter(np.zeros((8, 8, 3), np.uint8), flat, flat + 1)
    except cv2.error:
        return False
    return True


def _raw(task: Task) -> Estimate:
    depth = task.frame.depth.astype(np.float32)
    return Estimate(np.where(depth > 0, depth, np.float32(np.nan)))


def _nearest(frame: Frame) -> tuple[np.ndarray, float]:
    values, unit = filters.confident_values(frame)
    return filters.fill_nearest(values), unit


def _background(frame: Frame) -> tuple[np.ndarray, float]:
    values, unit = filters.confident_values(frame)
    return filters.fill_background(values), unit


def _filtered(run: Filter) -> Method:
    def method(task: Task) -> Estimate:
        return Estimate(filters.depth_of(*run(task.frame)))

    return method


def _wls(task: Task) -> Estimate:
    if task.pair is None:
        return _filtered(filters.weighted_least_squares)(task)
    pair, camera = task.pair, task.frame.intrinsics
    disparity = filters.weighted_least_squares_pair(task.frame, pair.left, pair.right)
    unit = 1 / (camera.fx * camera.baseline)
    return Estimate(filters.depth_of(disparity + pair.offset, unit))


def _librealsense() -> Method:
    devices: dict[tuple, LibrealsenseFilter] = {}  # to make one takes longer than to use it

    def method(task: Task) -> Estimate:
        key = (task.frame.depth.shape, task.frame.intrinsics)
        if key not in devices:
            devices[key] = LibrealsenseFilter(*key)
        devices[key].reset()
        return Estimate(devices[key].run(task.frame.depth))

    return method


def _refined(config: RefinerConfig) -> Method:
    refiner = DepthRefiner(config)

    def method(task: Task) -> Estimate:
        refiner.reset()  # scenes of an evaluation are no video
        refined = refiner.refine(task.frame)
        return Estimate(refined.depth, refined.normals)

    return method
