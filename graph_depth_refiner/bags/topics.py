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

from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.messages.conversions import DEPTH_ENCODINGS

IMAGE = 'sensor_msgs/msg/Image'
COMPRESSED = 'sensor_msgs/msg/CompressedImage'
CAMERA_INFO = 'sensor_msgs/msg/CameraInfo'
DISPARITY = 'stereo_msgs/msg/DisparityImage'
KINDS = {  # message types of each role
    'depth': (IMAGE, COMPRESSED, DISPARITY), 'image': (IMAGE, COMPRESSED),
    'camera_info': (CAMERA_INFO,), 'confidence': (IMAGE,)}
SHARED = {'image', 'confidence'}  # roles of one topic, as that of an amplitude
TRANSPORTS = ('/compressedDepth', '/compressed')
OURS = 'normals|_refined'  # what this package publishes
LIGHT = 'infra|/ir/|/ir_|_ir/|amplitude|intensity'  # how much came back, in any encoding
NOT_DEPTH = re.compile(f'confidence|{LIGHT}|{OURS}')
NOT_IMAGE = re.compile(f'confidence|{OURS}|/state$|/status$|mask|label|segmentation|/noise')
FLAT = 'flat'  # the form of a camera_info without distortion
RECTIFIED = ('image_rect', 'image_rect_color')  # names of the rectified image beside image_raw


@dataclass(frozen=True)
class Seen:
    """What is known of a topic from its first message."""

    name: str
    kind: str  # message type
    form: str = ''  # encoding of an image, format of a compressed one, or FLAT
    frame: str = ''  # frame_id of an image

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
            return 'compressedDepth' in self.form or self.name.endswith('/compressedDepth') or (
                self.form.partition(';')[0] in ('16UC1', '32FC1') and 'jpeg' not in self.form)
        # mono16 is also what infrared cameras send
        return self.kind == IMAGE and self.form in DEPTH_ENCODINGS and (
            self.form != 'mono16' or 'depth' in self.name)

    @property
    def is_image(self) -> bool:
        """Say whether this could guide the refinement."""
        return (
            self.kind in (IMAGE, COMPRESSED) and not self.is_depth and self.form != '32FC3'
            and (self.form not in ('16UC1', '32FC1', '64FC1') or bool(re.search(LIGHT, self.name)))
            and not NOT_IMAGE.search(self.name))


