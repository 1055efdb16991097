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
A reference depth of a frame from the raw frames after it, which no causal method has seen.

Every later frame is aligned to the judged one and warped into it, and each pixel takes the
densest group of values: noise averages out, what moves or flies belongs to no group. The
uncertainty is half the difference of two references made of every other frame.

Without poses the motion along a wall comes from the image alone. Where images and depth then
fit better, frames are aligned with the image leading, and once more to what was fused from them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
import hashlib
from io import BytesIO
import os
from pathlib import Path
import zipfile

import numpy as np

from graph_depth_refiner.bags.bags import replace_file
from graph_depth_refiner.core.camera import normals
from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.evaluation.recording import alignment
from graph_depth_refiner.lab.evaluation.recording import geometry_numba as kernels
from graph_depth_refiner.lab.evaluation.recording.sensors import Sensor
from graph_depth_refiner.lab.evaluation.recording.sources import Recording

MAJORITY = 0.7  # of the values of a pixel that have to be in its densest group
GROUP_SIGMAS = 3  # half the width of a group, in deviations of the sensor
SLOPE_RADIUS, NORMAL_RADIUS = 3, 4  # px, of plane fits: for warping, and for normals
SLOPE_SIGMAS, NORMAL_SIGMAS = 4, 3  # distance, in deviations, of a pixel that counts in them
ROUGHLY_KNOWN = 3  # values in a group that gives a slope to warp with
WIDE_RADIUS = 8  # px, of plane fits to one noisy frame: its normals must not follow the noise
TURNS = 2  # times that frames are aligned to what was fused from them
# The image leads only where it explains what is seen: mean difference on texture, in [0, 1]. Of
# rooms rendered with exact images it is 0.008 to 0.022 (one of 32: 0.032), of a hand-held D400
# 0.04 to 0.06. The limit was set between the two after they were measured.
FITTING_IMAGE = 0.025
# the code that a kept reference depends on, as it was when it was loaded
CODE = b''.join((Path(__file__).parent / name).read_bytes()
                for name in ('reference.py', 'alignment.py', 'geometry_numba.py'))


@dataclass(frozen=True, eq=False)
class Reference:
    """What later frames say about one frame; NaN where they do not agree."""

    depth: np.ndarray  # H W float32 metres
    smooth: np.ndarray  # H W float32 metres, of the planes fitted to it
    normals: np.ndarray  # H W 3 float32, of these planes
    uncertainty: np.ndarray  # H W float32 metres
    values: np.ndarray  # H W int16: how many later frames measured something
    aligned: int  # later frames that could be aligned
    shift: float  # px, the farthest that the camera's motion moves the middle of the image


def make_reference(
        recording: Recording, number: int, later: range, sensor: Sensor,
        at_rest: bool) -> Reference:
    """Fuse later frames into one frame; a camera at rest needs no alignment."""
    if at_rest:
        return _fused(recording, number, {k: np.eye(4) for k in later}, sensor)
    here = recording.frame(number)
    motions = alignment.motions_to(recording, number, later)
    fused = _fused(recording, number, motions, sensor)
    if here.pose is not None:
        return fused
    image_led, other = _image_led(recording, number, later, sensor)
    before = alignment.misfit(recording, here, fused.depth, motions)
    after = alignment.misfit(recording, here, image_led.depth, other)
    better = after[0] < min(before[0], FITTING_IMAGE) and after[1] < before[1]
    return image_led if better and len(other) >= len(motions) else fused


def _image_led(recording: Recording, number: int, later: range, sensor: Sensor
               ) -> tuple[Reference, dict[int, np.ndarray]]:
    """Fuse frames that were aligned mostly by their images; return the motions, 4 4, as well."""
    here = recording.frame(number)
    planes = _planes(here.depth, here.depth > 0, WIDE_RADIUS, NORMAL_SIGMAS, sensor)
    aligner = alignment.Aligner(here, planes, alignment.LEADING_IMAGE)
    motions = alignment.follow(recording, here, later, aligner)
    fused = _fused(recording, number, motions, sensor)
    for _ in range(TURNS):
        surface = np.nan_to_num(np.where(np.isfinite(fused.smooth), fused.smooth, fused.depth))
        planes = _planes(surface, surface > 0, NORMAL_RADIUS, NORMAL_SIGMAS, sensor)
        aligner = alignment.Aligner(here, planes, alignment.LEADING_IMAGE)
        motions = alignment.anchored(recording, number, motions, aligner)
        fused = _fused(recording, number, motions, sensor)
    return fused, motions


