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
"""Where the cameras of one set of messages are: to each other, and in a fixed frame."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.messages.assembly import Inputs
from graph_depth_refiner.messages.registration import is_identity
from graph_depth_refiner.messages.transforms import bare, parse_transform

SOURCES = ('camera_pose_topic', 'odometry_topic', 'fixed_frame')  # of poses


def check_sources(config: NodeConfig) -> None:
    """Refuse more than one source of poses."""
    given = [name for name in SOURCES if getattr(config, name)]
    if len(given) > 1:
        raise ValueError(f'{given[0]}: expected one source of poses, got {" and ".join(given)}')


class Places(Protocol):
    """What is known of the places of frames at stamps of messages, live or recorded."""

    @property
    def wanted(self) -> bool:
        """Say whether poses are asked for."""

    def transform(self, target: str, source: str, stamp: Any) -> np.ndarray | None:
        """Return the matrix (4 4) from `source` to `target`, None where unknown."""

    def pose(self, frame: str, stamp: Any) -> np.ndarray | None:
        """Return where a camera frame is in a fixed one, a matrix (4 4); None where unknown."""


class Nowhere:
    """No place is known."""

    wanted = False

    def transform(self, target: str, source: str, stamp: Any) -> np.ndarray | None:
        """Know no transform."""
        return None

    def pose(self, frame: str, stamp: Any) -> np.ndarray | None:
        """Know no pose."""
        return None


def placed(inputs: Inputs, config: NodeConfig, places: Places) -> Inputs:
    """Return the messages with the places of their cameras; ValueError where one is needed."""
    header = inputs.depth.header
    return replace(
        inputs, image_motion=image_motion(inputs, config, places),
        pose=places.pose(header.frame_id, header.stamp))


def image_motion(inputs: Inputs, config: NodeConfig, places: Places) -> np.ndarray | None:
    """
    Return the matrix (4 4) from the depth camera to the image's, None where they are one.

    Raises ValueError where they are not and the matrix, or the calibration of the image, is
    unknown: a guide from elsewhere would make the depth worse without a word.
    """
    depth, image = inputs.depth.header.frame_id, inputs.image.header.frame_id
    motion = parse_transform('depth_in_image', config.depth_in_image)
    if motion is None:
        if not config.check_frames or bare(depth) == bare(image) or not (depth and image):
            return None
        motion = places.transform(image, depth, inputs.depth.header.stamp)
    if motion is None:
        raise ValueError(
            f'image.header.frame_id: expected {depth!r} as of the depth, or a transform from it '
            f'in TF or depth_in_image, got {image!r}; let the driver align the depth, or set '
            'check_frames to false where the two are one camera')
    if is_identity(motion):
        return None
    if inputs.image_info is None:
        raise ValueError(
            'image_info: expected the camera_info of the image (image_info_topic), as its frame '
            f'{image!r} is not {depth!r} of the depth, got none')
    return motion