@dataclass(frozen=True)
class Topics:
    """The topics of one camera; those of confidence and image_info may be empty."""

    depth: str
    image: str
    camera_info: str
    confidence: str = ''
    image_info: str = ''  # where the image has a calibration of its own
    meaning: str = ''  # of the confidence, a preset of `confidence.preset`, where it is known

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of those there are."""
        return tuple(filter(None, (
            self.depth, self.image, self.camera_info, self.confidence, self.image_info)))

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
    meaning: str = ''  # of the confidence, a preset of `confidence.preset`


ZED_CONFIDENCE = 'confidence/confidence_map', 'zed'
DRIVERS = (
    Driver('aligned_depth_to_color/image_raw', 'color/image_raw'),  # RealSense, registered
    Driver('aligned_depth_to_color/image_raw', 'color/image_rect_raw'),  # D405
    Driver('depth/image_rect_raw', 'infra1/image_rect_raw'),  # RealSense, as measured
    Driver('depth/image_rect_raw', 'infra/image_rect_raw', 'confidence/image_rect_raw',
           'l515'),
    Driver('depth/image_rect_raw', 'color/image_raw'),  # two cameras, see the frame_id
    Driver('depth/image_rect_raw', 'color/image_rect_raw'),
    Driver('depth/depth_registered', 'rgb/color/rect/image', *ZED_CONFIDENCE),
    Driver('depth/depth_registered', 'left/color/rect/image', *ZED_CONFIDENCE),
    Driver('depth/depth_registered', 'left/image_rect_color', *ZED_CONFIDENCE),
    Driver('depth/depth_registered', 'rgb/image_rect_color', *ZED_CONFIDENCE),
    Driver('depth/depth_registered', 'rgb/gray/rect/image', *ZED_CONFIDENCE),
    Driver('depth/depth_registered', 'left/gray/rect/image', *ZED_CONFIDENCE),
    Driver('stereo/image_raw', 'rgb/image_raw'),  # OAK-D
    Driver('stereo/image_raw', 'rgb/image_rect'),
    Driver('stereo/image_raw', 'right/image_rect'),
    Driver('stereo/image_raw', 'right/image_raw'),
    Driver('tof/image_raw', 'rgb/image_raw'),  # OAK-D with time of flight
    Driver('tof/image_raw', 'right/image_raw'),
    Driver('depth_registered/image_raw', 'rgb/image_raw'),  # OpenNI and Azure Kinect
    Driver('depth_registered/image_raw', 'rgb/image_rect_color'),
    Driver('depth_registered/image', 'rgb/image_rect_color'),
    Driver('depth_to_rgb/image_raw', 'rgb/image_raw'),
    Driver('depth/image_raw', 'color/image_raw'),  # Orbbec, registered
    Driver('depth/image_raw', 'rgb/image_raw'),
    Driver('depth/image_raw', 'left_ir/image_raw'),  # Orbbec, as measured
    Driver('depth/image_raw', 'ir/image_raw'),
    Driver('qhd/image_depth_rect', 'qhd/image_color_rect'),  # Kinect v2
    Driver('sd/image_depth_rect', 'sd/image_color_rect'),
    Driver('depth_image', 'image'),  # Gazebo
    Driver('depth', 'rgb'),  # Isaac Sim
    Driver('depth', 'intensity'),  # SICK Visionary
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
    if not pairs:
        pairs = _only_pair(depths, images)
    if len({(d.name, i.name) for d, i, _ in pairs}) != 1:
        raise ValueError(
            'topics: expected one depth and one image, got depth '
            f'{" or ".join(t.name for t in depths)} and image '
            f'{" or ".join(t.name for t in images)}; choose with --depth and --image')
    found, guide, driver = pairs[0]
    info = camera_info or _camera_info(known, found, guide)
    if not image:
        guide = _rectified(known, guide, info)
    prefix = found.base[:-len(driver.depth)] if driver else ''
    guessed = prefix + driver.confidence if driver and driver.confidence else ''
    chosen = confidence or (guessed if guessed in known else '')
    return Topics(found.name, guide.name, info, chosen, _image_info(known, guide, info),
                  driver.meaning if driver and chosen == guessed else '')


def of_camera(seen: Iterable[Seen], config: NodeConfig, **named: str) -> dict[str, str]:
    """Return the topics of a recording that a preset of a camera names, or `named`, by role."""
    known = {topic.name: topic for topic in seen}
    roles = {'depth': f'{config.input_kind}_topic', 'image': 'image_topic',
             'camera_info': 'camera_info_topic'}
    wanted = {role: getattr(config, name) for role, name in roles.items() if role not in named}
    prefixes = {
        topic.base[:-len(name) - 1] for topic in known.values() for name in wanted.values()
        if topic.base.endswith(f'/{name}')}
    found = {
        prefix: {role: full for role, name in wanted.items()
                 if (full := _named(known, f'{prefix}/{name}'))} for prefix in sorted(prefixes)}
    whole = [prefix for prefix, topics in found.items() if len(topics) == len(wanted)]
    if len(whole) != 1:
        raise ValueError(
            f'camera: expected {", ".join(wanted.values())} of one camera in the recording, got '
            f'{len(whole)} cameras in {_listed(known)}; name topics with --depth, --image and '
            '--camera-info')
    return {**found[whole[0]], **_confidence_of(known, whole[0], config), **named}


def _confidence_of(known: dict[str, Seen], prefix: str, config: NodeConfig) -> dict[str, str]:
    """Return the confidence of a camera where it is there and wanted."""
    name = f'{prefix}/{config.confidence_topic}'
    if config.use_confidence == 'never':
        return {}
    if name not in known and config.use_confidence == 'always':
        raise ValueError(f'camera: expected {name} in the recording, got {_listed(known)}')
    return {'confidence': name} if name in known else {}


def _named(known: dict[str, Seen], base: str) -> str:
    """Return the topic of a name, raw or by another transport, or nothing."""
    return next((name for name in (base, *(base + t for t in TRANSPORTS)) if name in known), '')


def _only_pair(depths: list[Seen], images: list[Seen]) -> list[tuple[Seen, Seen, None]]:
    """Return the only depth with the only image, or the only one of its frame."""
    if len(depths) != 1:
        return []
    same = [one for one in images if one.frame and one.frame == depths[0].frame]
    chosen = images if len(images) == 1 else same
    return [(depths[0], one, None) for one in chosen]


def _rectified(known: dict[str, Seen], image: Seen, info: str) -> Seen:
    """Return the rectified image where the calibration of the depth has no distortion."""
    folder, _, name = image.base.rpartition('/')
    if name != 'image_raw' or known[info].form != FLAT:
        return image
    beside = (_named(known, f'{folder}/{other}') for other in RECTIFIED)
    return next((known[other] for other in beside if other), image)


def _image_info(known: dict[str, Seen], image: Seen, info: str) -> str:
    """Return the camera_info beside an image, unless it is that of the depth."""
    name = f'{image.base.rpartition("/")[0]}/camera_info'
    return name if name != info and name in known and known[name].kind == CAMERA_INFO else ''


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
        if other and {role, other} != SHARED:
            raise ValueError(f'{role}: expected a topic of its own, got {name}, the {other} too')


def _of_drivers(depths: list[Seen], images: list[Seen]) -> list[tuple[Seen, Seen, Driver]]:
    """Return the pairs named as the first driver does that names any that way."""
    for driver in DRIVERS:
        pairs = []
        for depth in depths:
            if not f'/{depth.base}'.endswith(f'/{driver.depth}'):
                continue
            prefix = depth.base[:-len(driver.depth)]
            pairs += [
                (depth, image, driver) for image in images if image.base == prefix + driver.image]
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
