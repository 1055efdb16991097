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
"""Recordings as numbered frames: bags of ROS 2 and ROS 1, TUM folders, folders of images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
import json
from pathlib import Path

import numpy as np

from graph_depth_refiner.bags.bags import is_bag, reading
from graph_depth_refiner.bags.frames import plan_frames, read_inputs
from graph_depth_refiner.bags.places import BagPlaces
from graph_depth_refiner.config import NodeConfig
from graph_depth_refiner.files.pictures import image_colors
from graph_depth_refiner.files.reading import MAP_SUFFIXES, read_image, read_map, read_text
from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.lab.evaluation.datasets import MILLIMETRES, tum
from graph_depth_refiner.messages.assembly import Assembler
from graph_depth_refiner.messages.placement import placed

KEPT = 160  # frames of a folder that stay in memory
SLOP = 0.1  # seconds between depth and image of one frame of a bag
RATE = 30.0  # frames a second where a folder has no stamps
CAMERA_FILES = ('sequence.json', 'camera.json', 'intrinsics.json')
COLOR_FOLDERS = ('color', 'rgb', 'image', 'images')
IMAGE_SUFFIXES = ('.jpg', '.jpeg', '.png', '.tif', '.tiff', '.bmp', '.webp')
TUM_LISTS = ('associations.txt', 'depth.txt')
CAMERA_KEYS = ('fx', 'fy', 'cx', 'cy')


@dataclass(frozen=True, eq=False)
class Recording:
    """
    A recording whose frames can be asked for in any order.

    Depth is 0 where nothing was measured, images are RGB in 8 bits, and all frames have the
    size and the camera of the first.
    """

    name: str
    description: str  # names and words that may tell the sensor
    length: int
    load: Callable[[int], Frame] = field(repr=False)

    def __len__(self) -> int:
        """Return the number of frames."""
        return self.length

    @property
    def camera(self) -> Intrinsics:
        """Return the camera."""
        return self.frame(0).intrinsics

    def frame(self, number: int) -> Frame:
        """Return one frame."""
        frame, first = self.load(number), self.load(0)
        if frame.depth.shape != first.depth.shape or frame.intrinsics != first.intrinsics:
            raise ValueError(
                f'{self.name}: expected frames of one size and one camera, got '
                f'{_said(first)} in frame 0 and {_said(frame)} in frame {number}')
        return frame


@dataclass(frozen=True)
class Choice:
    """What a user may say about a recording that it does not say itself."""

    start: int = 0  # frames to leave out at the beginning
    topics: dict[str, str] = field(default_factory=dict)  # of a bag, by role
    camera: tuple[float, ...] = ()  # fx fy cx cy of a folder without a file that has them
    depth_scale: float = 0.0  # counts per metre of a folder's depth; 0: as its file says


def open_recording(path: Path, choice: Choice | None = None) -> Recording:
    """Open a bag or a folder."""
    choice = choice or Choice()
    if is_bag(path):
        return _bag(path, choice)
    if not path.is_dir():
        raise ValueError(f'{path}: expected a recording or a folder, got nothing of the kind')
    if any((path / name).is_file() for name in TUM_LISTS):
        return _tum(path, choice)
    return _folder(path, choice)


def _said(frame: Frame) -> str:
    height, width = frame.depth.shape
    return f'{width}x{height} with a focal length of {frame.intrinsics.fx:g} px'


def _plain(frame: Frame) -> Frame:
    """Return a frame as all sources give it."""
    depth = np.nan_to_num(frame.depth, nan=0.0, posinf=0.0, neginf=0.0)
    return replace(frame, image=image_colors(frame.image),
                   depth=np.ascontiguousarray(np.maximum(depth, 0), np.float32))


def _length(total: int, choice: Choice, path: Path) -> int:
    if total <= choice.start:
        raise ValueError(
            f'{path}: expected more frames than the {choice.start} to leave out, got {total}')
    return total - choice.start


# bags

def _bag(path: Path, choice: Choice) -> Recording:
    with reading(path) as bag:
        plan = plan_frames(bag, SLOP, **choice.topics)
    if not plan.frames:
        raise ValueError(
            f'{path}: expected depth with an image near in time, got {plan.unmatched} depth '
            'images without one')
    has_confidence = bool(plan.topics.confidence)

    def frames() -> Iterator[Frame]:
        assembler, config = Assembler(), plan.configured(NodeConfig())
        with reading(path) as bag:
            places = BagPlaces(bag, config)
            for inputs in read_inputs(bag, plan.frames[choice.start:]):
                frame = assembler.assemble(placed(inputs, config, places), config).frame
                # one derived from the depth would be no part of the recording
                yield _plain(frame if has_confidence else replace(frame, confidence=None))

    length = _length(len(plan.frames), choice, path)
    return Recording(path.stem, ' '.join((path.name, *plan.topics.names)), length,
                     _InOrder(path.name, frames()))


class _InOrder:
    """Frames that come one after another, kept once they have come."""

    def __init__(self, name: str, frames: Iterator[Frame]) -> None:
        self._name, self._frames = name, frames
        self._kept: list[Frame] = []

    def __call__(self, number: int) -> Frame:
        while len(self._kept) <= number:
            frame = next(self._frames, None)
            if frame is None:
                raise ValueError(
                    f'{self._name}: expected a readable frame {number}, got damaged messages: '
                    f'{len(self._kept)} frames can be read')
            self._kept.append(frame)
        return self._kept[number]


# folders

def _tum(path: Path, choice: Choice) -> Recording:
    scenes = tum(path)
    load = lru_cache(maxsize=KEPT)(lambda n: _plain(scenes[choice.start + n].frame))
    # all recordings of this data set are of the first Kinect or the Xtion
    return Recording(path.resolve().name, f'{path.resolve().name} tum',
                     _length(len(scenes), choice, path), load)


def _folder(path: Path, choice: Choice) -> Recording:
    """Read a folder of images, one of depth, and a file of numbers (fx fy cx cy and more)."""
    file, known = _camera_file(path)
    camera = _intrinsics(path, file, known, choice)
    images, depths = _paired(path)
    scale = choice.depth_scale or _number(file, known, 'depth_scale', MILLIMETRES)
    stamps, poses = (_listed(file, known, name, len(depths)) for name in ('stamps', 'poses'))

    def load(number: int) -> Frame:
        n = choice.start + number
        return _plain(Frame(
            read_image(images[n]), read_map(depths[n], scale), camera,
            stamp=float(stamps[n]) if stamps else n / RATE,
            pose=np.array(poses[n], float) if poses else None))

    name = path.resolve().name
    return Recording(name, f'{name} {known.get("sensor", "")}',
                     _length(len(depths), choice, path), lru_cache(maxsize=KEPT)(load))


def _camera_file(path: Path) -> tuple[Path, dict]:
    file = next((f for name in CAMERA_FILES if (f := path / name).is_file()), None)
    if file is None:
        return path / CAMERA_FILES[1], {}
    try:
        known = json.loads(read_text(file))
    except (ValueError, RecursionError) as error:
        raise ValueError(f'{file}: expected JSON, got {error}') from None
    if not isinstance(known, dict):
        raise ValueError(f'{file}: expected an object, got a {type(known).__name__}')
    return file, known


def _intrinsics(path: Path, file: Path, known: dict, choice: Choice) -> Intrinsics:
    if choice.camera:
        return Intrinsics(*choice.camera)
    if not known:
        raise ValueError(
            f'{path}: expected {" or ".join(CAMERA_FILES)} with fx, fy, cx and cy, or --camera, '
            'got neither')
    return Intrinsics(*(_number(file, known, key) for key in CAMERA_KEYS),
                      _number(file, known, 'baseline', 0.0))


def _number(file: Path, known: dict, key: str, default: float | None = None) -> float:
    value = known.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f'{file}: expected a number {key}, got {value!r}')
    return float(value)


def _listed(file: Path, known: dict, key: str, count: int) -> list:
    values = known.get(key) or []
    if not isinstance(values, list) or (values and len(values) != count):
        raise ValueError(f'{file}: expected {count} {key}, one a frame, got {len(values)}')
    return values


def _paired(path: Path) -> tuple[list[Path], list[Path]]:
    """Return images and depth maps frame by frame: of one name, or else in their order."""
    colors = next((p for name in COLOR_FOLDERS if (p := path / name).is_dir()), None)
    if colors is None or not (path / 'depth').is_dir():
        raise ValueError(
            f'{path}: expected a bag, a TUM folder, or folders depth and '
            f'{" or ".join(COLOR_FOLDERS)}, got none of them')
    images, depths = _files(colors, IMAGE_SUFFIXES), _files(path / 'depth', MAP_SUFFIXES)
    by_name = {image.stem: image for image in images}
    if depths and all(depth.stem in by_name for depth in depths):
        return [by_name[depth.stem] for depth in depths], depths
    if not depths or len(images) != len(depths):
        raise ValueError(
            f'{path}: expected an image for every depth map, got {len(images)} images and '
            f'{len(depths)} depth maps')
    return images, depths


def _files(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    found = (p for p in folder.iterdir() if p.suffix.lower() in suffixes)
    return sorted(found, key=lambda p: (len(p.stem), p.stem))
