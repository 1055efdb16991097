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
Clean the depth of a matcher: drop what is unreliable, fill holes, replace what neighbours deny.

Everything here is switched by the configuration; with all of it off nothing changes. Limits
are in pixels of disparity, which is twice the standard deviation of a matcher's error.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.downsampling import Guide, Level
from graph_depth_refiner.core.history import Present
from graph_depth_refiner.core.inpainting import fill_smoothly
from graph_depth_refiner.core.kernels import Array, Kernels
from graph_depth_refiner.core.speckles import in_range, patch_areas

PIXEL = 2.0  # standard deviations
# Pixels of the full image between samples, disparity a pixel may differ from them, share of them
# that must agree with it. From afar only a large majority counts: thin things have few alike.
JOINT_MEDIANS = ((24, 8.0, 0.2), (12, 5.0, 0.2), (6, 3.0, 0.5), (3, 1.0, 0.5))
PLANE_MEDIANS = (24, 12, 6)  # pixels of the full image between planes
HIDDEN = 1.0  # pixels of the solved level that something nearer is nearer by
COVERED = 0.5  # share of a solved pixel that must be measured for it to be reliable
FILLED_WEIGHT = 0.6  # of a measured plane's weight, in the joint medians of planes


def is_on(config: RefinerConfig) -> bool:
    """Tell whether anything is cleaned or filled."""
    cleaning = config.cleaning
    return bool(cleaning.least_confidence or cleaning.speckle_area or cleaning.visible
                or cleaning.joint_median or config.holes.fill == 'all')


def clean(k: Kernels, level: Level, guide: Guide, config: RefinerConfig) -> Level:
    """Return the level with better inverse depth; filled values have 0 frames behind them."""
    cleaning, fill = config.cleaning, config.holes.fill == 'all'
    if not is_on(config):
        return level
    # what is connected and what is hidden is found on the host: a device waits here
    (d, frames), (unit,) = k.fetch(k.pack((level.d, level.frames), (level.unit,)))  # H W each
    pixel = PIXEL * unit
    z = d * np.float32(1 / pixel)
    color = three_channels(k, guide)
    reliable = reliable_pixels(z, frames, guide.scale, config)
    # holes are filled in pixels of the solved level, which gaps and steps are compared in
    small = np.float32(1 / guide.scale)
    filled = fill_holes(k, z * small, reliable, color, config) / small if fill else z * reliable
    cleaned = k.array(filled)
    if cleaning.joint_median:
        for stride, limit, share in JOINT_MEDIANS:
            cleaned = k.joint_weighted_median(
                cleaned, k.array(color), -(-stride // guide.scale), limit, share,
                cleaning.joint_median_sigma)
    kept = frames * reliable * (k.numpy(cleaned) == filled)
    return replace(level, d=cleaned * pixel, frames=k.array(kept), filled=True)


def reliable_pixels(z: np.ndarray, frames: np.ndarray, scale: int, config: RefinerConfig
                    ) -> np.ndarray:
    """Return which pixels, H W, are reliable enough to fill others from."""
    covered = COVERED if scale > 1 else 1.0
    reliable = frames > config.cleaning.least_confidence * covered
    if config.cleaning.visible:
        reliable &= visible_in_right(z, reliable, scale)
    if config.cleaning.speckle_area > 0:
        areas = patch_areas(z, reliable, config.cleaning.speckle_step * scale)
        reliable = (areas * scale ** 2 > config.cleaning.speckle_area) & in_range(z, areas)
    return reliable if reliable.any() else frames > 0


def visible_in_right(z: np.ndarray, reliable: np.ndarray, scale: int) -> np.ndarray:
    """
    Return which pixels, H W, the right camera of a stereo pair sees too.

    Of pixels of the left image with the same place in the right one it sees the nearest; what
    is farther cannot have been matched (a left-right check of the left map alone). z is in
    pixels of disparity, up to a common offset.
    """
    if not reliable.any():
        return reliable
    columns = z.shape[1]
    shift = np.rint((z - z[reliable].min()) * np.float32(1 / scale)).clip(0, columns)
    place = np.arange(columns) - shift.astype(np.int64) + columns  # H W
    rows = np.broadcast_to(np.arange(len(z))[:, None], z.shape)
    nearest = np.zeros((len(z), 2 * columns), np.float32)
    np.maximum.at(nearest, (rows[reliable], place[reliable]), z[reliable])
    return nearest[rows, place] - z <= np.float32(HIDDEN * scale)


def fill_holes(k: Kernels, z: np.ndarray, reliable: np.ndarray, color: np.ndarray,
               config: RefinerConfig) -> np.ndarray:
    """Return the map, H W, with a value everywhere; reliable pixels keep theirs."""
    if config.holes.method == 'occlusion':
        z = k.numpy(k.fill_occluded(k.array(z), k.array(reliable), k.array(color)))
        reliable = z > 0
    if config.holes.method == 'background':
        z = k.numpy(k.fill_background(k.array(z), k.array(reliable)))
        reliable = z > 0
    return z if reliable.all() else fill_smoothly(z, reliable)


def extend_planes(k: Kernels, planes: Array, level: Level, guide: Guide, config: RefinerConfig
                  ) -> Array:
    """Return planes, 3 H W, with those of filled pixels chosen among the planes around them."""
    if not config.cleaning.joint_median:
        return planes
    color = k.array(three_channels(k, guide))
    weight = k.array(np.where(k.numpy(level.frames) > 0, 1, FILLED_WEIGHT))
    for stride in PLANE_MEDIANS:
        planes = k.joint_plane_median(planes, weight, color, -(-stride // guide.scale),
                                      config.cleaning.joint_median_sigma)
    return planes


def three_channels(k: Kernels, guide: Guide) -> np.ndarray:
    """Return the colours, 3 H W, in [0, 1]; grey is repeated."""
    color = k.numpy(guide.color).astype(np.float32) / 255  # C H W
    return np.repeat(color, 3, axis=0) if len(color) == 1 else color


def without_rejected(k: Kernels, present: Present, before: Level, after: Level, scale: int
                     ) -> Present:
    """Return the present without what was cleaned away: it comes back neither now nor later."""
    if after is before:
        return present
    kept = k.numpy((before.frames <= 0) | (after.frames > 0)).astype(np.float32)  # h w
    if scale > 1:
        kept = np.repeat(np.repeat(kept, scale, axis=0), scale, axis=1)
    height, width = present.d.shape
    kept = np.pad(kept, ((0, height - kept.shape[0]), (0, width - kept.shape[1])), 'edge')
    large = k.array(kept)
    return present._replace(d=present.d * large, frames=present.frames * large)
