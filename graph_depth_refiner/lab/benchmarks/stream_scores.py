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
"""How well a method does on a synthetic stream, frame by frame and over time."""

from __future__ import annotations

import cv2
import numpy as np

from graph_depth_refiner.core import camera
from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.evaluation.filters import fill_nearest
from graph_depth_refiner.lab.synthetic.regions import find_regions
from graph_depth_refiner.lab.synthetic.stream import View

FIRST = 4  # errors count from the fifth frame on
SETTLED = 9  # noise over time counts from the tenth frame on
LOST = 5.0  # percent of error beyond which a thin pixel is lost
BAND = 3  # frames: a band is what the moving object left or entered within so many
PLANE_WINDOW = 15  # pixels, of the plane-fit normals of the input
BESIDE = 4  # pixels around a pixel in which the sides of a depth edge are looked for,
JUMP = 0.04  # share of the depth by which they are apart at least
BETWEEN = 0.25, 0.75  # of the way from the near side to the far one: what lies there flies
CAP = 10.0  # percent, at which single errors count in the regions
REGIONS = ('plane', 'curved', 'edge', 'thin', 'hole')


class Scores:
    """Collects the errors of one method over a stream."""

    def __init__(self) -> None:
        """Start empty."""
        self._frames: list[dict[str, float]] = []
        self._regions: dict[str, list[dict[str, float]]] = {name: [] for name in REGIONS}
        self._band: list[np.ndarray] = []
        self._masks: list[np.ndarray] = []
        self._count, self._sum, self._squares, self._known = 0, 0.0, 0.0, True
        self._milliseconds: list[float] = []
        self._stages: list[dict[str, float]] = []
        self._hits: list[float] = []

    def add(self, index: int, view: View, depth: np.ndarray, normals: np.ndarray | None,
            milliseconds: float, stages: dict[str, float], hit_rate: float) -> None:
        """
        Take in the estimate of one frame; depth NaN or 0 where there is none.

        Where the view has no surface there is no error; a value there is counted as invented.
        """
        estimated = np.isfinite(depth) & (depth > 0)
        known = estimated & np.isfinite(view.depth)
        error = np.where(known, 100 * (np.where(known, depth, 1) / view.depth - 1), np.nan)
        self._band.append(np.abs(error[self._bands(view)]))
        if index >= SETTLED:
            self._count += 1
            self._sum = self._sum + error
            self._squares = self._squares + error * error
        if index < FIRST:
            return
        self._frames.append(_frame_scores(view, error, known, normals))
        nothing = ~np.isfinite(view.depth)
        self._frames[-1]['invented_percent'] = (
            float(100 * estimated[nothing].mean()) if nothing.any() else np.nan)
        self._frames[-1]['flying_percent'] = flying_percent(view, depth)
        for name, scores in _region_scores(view, depth, estimated, normals).items():
            self._regions[name].append(scores)
        self._milliseconds.append(milliseconds)
        self._stages.append(stages)
        self._hits.append(hit_rate)

    def _bands(self, view: View) -> np.ndarray:
        """Return where the moving object was not within the last frames and is, or inverse."""
        self._masks = [*self._masks[-BAND:], view.moving]
        earlier = self._masks[:-1]
        if not earlier:
            return np.zeros(view.moving.shape, bool)
        return (view.moving & ~np.any(earlier, axis=0)) | (
            ~view.moving & np.any(earlier, axis=0)) | (view.moving & ~np.all(earlier, axis=0))

    def record(self, method: str, without_past: Scores | None = None) -> dict[str, object]:
        """Return the averages; `without_past` is the same method without any temporal part."""
        mean = {name: _mean([frame[name] for frame in self._frames])
                for name in self._frames[0]}
        stages = {name: float(np.median([one.get(name, 0.0) for one in self._stages]))
                  for name in self._stages[-1]}
        return {
            'method': method, **mean, 'regions': self._by_region(),
            'temporal_noise_percent': self._temporal_noise(),
            'ghosting_ratio': self._ghosting(without_past or self),
            'ms_per_frame': float(np.median(self._milliseconds)),
            'graph_hit_rate': _mean(self._hits), 'stages_ms': stages}

    def _by_region(self) -> dict[str, dict[str, float | None]]:
        return {name: {key: _mean([one[key] for one in frames]) for key in frames[0]}
                for name, frames in self._regions.items()}

    def _temporal_noise(self) -> float | None:
        """Return the standard deviation of the error over frames, averaged over pixels."""
        if self._count < 2:
            return None
        mean = self._sum / self._count
        variance = (self._squares / self._count - mean * mean) * self._count / (self._count - 1)
        return float(np.nanmean(np.sqrt(np.maximum(variance, 0))))

    def _ghosting(self, other: Scores) -> float | None:
        """Return the error in the bands relative to that of the other."""
        mine, its = np.concatenate(self._band), np.concatenate(other._band)
        both = np.isfinite(mine) & np.isfinite(its)
        return float(mine[both].mean() / its[both].mean()) if both.any() else None


