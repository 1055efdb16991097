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
One set of messages to a frame, and a refined frame to the fields of all output messages.

The live node and the refinement of bags both go through here; neither needs ROS for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from graph_depth_refiner.config import NodeConfig, Points
from graph_depth_refiner.frame import Frame, Refined
from graph_depth_refiner.messages import compressed, confidence, conversions, outgoing
from graph_depth_refiner.messages.camera_info import CameraModel, Cameras
from graph_depth_refiner.messages.registration import registered


@dataclass(frozen=True, eq=False)
class Inputs:
    """
    The messages of one moment; `depth` is a DisparityImage where disparity comes in.

    A depth that is only passed on may be alone.
    """

    image: Any
    depth: Any
    camera_info: Any
    confidence: Any = None
    pose: np.ndarray | None = None  # 4 4, camera to world
    image_info: Any = None  # the camera_info of the image, where it is another camera
    image_motion: np.ndarray | None = None  # 4 4, from the depth camera to the image's

    def doubts(self) -> list[str]:
        """Say what looks wrong but can be used."""
        frame, other = self.depth.header.frame_id, self.camera_info.header.frame_id
        if other == frame:
            return []
        return [f'camera_info.header.frame_id: expected {frame!r} as of the depth, got {other!r}; '
                'is it the calibration of the depth?']


@dataclass(frozen=True, eq=False)
class Assembled:
    """A frame, and what is needed to answer in the form of its messages."""

    inputs: Inputs
    frame: Frame
    encoding: str  # of the depth that came in
    camera: CameraModel
    points: Points = Points()

    @property
    def is_disparity(self) -> bool:
        """Return whether disparity came in."""
        return hasattr(self.inputs.depth, 'min_disparity')


class Assembler:
    """Makes frames of sets of messages; remembers the camera from frame to frame."""

    def __init__(self, steady: bool = False) -> None:
        """
        Start knowing no camera.

        Steady, the range of 16-bit and float images never becomes smaller, whatever they show; the
        frames then depend on those before, which a resumed recording could not repeat.
        """
        self._cameras, self._image_cameras = Cameras(), Cameras('image_info', 'image')
        self._steady = steady
        # powers of two that the values of a guide stay below: of integers, and of floats
        self._bits, self._exponent = conversions.LEAST_BITS, conversions.LEAST_EXPONENT

    def assemble(self, inputs: Inputs, config: NodeConfig) -> Assembled:
        """Decode, check and fit together one set; raise ValueError in one sentence."""
        depth, encoding, baseline = decode_depth(inputs.depth, config)
        image = self._full_range(_decode_image(inputs.image, config))
        rectified = 'rectified' if baseline else config.distortion
        camera = self._cameras.model(inputs.camera_info, depth.shape, rectified)
        depth = camera.undistorted(depth, nearest=True)
        frame = Frame(
            image=self._as_seen(image, depth, camera, inputs, config),
            depth=depth,
            intrinsics=replace(camera.intrinsics, baseline=baseline or config.baseline),
            confidence=_confidence(inputs.confidence, depth, camera, config),
            stamp=conversions.seconds(inputs.depth.header.stamp),
            pose=inputs.pose)
        return Assembled(inputs, frame, encoding, camera, config.points)

    def _as_seen(self, image: np.ndarray, depth: np.ndarray, camera: CameraModel, inputs: Inputs,
                 config: NodeConfig) -> np.ndarray:
        """Return the image as the depth camera sees it, without distortion."""
        if inputs.image_motion is None:
            return camera.undistorted(conversions.fit_image(image, depth.shape))
        own = self._image_cameras.model(inputs.image_info, image.shape[:2], config.distortion)
        return registered(own.undistorted(image), depth, inputs.image_motion, camera.intrinsics,
                          own.intrinsics)

    def _full_range(self, image: np.ndarray) -> np.ndarray:
        """Let images of 10 or 12 bits in 16, and floats of any range, guide as others do."""
        if image.dtype == np.uint8:
            return image
        bits, exponent = self._bits, self._exponent
        if image.dtype == np.uint16:
            bits = conversions.bits_in_use(image, bits)
        else:
            exponent = conversions.exponent_in_use(image, exponent)
        if self._steady:
            self._bits, self._exponent = bits, exponent
        return conversions.full_range(image, bits if image.dtype == np.uint16 else exponent)


