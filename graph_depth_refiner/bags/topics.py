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
"""Which topics of a recording are depth, image, camera_info and confidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
import re

from graph_depth_refiner.messages.conversions import DEPTH_ENCODINGS

IMAGE = 'sensor_msgs/msg/Image'
COMPRESSED = 'sensor_msgs/msg/CompressedImage'
CAMERA_INFO = 'sensor_msgs/msg/CameraInfo'
DISPARITY = 'stereo_msgs/msg/DisparityImage'
KINDS = {  # message types of each role
    'depth': (IMAGE, COMPRESSED, DISPARITY), 'image': (IMAGE, COMPRESSED),
    'camera_info': (CAMERA_INFO,), 'confidence': (IMAGE,)}
TRANSPORTS = ('/compressedDepth', '/compressed')
NOT_DEPTH = re.compile(r'confidence|infra|/ir/|amplitude|intensity|normals|_refined')


@dataclass(frozen=True)
class Seen:
    """What is known of a topic from its first message."""

    name: str
    kind: str  # message type
    form: str = ''  # encoding of an image, format of a compressed one

    @property
    def base(self) -> str:
        """Return the name without its transport."""
        return next(
            (self.name[:-len(t)] for t in TRANSPORTS if self.name.endswith(t)), self.name)

    @property
    def is_depth(self) -> bool:
        """Say whether this holds distances."""
        if self.kind == DISPARITY:
            return True
        if NOT_DEPTH.search(self.name):
            return False
        if self.kind == COMPRESSED:
            return 'compressedDepth' in self.form or self.name.endswith('/compressedDepth')
        # mono16 is also what infrared cameras send
        return self.kind == IMAGE and self.form in DEPTH_ENCODINGS and (
            self.form != 'mono16' or 'depth' in self.name)

    @property
    def is_image(self) -> bool:
        """Say whether this could guide the refinement."""
        return (
            self.kind in (IMAGE, COMPRESSED) and not self.is_depth
            and self.form not in ('16UC1', '32FC1', '64FC1', '32FC3')
            and not re.search(r'confidence|normals|_refined', self.name))


@dataclass(frozen=True)
class Topics:
    """The topics of one camera; confidence may be empty."""

    depth: str
    image: str
    camera_info: str
    confidence: str = ''

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of those there are."""
        return tuple(filter(None, (self.depth, self.image, self.camera_info, self.confidence)))

    @property
    def namespace(self) -> str:
        """Return what the names of depth and image have in common, for the refined topics."""
        parts = []
        depth, image = (name.split('/')[:-1] for name in (self.depth, self.image))
        for one, other in zip(depth, image, strict=False):
            if one != other:
                break
            parts.append(one)
        return '/'.join(parts)


@dataclass(frozen=True)
class Driver:
    """How a driver names the topics of registered depth and image, after a common prefix."""

    depth: str
    image: str
    confidence: str = ''


DRIVERS = (
    Driver('aligned_depth_to_color/image_raw', 'color/image_raw'),  # RealSense, registered
    Driver('depth/image_rect_raw', 'infra1/image_rect_raw'),  # RealSense, as measured
    Driver('depth/depth_registered', 'rgb/color/rect/image', 'confidence/confidence_map'),  # ZED
    Driver('depth/depth_registered', 'left/image_rect_color', 'confidence/confidence_map'),
    Driver('depth/depth_registered', 'rgb/image_rect_color', 'confidence/confidence_map'),
    Driver('stereo/image_raw', 'rgb/image_raw'),  # OAK-D
    Driver('stereo/image_raw', 'rgb/image_rect'),
    Driver('stereo/image_raw', 'right/image_rect'),
    Driver('depth_registered/image_raw', 'rgb/image_raw'),  # OpenNI and Azure Kinect
    Driver('depth_registered/image_raw', 'rgb/image_rect_color'),
    Driver('depth_registered/image', 'rgb/image_rect_color'),
    Driver('depth_to_rgb/image_raw', 'rgb/image_raw'),
    Driver('depth/image_raw', 'color/image_raw'),  # Orbbec, registered
    Driver('depth/image_raw', 'rgb/image_raw'),
    Driver('depth/image', 'rgb/image_color'),  # TUM RGB-D
    Driver('disparity', 'left/image_rect_color'),  # stereo_image_proc
    Driver('disparity', 'left/image_rect'),
    Driver('depth', 'image', 'confidence'),  # the names of this package
)