def _fused(recording: Recording, number: int, motions: dict[int, np.ndarray], sensor: Sensor
           ) -> Reference:
    """Fuse later frames into one frame along their motions."""
    here = recording.frame(number)
    stack = _stack(recording, motions)
    farthest = stack.max(0)
    rough, size, _ = kernels.densest_group(
        stack, _tolerance(sensor, np.where(farthest > 0, farthest, 1)))
    slopes = _planes(rough, size >= ROUGHLY_KNOWN, SLOPE_RADIUS, SLOPE_SIGMAS, sensor)[1:]
    stack = _stack(recording, motions, tuple(map(np.nan_to_num, slopes)))
    tolerance = _tolerance(sensor, np.where(rough > 0, rough, 1))
    depth, size, values = kernels.densest_group(stack, tolerance)
    good = (size >= sensor.agreeing) & (size >= MAJORITY * values)
    depth = np.where(good, depth, np.float32(np.nan))
    planes = _planes(np.nan_to_num(depth), good, NORMAL_RADIUS, NORMAL_SIGMAS, sensor)
    return Reference(
        depth, 1 / planes[0], normals(planes, here.intrinsics).astype(np.float32),
        _uncertainty(stack, tolerance, good), values.astype(np.int16), len(motions),
        alignment.largest_shift(motions, here))


def _stack(recording: Recording, motions: dict[int, np.ndarray],
           slopes: tuple[np.ndarray, np.ndarray] | None = None) -> np.ndarray:
    """Return all frames warped into one, N H W, 0 where unknown."""
    warped = [alignment.warp(recording.frame(k).depth, motion, recording.camera, slopes)[0]
              for k, motion in motions.items()]
    return np.stack(warped or [np.zeros_like(recording.frame(0).depth)])


def _tolerance(sensor: Sensor, depth: np.ndarray) -> np.ndarray:
    return (GROUP_SIGMAS * sensor.noise(depth)).astype(np.float32)


def _planes(depth: np.ndarray, known: np.ndarray, radius: int, sigmas: float,
            sensor: Sensor) -> np.ndarray:
    """Return planes of inverse depth, 3 H W, fitted to the known pixels."""
    near = np.where(known, np.maximum(depth, 0.1), 1).astype(np.float64)
    d = np.where(known, 1 / near, 0)
    return kernels.fit_planes(d, known, radius, sigmas * sensor.noise(near) / near ** 2)


def _uncertainty(stack: np.ndarray, tolerance: np.ndarray, good: np.ndarray) -> np.ndarray:
    """Return half the difference of what the even and the odd frames say."""
    halves = [kernels.densest_group(np.ascontiguousarray(stack[k::2]), tolerance)[0]
              for k in (0, 1) if len(stack[k::2])]
    known = good & np.all([half > 0 for half in halves], axis=0)
    return np.where(known, np.abs(halves[0] - halves[-1]) / 2, np.nan).astype(np.float32)


# what was made before

class ReferenceCache:
    """References by the contents of the frames and of the code that make them."""

    def __init__(self, folder: Path | None) -> None:
        """Keep them in a folder; None keeps nothing."""
        self._folder = folder

    def reference(self, recording: Recording, number: int, later: range, sensor: Sensor,
                  at_rest: bool) -> Reference:
        """Return the reference of a frame, made now if it is not known."""
        if self._folder is None:
            return make_reference(recording, number, later, sensor, at_rest)
        about = f'{sensor.noise(1.0)} {sensor.noise(2.0)} {sensor.agreeing} {at_rest}'
        path = self._folder / f'{_digest(recording, [number, *later], about)}.npz'
        known = _load(path)
        if known is None:
            known = make_reference(recording, number, later, sensor, at_rest)
            _save(path, {f.name: getattr(known, f.name) for f in fields(Reference)})
        return known


def cache_folder() -> Path:
    """Return the folder of the user's cache that references are kept in."""
    cache = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    return Path(cache) / 'graph_depth_refiner' / 'references'


def _digest(recording: Recording, numbers: list[int], about: str) -> str:
    digest = hashlib.sha256(CODE + about.encode())
    digest.update(_camera_bytes(recording.camera))
    for number in numbers:
        frame = recording.frame(number)
        for part in (frame.depth, frame.image, frame.pose):
            digest.update(b'' if part is None else np.ascontiguousarray(part).data)
    return digest.hexdigest()[:32]


def _camera_bytes(camera: Intrinsics) -> bytes:
    return np.array(alignment.pinhole(camera)).tobytes()


def _load(path: Path) -> Reference | None:
    """Return what a file holds, None where there is none or a damaged one."""
    try:
        with np.load(path, allow_pickle=False) as known:
            parts = {f.name: known[f.name] for f in fields(Reference)}
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
        return None
    return Reference(**{**parts, 'aligned': int(parts['aligned']),
                        'shift': float(parts['shift'])})


def _save(path: Path, parts: dict) -> None:
    """Write a file; a cache that cannot be written is none."""
    stream = BytesIO()
    np.savez_compressed(stream, **parts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, stream.getvalue())
    except OSError:
        pass
