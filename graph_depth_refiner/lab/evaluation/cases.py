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
"""What is measured on: a task for the methods and a judge for what they return."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from graph_depth_refiner.lab.evaluation import matchers, metrics
from graph_depth_refiner.lab.evaluation.baselines import Estimate, Pair, Task
from graph_depth_refiner.lab.evaluation.datasets import READERS, RgbdScene, StereoScene
from graph_depth_refiner.lab.evaluation.depth_normals import straight_normals
from graph_depth_refiner.lab.synthetic.sensor_noise import tof, withheld

MASK_LIMITS = {'middlebury': 1.0, 'kitti': 3.0}  # px of error that the mask shows as bad
DEPTH_LIMIT = 0.02  # metres, the same for metric depth
LEAST_NORMALS = 0.01  # share of true normals below which they are not judged


@dataclass(frozen=True, eq=False)
class Case:
    """One scene with one input."""

    scene: str
    source: str  # what the depth came from
    task: Task
    truth: np.ndarray  # H W metres, NaN where unknown
    unit: str  # of avgerr and rms
    limit: float  # error that the mask shows as bad, in that unit
    errors: Callable[[np.ndarray], dict[str, float]]  # of a depth map
    values: Callable[[np.ndarray], np.ndarray]  # depth to what is judged
    note: str = ''

    def normals(self, estimate: Estimate) -> np.ndarray:
        """Return the normals of a method, from its depth where it has none of its own."""
        if estimate.normals is not None:
            return estimate.normals
        return straight_normals(estimate.depth, self.task.frame.intrinsics)

    def true_normals(self) -> np.ndarray:
        """Return normals of the ground truth as the paper computes them."""
        return metrics.derivative_normals(self.truth, self.task.frame.intrinsics)

    def judge(self, estimate: Estimate) -> dict[str, float]:
        """Return every measure of an estimate."""
        measures = self.errors(estimate.depth)
        truth = self.true_normals()
        if np.isfinite(truth[..., 0]).mean() >= LEAST_NORMALS:
            measures.update(metrics.normal_errors(self.normals(estimate), truth))
        return {**measures, 'missing': metrics.missing(estimate.depth)}

    def bad(self, estimate: Estimate) -> tuple[np.ndarray, np.ndarray]:
        """Return which pixels are off by more than the limit or missing, and which are judged."""
        judged = np.isfinite(self.truth)
        error = np.abs(self.values(estimate.depth) - self.values(self.truth))
        return judged & ~(error <= self.limit), judged


def cases(kind: str, folder: Path, frames: int, seed: int) -> Iterator[Case]:
    """Yield the cases of a folder, at most `frames` scenes spread over it; 0 is all."""
    scenes = READERS[kind](folder)
    count = min(frames, len(scenes)) if frames else len(scenes)
    for number in np.unique(np.linspace(0, len(scenes) - 1, count).round().astype(int)):
        scene = scenes[int(number)]
        if isinstance(scene, StereoScene):
            yield from _stereo(scene, MASK_LIMITS[kind])
        else:
            yield _rgbd(scene, kind, seed + int(number))


def _stereo(scene: StereoScene, limit: float) -> Iterator[Case]:
    if scene.truth is None:
        raise ValueError(f'{scene.name}: expected true disparity, got none')
    for name, match in matchers.MATCHERS.items():
        left, confidence = match(scene.left, scene.right, scene.disparities)
        # in a mirror the right image is the left one of the pair
        mirrored, _ = match(scene.right[:, ::-1], scene.left[:, ::-1], scene.disparities)
        right = np.ascontiguousarray(mirrored[:, ::-1])
        yield Case(
            scene.name, name, Task(scene.frame(left, confidence), Pair(left, right, scene.offset)),
            scene.depth(scene.truth), 'px', limit,
            lambda depth: metrics.disparity_errors(scene.disparity(depth), scene.truth),
            scene.disparity)


def _rgbd(scene: RgbdScene, kind: str, seed: int) -> Case:
    frame, truth, name, note = scene.frame, scene.truth, 'depth', ''
    if kind == 'icl':
        depth, confidence = tof(frame.depth, seed)
        frame, name = replace(frame, depth=depth, confidence=confidence), 'ToF noise'
    elif truth is None:
        frame, truth = withheld(frame, seed)
        name = 'depth with spots withheld'
        note = 'no ground truth: judged on spots of the measurement that no method was given'
    return Case(
        scene.name, name, Task(frame), truth, 'm', DEPTH_LIMIT,
        lambda depth: metrics.depth_errors(depth, truth), lambda depth: depth, note)
