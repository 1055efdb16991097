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
"""What goes into the refinement and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum

import numpy as np

MAX_SIDE = 16384
LARGEST = 1e9  # focal length or place of the principal point, in pixels


class Status(Enum):
    """How the refinement of a frame ended."""

    REFINED = 'refined'  # all steps of realtime mode were taken
    CONVERGED = 'converged'  # converged mode met its tolerance
    NOT_CONVERGED = 'not converged'  # converged mode ran out of steps
    BUDGET = 'stopped at the time budget'
    DIVERGED = 'stopped at a non-finite step'
    WORSE = 'returned as it came: the energy did not fall'
    EMPTY = 'no valid depth'


class Provenance(IntEnum):
    """Where the depth of a pixel comes from."""

    UNKNOWN = 0
    MEASURED = 1  # within the noise of the measurement
    CORRECTED = 2  # measured, but moved by more than the noise
    FILLED = 3  # not measured


@dataclass(frozen=True)
class Intrinsics:
    """A pinhole camera, in pixels; the baseline of a stereo rig in metres or 0."""

    fx: float
    fy: float
    cx: float
    cy: float
    baseline: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no camera."""
        for name in ('fx', 'fy'):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f'intrinsics.{name}: expected a positive number, got {value}')
        for name in ('cx', 'cy'):
            value = getattr(self, name)
            if not np.isfinite(value):
                raise ValueError(f'intrinsics.{name}: expected a finite number, got {value}')
        if not (np.isfinite(self.baseline) and self.baseline >= 0):
            raise ValueError(
                f'intrinsics.baseline: expected a number of at least 0, got {self.baseline}')
        # beyond these, squares leave the range of float32
        if not (1 / LARGEST <= min(self.fx, self.fy)
                and max(map(abs, (self.fx, self.fy, self.cx, self.cy))) <= LARGEST):
            raise ValueError(
                f'intrinsics: expected pixels from {1 / LARGEST:g} to {LARGEST:g}, got {self}')


@dataclass(frozen=True, eq=False)
class Frame:
    """One synchronised set of inputs; depth in metres, invalid where not finite and positive."""

    image: np.ndarray  # H W or H W 3, uint8, uint16 or float in [0, 1]
    depth: np.ndarray  # H W, float metres
    intrinsics: Intrinsics
    confidence: np.ndarray | None = None  # H W, float in [0, 1]
    stamp: float = 0.0  # seconds
    pose: np.ndarray | None = None  # 4 4, camera to world, where odometry is known

    def __post_init__(self) -> None:
        """Refuse malformed input in one sentence."""
        depth = _array('depth', self.depth)
        if depth.ndim != 2 or not all(1 <= side <= MAX_SIDE for side in depth.shape):
            raise ValueError(
                f'depth: expected shape (H, W) with sides from 1 to {MAX_SIDE}, got {depth.shape}')
        if depth.dtype.kind != 'f':
            raise ValueError(f'depth: expected floating-point metres, got {depth.dtype}')
        image = _array('image', self.image)
        if image.shape not in (depth.shape, (*depth.shape, 3)):
            raise ValueError(
                f'image: expected shape {depth.shape} or {(*depth.shape, 3)}, got {image.shape}')
        if image.dtype not in (np.uint8, np.uint16, np.float32, np.float64):
            raise ValueError(
                f'image: expected uint8, uint16 or float in [0, 1], got {image.dtype}')
        if self.confidence is not None:
            confidence = _array('confidence', self.confidence)
            if confidence.shape != depth.shape:
                raise ValueError(
                    f'confidence: expected shape {depth.shape}, got {confidence.shape}')
            if confidence.dtype.kind != 'f':
                raise ValueError(
                    f'confidence: expected floating point in [0, 1], got {confidence.dtype}')
            low, high = float(confidence.min()), float(confidence.max())
            if not (low >= 0 and high <= 1):
                raise ValueError(
                    f'confidence: expected values from 0 to 1, got {low:g} to {high:g}')
        if not isinstance(self.intrinsics, Intrinsics):
            raise ValueError(
                f'intrinsics: expected Intrinsics, got {type(self.intrinsics).__name__}')
        if not np.isfinite(self.stamp):
            raise ValueError(f'stamp: expected finite seconds, got {self.stamp}')
        if self.pose is not None:
            pose = _array('pose', self.pose)
            if pose.shape != (4, 4) or not np.isfinite(pose).all():
                raise ValueError(f'pose: expected a finite matrix (4, 4), got {pose.shape}')
            turn = pose[:3, :3].astype(float)
            if not np.allclose(turn @ turn.T, np.eye(3), atol=1e-2):
                raise ValueError(f'pose: expected a rotation and a shift, got {pose.tolist()}')


@dataclass(frozen=True, eq=False)
class Refined:
    """The refinement of one frame, of its size; NaN where nothing is known."""

    depth: np.ndarray  # H W float32 metres
    normals: np.ndarray  # H W 3 float32, unit, facing the camera, optical frame
    confidence: np.ndarray  # H W float32 in [0, 1]
    provenance: np.ndarray  # H W uint8, see Provenance
    status: Status
    iterations: int
    energy: float  # of the planes; 0 where the settings ask for no step of the solver
    milliseconds: dict[str, float] = field(default_factory=dict)  # by stage
    # the same of the calling thread on a core: of all threads where there is only one
    cpu_milliseconds: dict[str, float] = field(default_factory=dict)
    graph_hit_rate: float = 0.0  # share of the graph kept from the frame before
    history: float = 0.0  # share of the history in sight that is in use; 0 without one
    history_frames: float = 0.0  # frames that stand behind a pixel, median of the known ones
    reset: str = ''  # why there is no history, empty if there is
    # floor (1/m) and share: the deviation of inverse depth 1/z is floor + share / z
    noise: tuple[float, float] = (0.0, 0.0)
    # what became of the poses of this frame and the last: used, or corrected by the frames where
    # depth or image say otherwise; empty where there were none, or no history
    pose: str = ''

    def with_times(self, milliseconds: dict[str, float], cpu_milliseconds: dict[str, float]
                   ) -> Refined:
        """Return the same with what is known only at the end."""
        return replace(self, milliseconds=milliseconds, cpu_milliseconds=cpu_milliseconds)


def _array(name: str, value: object) -> np.ndarray:
    if not isinstance(value, np.ndarray):
        raise ValueError(f'{name}: expected a numpy array, got {type(value).__name__}')
    return value
