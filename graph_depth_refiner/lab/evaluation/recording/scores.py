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
"""The measures of one frame of one method, by region."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from graph_depth_refiner.frame import Intrinsics
from graph_depth_refiner.lab.evaluation.baselines import Estimate
from graph_depth_refiner.lab.evaluation.depth_normals import fitted_normals
from graph_depth_refiner.lab.evaluation.filters import fill_nearest
from graph_depth_refiner.lab.evaluation.recording import alignment
from graph_depth_refiner.lab.evaluation.recording.regions import JUMP, Regions

LARGEST_ERROR = 10.0  # percent, at which a single error counts in a mean
LOST = 3.0  # percent off at which a thin thing counts as lost
LEAST_PIXELS, LEAST_NORMALS, LEAST_JITTER = 50, 200, 500  # in a region that is judged
BETWEEN = (0.25, 0.75)  # of the way from the near to the far side: a flying pixel
FIT_RADII = (4, 7)  # px, of normals for methods without their own; the better counts
SLOPE_BLUR = 5  # px, of the slopes that carry a frame to the next


@dataclass(frozen=True)
class Measure:
    """One column of the table; lower is better but for history and time."""

    key: str
    title: str
    meaning: str
    ranked: bool = True


MEASURES = {measure.key: measure for measure in (
    Measure('plane', 'plane %', 'median depth error on large planes'),
    Measure('curved', 'curved %', 'median depth error on the other smooth surfaces'),
    Measure('edge', 'edge %', f'mean depth error at edges, each at most {LARGEST_ERROR:g} %'),
    Measure('flying', 'flying %', 'share of edge pixels between the two sides'),
    Measure('thin_lost', 'thin lost %',
            f'share of thin things that are off by more than {LOST:g} %'),
    Measure('hole', 'hole %', 'median depth error in holes that later frames see into'),
    Measure('plane_normals', 'plane deg', 'mean angle of normals on large planes'),
    Measure('curved_normals', 'curved deg', 'mean angle of normals on the other surfaces'),
    Measure('jitter', 'jitter %', 'change of planes from one frame to the next, robust deviation'),
    Measure('invented', 'invented %', 'share of pixels with a value where no frame ever had one'),
    Measure('history', 'history %', 'share of frames that used the frames before', ranked=False),
    Measure('ms', 'ms', 'mean time of a frame', ranked=False),
)}
UNJUDGED_AT_REST = ('curved', 'curved_normals')  # their reference has the sensor's fixed pattern
REGION_OF = {'plane': 'plane', 'curved': 'curved', 'edge': 'edge', 'thin_lost': 'thin',
             'hole': 'hole'}


def score(estimate: Estimate, regions: Regions, camera: Intrinsics,
          at_rest: bool) -> dict[str, float]:
    """
    Return every measure of an estimate that the frame allows.

    Who leaves holes is given the nearest value, so that leaving unknown what is unknown costs
    no more than what a user loses by it.
    """
    known = np.isfinite(estimate.depth) & (estimate.depth > 0)
    filled = filled_depth(estimate.depth)
    error = relative_error(filled, regions)
    found = {'invented': float(100 * (known & regions.never).mean())}
    for key, name in REGION_OF.items():
        area = regions.judged(name)
        if area.sum() >= LEAST_PIXELS:
            found[key] = _depth_measure(key, error[area])
    found.update(_flying(filled, regions))
    found.update(_normals(estimate, filled, regions, camera))
    return {key: value for key, value in found.items()
            if not (at_rest and key in UNJUDGED_AT_REST)}


def filled_depth(depth: np.ndarray) -> np.ndarray:
    """Return depth H W with holes filled by the nearest value; 1 m where there is none."""
    known = np.isfinite(depth) & (depth > 0)
    if not known.any():
        return np.ones(depth.shape, np.float32)
    return fill_nearest(np.where(known, depth, np.nan).astype(np.float32))


def relative_error(depth: np.ndarray, regions: Regions) -> np.ndarray:
    """Return the signed error in percent of the reference, NaN where that is unknown."""
    return 100 * (depth - regions.depth) / regions.depth  # H W


def _depth_measure(key: str, error: np.ndarray) -> float:
    size = np.abs(error)
    if key == 'edge':
        return float(np.minimum(size, LARGEST_ERROR).mean())
    if key == 'thin_lost':
        return float(100 * (size > LOST).mean())
    return float(np.median(size))


def _flying(depth: np.ndarray, regions: Regions) -> dict[str, float]:
    gap = regions.far - regions.near
    edge = (regions.edge | regions.thin) & regions.measured & (gap > JUMP * regions.near)
    if edge.sum() <= LEAST_PIXELS:
        return {}
    place = (depth - regions.near)[edge] / gap[edge]
    low, high = BETWEEN
    return {'flying': float(100 * ((place > low) & (place < high)).mean())}


def _normals(estimate: Estimate, filled: np.ndarray, regions: Regions,
             camera: Intrinsics) -> dict[str, float]:
    choices = [estimate.normals] if estimate.normals is not None else [
        fitted_normals(filled, camera, radius) for radius in FIT_RADII]
    found = {}
    for name in ('plane', 'curved'):
        area = regions.judged(name)
        if area.sum() > LEAST_NORMALS:
            found[f'{name}_normals'] = min(
                float(_angles(choice[area], regions.normals[area]).mean()) for choice in choices)
    return found


def _angles(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Return angles in degrees; a missing normal is 90 off."""
    cosine = (np.nan_to_num(found) * true).sum(-1)
    return np.degrees(np.arccos(np.clip(cosine, -1, 1)))


def jitter(now: np.ndarray, before: np.ndarray, motion: np.ndarray, regions: Regions,
           camera: Intrinsics) -> dict[str, float]:
    """Compare the depth of a frame on planes with that of the one before, after its motion."""
    now, before = (np.nan_to_num(depth).astype(np.float32) for depth in (now, before))
    d = np.zeros_like(now)
    np.divide(np.float32(1), now, out=d, where=now > 0)
    slopes = tuple(np.where(regions.calm, cv2.blur(
        cv2.Sobel(d, cv2.CV_32F, *order, ksize=3) / 8, (SLOPE_BLUR, SLOPE_BLUR)), np.float32(0))
        for order in ((1, 0), (0, 1)))
    moved, _ = alignment.warp(before, motion, camera, slopes)
    both = regions.plane & (moved > 0) & (now > 0) & regions.measured
    if both.sum() <= LEAST_JITTER:
        return {}
    change = 100 * (now - moved)[both] / now[both]
    deviation = 1.4826 * np.median(np.abs(change - np.median(change)))
    return {'jitter': float(deviation / np.sqrt(2))}  # two frames share the change