def guess(
        seen: Iterable[Seen], depth: str = '', image: str = '', camera_info: str = '',
        confidence: str = '') -> Topics:
    """Return the topics asked for, the others guessed; list them where that is unclear."""
    known = {topic.name: topic for topic in seen}
    named = {'depth': depth, 'image': image, 'camera_info': camera_info, 'confidence': confidence}
    _check_named({role: name for role, name in named.items() if name}, known)
    free = [topic for topic in known.values() if topic.name not in named.values()]
    depths = [known[depth]] if depth else _preferred(t for t in free if t.is_depth)
    images = [known[image]] if image else _preferred(t for t in free if t.is_image)
    if not depths or not images:
        what = 'a depth' if not depths else 'an image'
        raise ValueError(f'topics: expected {what} topic, got {_listed(known)}')
    pairs = _of_drivers(depths, images)
    if not pairs and len(depths) == len(images) == 1:
        pairs = [(depths[0], images[0], '')]
    if len({(d.name, i.name) for d, i, _ in pairs}) != 1:
        raise ValueError(
            'topics: expected one depth and one image, got depth '
            f'{" or ".join(t.name for t in depths)} and image '
            f'{" or ".join(t.name for t in images)}; choose with --depth and --image')
    found, guide, sure = pairs[0]
    return Topics(
        found.name, guide.name, camera_info or _camera_info(known, found, guide),
        confidence or (sure if sure in known else ''))


def _check_named(named: dict[str, str], known: dict[str, Seen]) -> None:
    """Refuse names that are not there, have the wrong type or stand for two things."""
    for role, name in named.items():
        if name not in known:
            raise ValueError(f'topic: expected one of {_listed(known)}, got {name!r}')
        if known[name].kind not in KINDS[role]:
            raise ValueError(
                f'{role}: expected a topic of {" or ".join(KINDS[role])}, '
                f'got {name} of {known[name].kind}')
        other = next((r for r in named if r != role and named[r] == name), '')
        if other:
            raise ValueError(f'{role}: expected a topic of its own, got {name}, the {other} too')


def _of_drivers(depths: list[Seen], images: list[Seen]) -> list[tuple[Seen, Seen, str]]:
    """Return the pairs named as the first driver does that names any that way."""
    for driver in DRIVERS:
        pairs = []
        for depth in depths:
            if not f'/{depth.base}'.endswith(f'/{driver.depth}'):
                continue
            prefix = depth.base[:-len(driver.depth)]
            pairs += [
                (depth, image, prefix + driver.confidence if driver.confidence else '')
                for image in images if image.base == prefix + driver.image]
        if pairs:
            return pairs
    return []


def _preferred(topics: Iterable[Seen]) -> list[Seen]:
    """Return the topics, the raw one where it is there in several transports."""
    best: dict[str, Seen] = {}
    for topic in sorted(topics, key=lambda t: (len(t.name), t.name)):
        best.setdefault(topic.base, topic)
    return list(best.values())


def _camera_info(known: dict[str, Seen], depth: Seen, image: Seen) -> str:
    infos = [t.name for t in known.values() if t.kind == CAMERA_INFO]
    beside = [f'{t.base.rpartition("/")[0]}/camera_info' for t in (depth, image)]
    beside.append(f'{depth.base}/camera_info')
    found = next((name for name in beside if name in infos), None)
    if found is None and len(infos) == 1:
        found = infos[0]
    if found is None:
        raise ValueError(
            f'topics: expected a camera_info beside {depth.name}, got {_listed(infos)}')
    return found


def _listed(names: Iterable[str]) -> str:
    return ', '.join(sorted(names)) or 'no topics'