def decode_depth(message: Any, config: NodeConfig) -> tuple[np.ndarray, str, float]:
    """Return metres, encoding and baseline (0 unless disparity) of any kind of depth."""
    if hasattr(message, 'min_disparity'):
        depth, baseline = conversions.decode_disparity(message, config.max_pixels)
        return depth, '32FC1', baseline
    compressed = hasattr(message, 'format')
    decode = conversions.decode_compressed_depth if compressed else conversions.decode_depth
    return *decode(message, config.max_pixels, config.depth_scale), 0.0


def _decode_image(message: Any, config: NodeConfig) -> np.ndarray:
    compressed = hasattr(message, 'format')
    decode = conversions.decode_compressed_image if compressed else conversions.decode_image
    return decode(message, config.max_pixels)


def _confidence(message: Any, depth: np.ndarray, camera: CameraModel,
                config: NodeConfig) -> np.ndarray:
    """Return the confidence that came in, or one derived from the depth (undistorted)."""
    means = confidence.meaning(config)
    if message is None or means is None:
        return confidence.derived(depth)
    values = conversions.decode_confidence(message, config.max_pixels)
    if values.shape != depth.shape:
        raise ValueError(
            f'confidence: expected the size of the depth {depth.shape[1]}x{depth.shape[0]}, '
            f'got {values.shape[1]}x{values.shape[0]}')
    return camera.undistorted(confidence.normalised(values, means), nearest=True)


class Fields(Protocol):
    """How the fields of a message come about; `room` is where their data goes."""

    def __call__(self, assembled: Assembled, refined: Refined, room: outgoing.Room = np.empty
                 ) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Output:
    """One output topic: its type and its fields."""

    package: str
    type_name: str
    fields: Fields


OUTPUTS: dict[str, Output] = {
    'depth_refined/image': Output(
        'sensor_msgs', 'Image',
        lambda a, r, room=np.empty: outgoing.depth_fields(r.depth, a.encoding, room)),
    'depth_refined/camera_info': Output(
        'sensor_msgs', 'CameraInfo',
        lambda a, r, room=np.empty: outgoing.camera_info_fields(
            a.inputs.camera_info, a.camera)),
    'depth_refined/confidence': Output(
        'sensor_msgs', 'Image',
        lambda a, r, room=np.empty: outgoing.image_fields(r.confidence, '32FC1', room)),
    'depth_refined/provenance': Output(
        'sensor_msgs', 'Image',
        lambda a, r, room=np.empty: outgoing.image_fields(r.provenance, 'mono8', room)),
    'disparity_refined': Output(
        'stereo_msgs', 'DisparityImage',
        lambda a, r, room=np.empty: outgoing.disparity_fields(r.depth, a.inputs.depth, room)),
    'normals/image': Output(
        'sensor_msgs', 'Image',
        lambda a, r, room=np.empty: outgoing.normals_fields(r.normals, room)),
    'normals/image_color': Output(
        'sensor_msgs', 'Image',
        lambda a, r, room=np.empty: outgoing.normal_color_fields(r.normals, room)),
    'points': Output(
        'sensor_msgs', 'PointCloud2',
        lambda a, r, room=np.empty: outgoing.cloud_fields(a.frame, r, a.points, room)),
    # named as image_transport names them
    'depth_refined/image/compressedDepth': Output(
        'sensor_msgs', 'CompressedImage',
        lambda a, r, room=np.empty: outgoing.compressed_depth_fields(r.depth, a.encoding)),
    'depth_refined/provenance/compressed': Output(
        'sensor_msgs', 'CompressedImage',
        lambda a, r, room=np.empty: compressed.picture_fields(
            outgoing.image_fields(r.provenance, 'mono8'), 'png')),
    'normals/image_color/compressed': Output(
        'sensor_msgs', 'CompressedImage',
        lambda a, r, room=np.empty: compressed.picture_fields(
            outgoing.normal_color_fields(r.normals), 'jpeg')),
}


def output_topics(disparity: bool, compressed: bool = False) -> list[str]:
    """Return the topics that are published for depth or for disparity coming in."""
    return [
        topic for topic, output in OUTPUTS.items()
        if (disparity or topic != 'disparity_refined')
        and (compressed or output.type_name != 'CompressedImage')]


def warm_up() -> None:
    """Load or compile the kernels of messages."""
    confidence.warm_up()
    outgoing.warm_up()