def _frame_scores(view: View, error: np.ndarray, known: np.ndarray,
                  normals: np.ndarray | None) -> dict[str, float]:
    size = np.abs(error[known])
    cosine = np.clip((normals * view.normals).sum(axis=-1), -1, 1)  # H W
    angle = np.degrees(np.arccos(cosine[np.isfinite(cosine)]))
    thin = np.abs(error[view.thin & np.isfinite(view.depth)])
    curved = np.abs(error[view.curved & known])
    return {
        'depth_error_percent': float(size.mean()),
        'depth_rms_percent': float(np.sqrt((size * size).mean())),
        'normal_error_deg': float(angle.mean()),
        'normal_median_deg': float(np.median(angle)),
        'completeness_percent': float(100 * known.sum() / np.isfinite(view.depth).sum()),
        # what is missing is lost too: comparisons with NaN are false
        'thin_lost_percent': float(100 * (1 - (thin <= LOST).mean())) if thin.size else np.nan,
        'curved_error_percent': float(curved.mean()) if curved.size else np.nan}


def flying_percent(view: View, depth: np.ndarray) -> float:
    """
    Return the share of pixels beside a depth edge that lie between its two sides.

    Only those count that the sensor measured and whose truth is on one of the sides; slopes and
    things that are there between the sides do not.
    """
    around = np.ones((2 * BESIDE + 1,) * 2, np.uint8)
    true = np.where(np.isfinite(view.depth), view.depth, 0).astype(np.float32)
    exists = true > 0
    far = cv2.dilate(true, around)
    near = cv2.erode(np.where(exists, true, np.float32(np.inf)), around)
    gap = np.maximum(far - near, 1e-6)
    edge = exists & (view.frame.depth > 0) & (depth > 0) & (far / (1 + JUMP) > near)

    def between(value: np.ndarray) -> np.ndarray:
        share = (value[edge] - near[edge]) / gap[edge]
        return (share > BETWEEN[0]) & (share < BETWEEN[1])
    on_a_side = ~between(true)
    return float(100 * between(depth)[on_a_side].mean()) if on_a_side.any() else np.nan


def _region_scores(view: View, depth: np.ndarray, estimated: np.ndarray,
                   normals: np.ndarray) -> dict[str, dict[str, float]]:
    """
    Return share, depth error and normal error by region.

    `hole` is what the sensor did not measure though there is a surface; the other regions are
    measured. Who leaves a pixel unknown is given the nearest value.
    """
    measured = np.isfinite(view.frame.depth) & (view.frame.depth > 0)
    masks = find_regions(view.depth, view.normals, view.thin)
    masks = {name: mask & measured for name, mask in masks.items()}
    masks['hole'] = np.isfinite(view.depth) & ~measured
    whole = fill_nearest(np.where(estimated, depth, np.nan).astype(np.float32))
    error = np.minimum(100 * np.abs(whole / view.depth - 1), CAP)
    angle = np.degrees(np.arccos(np.clip((normals * view.normals).sum(axis=-1), -1, 1)))
    return {name: {'share_percent': float(100 * mask.mean()),
                   'depth_error_percent': _average(error[mask]),
                   'normal_error_deg': _average(angle[mask])} for name, mask in masks.items()}


def _average(values: np.ndarray) -> float:
    """Return the mean of the numbers among the values, NaN if there is none."""
    values = values[np.isfinite(values)]
    return float(values.mean()) if values.size else np.nan


def _mean(values: list[float]) -> float | None:
    """Return the mean of the numbers among the values, None if there is none."""
    kept = [value for value in values if np.isfinite(value)]
    return float(np.mean(kept)) if kept else None


def plane_fit_normals(depth: np.ndarray, intrinsics: Intrinsics) -> np.ndarray:
    """Return normals, H W 3, of least-squares planes over a window of valid pixels."""
    valid = np.isfinite(depth) & (depth > 0)
    weight = valid.astype(np.float64)
    d = np.where(valid, 1 / np.where(valid, depth, 1), 0)
    y, x = np.mgrid[:depth.shape[0], :depth.shape[1]].astype(np.float64)
    x, y = x - x.mean(), y - y.mean()

    def total(values: np.ndarray) -> np.ndarray:
        side = (PLANE_WINDOW, PLANE_WINDOW)
        return cv2.boxFilter(values, cv2.CV_64F, side, normalize=False,
                             borderType=cv2.BORDER_CONSTANT)

    s = np.maximum(total(weight), 1e-9)
    mx, my, md = (total(weight * one) / s for one in (x, y, d))
    xx, xy, yy = (total(weight * one) / s for one in (x * x, x * y, y * y))
    xx, xy, yy = xx - mx * mx + 1e-6, xy - mx * my, yy - my * my + 1e-6
    xd, yd = total(weight * x * d) / s - mx * md, total(weight * y * d) / s - my * md
    determinant = xx * yy - xy * xy
    ux, uy = (xd * yy - yd * xy) / determinant, (yd * xx - xd * xy) / determinant
    planes = np.stack([md + ux * (x - mx) + uy * (y - my), ux, uy])
    normals = camera.normals(planes, intrinsics)
    normals[~valid] = np.nan
    return normals
