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
"""Readers of public data sets: stereo pairs and RGB-D views, one small reader per layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
import json
from pathlib import Path

import numpy as np

from graph_depth_refiner.files.reading import find_map, read_image, read_map, read_text
from graph_depth_refiner.frame import Frame, Intrinsics
from graph_depth_refiner.lab.evaluation.trajectories import associate, pose_near, read_trajectory

MILLIMETRES = 1000.0
TUM_SCALE = 5000.0  # depth PNG of TUM and ICL-NUIM, per metre
KITTI_SCALE = 256.0  # disparity PNG, per pixel
KITTI_DISPARITIES = 128  # the search range, which KITTI leaves open
TUM_CAMERAS = {  # from the data set's page
    '1': Intrinsics(517.3, 516.5, 318.6, 255.3),
    '2': Intrinsics(520.9, 521.0, 325.1, 249.7),
    '3': Intrinsics(535.4, 539.2, 320.1, 247.6),
}
ROS_CAMERA = Intrinsics(525.0, 525.0, 319.5, 239.5)
# published with fy = -480 for a y axis that points up; in the optical frame it points down
ICL_CAMERA = Intrinsics(481.2, 480.0, 319.5, 239.5)


@dataclass(frozen=True, eq=False)
class StereoScene:
    """A rectified pair with the true disparity of its left image."""

    name: str
    left: np.ndarray  # H W or H W 3 uint8
    right: np.ndarray
    intrinsics: Intrinsics  # of the left camera, with its baseline
    disparities: int  # search range, px
    offset: float  # px to add to a disparity before it is proportional to inverse depth
    truth: np.ndarray | None = None  # H W float32 px, NaN where unknown

    def depth(self, disparity: np.ndarray) -> np.ndarray:
        """Return the depth in metres of disparities; NaN where there is none."""
        return self._reciprocal(disparity + np.float32(self.offset))

    def disparity(self, depth: np.ndarray) -> np.ndarray:
        """Return the disparity in pixels of depths; NaN where there is none."""
        return self._reciprocal(depth) - np.float32(self.offset)

    def frame(self, disparity: np.ndarray, confidence: np.ndarray | None = None) -> Frame:
        """Return the frame a depth camera with this disparity would deliver."""
        return Frame(self.left, self.depth(disparity), self.intrinsics, confidence)

    def _reciprocal(self, values: np.ndarray) -> np.ndarray:
        scale = np.float32(self.intrinsics.fx * self.intrinsics.baseline)
        result = np.full(values.shape, np.nan, np.float32)
        return np.divide(scale, values, out=result, where=values > 0)  # false for NaN


@dataclass(frozen=True, eq=False)
class RgbdScene:
    """A depth image with its colour image, and the truth where it is known."""

    name: str
    frame: Frame
    truth: np.ndarray | None = None  # H W float32 metres, NaN where unknown


class Scenes(Sequence):
    """The scenes of a folder, read one by one as they are asked for."""

    def __init__(self, names: list[str], load: Callable[[str], StereoScene | RgbdScene]) -> None:
        """Keep the names and the function that reads a scene by its name."""
        self.names = names
        self._load = load

    def __len__(self) -> int:
        """Return the number of scenes."""
        return len(self.names)

    def __getitem__(self, index: int) -> StereoScene | RgbdScene:
        """Read one scene."""
        return self._load(self.names[index])


def middlebury(folder: Path | str) -> Scenes:
    """Read Middlebury v3: folders with im0.png, im1.png, calib.txt and disp0GT.pfm."""
    root = _folder(folder)
    if (root / 'calib.txt').is_file():
        return Scenes([root.name], lambda name: _middlebury_scene(root))
    names = sorted(p.parent.name for p in root.glob('*/calib.txt'))
    return Scenes(
        _some(names, root, 'scene folders with a calib.txt'),
        lambda name: _middlebury_scene(root / name))


def _middlebury_scene(scene: Path) -> StereoScene:
    calib = _assignments(scene / 'calib.txt')
    try:
        (fx, _, cx), (_, fy, cy), _ = (
            [float(v) for v in row.split()] for row in calib['cam0'].strip('[]').split(';'))
        intrinsics = Intrinsics(fx, fy, cx, cy, float(calib['baseline']) / MILLIMETRES)
        disparities, offset = int(calib['ndisp']), float(calib['doffs'])
    except (KeyError, ValueError) as error:
        raise ValueError(
            f'{scene / "calib.txt"}: expected cam0, baseline, doffs and ndisp, got {error}'
        ) from None
    truth = find_map(scene, 'disp0GT')
    return _checked_pair(StereoScene(
        scene.name, read_image(scene / 'im0.png'), read_image(scene / 'im1.png'), intrinsics,
        disparities, offset, None if truth is None else read_map(truth)))


def kitti(folder: Path | str) -> Scenes:
    """Read KITTI 2012 or 2015 stereo, the folder itself or the one above `training`."""
    root = _folder(folder)
    if (root / 'training').is_dir():
        root = root / 'training'
    layouts = (('image_2', 'image_3', 2), ('colored_0', 'colored_1', 2), ('image_0', 'image_1', 0))
    layout = next((one for one in layouts if (root / one[0]).is_dir()), None)
    if layout is None:
        raise ValueError(f'{root}: expected image_2, colored_0 or image_0, got none of them')
    names = sorted(p.stem for p in (root / layout[0]).glob('*_10.png'))
    return Scenes(
        _some(names, root / layout[0], 'images named NNNNNN_10.png'),
        lambda name: _kitti_scene(root, name, *layout))


def _kitti_scene(root: Path, name: str, left: str, right: str, camera: int) -> StereoScene:
    truth = next(
        (p for part in ('disp_occ_0', 'disp_occ') if (p := root / part / f'{name}.png').is_file()),
        None)
    return _checked_pair(StereoScene(
        name, read_image(root / left / f'{name}.png'), read_image(root / right / f'{name}.png'),
        _kitti_camera(root, name[:-3], camera), KITTI_DISPARITIES, 0.0,
        None if truth is None else read_map(truth, KITTI_SCALE)))


def _kitti_camera(root: Path, number: str, camera: int) -> Intrinsics:
    folders = [p for part in ('calib', 'calib_cam_to_cam') if (p := root / part).is_dir()]
    if not folders:
        raise ValueError(f'{root}: expected a folder calib or calib_cam_to_cam, got neither')
    path = folders[0] / f'{number}.txt'
    rows = _assignments(path, ':')
    try:
        first, second = (
            np.array((rows.get(f'P{c}') or rows[f'P_rect_0{c}']).split(), float).reshape(3, 4)
            for c in (camera, camera + 1))
    except (KeyError, ValueError) as error:
        raise ValueError(
            f'{path}: expected projections P{camera} and P{camera + 1}, got {error}') from None
    fx, fy, cx, cy = (float(first[at]) for at in ((0, 0), (1, 1), (0, 2), (1, 2)))
    pinhole = Intrinsics(fx, fy, cx, cy)
    return replace(pinhole, baseline=float(first[0, 3] - second[0, 3]) / fx)


def tum(folder: Path | str) -> Scenes:
    """Read TUM RGB-D: associations.txt, or rgb.txt and depth.txt; poses where they are known."""
    root = _folder(folder)
    rows = associate(root)
    poses = read_trajectory(root / 'groundtruth.txt')
    number = next((n for n in TUM_CAMERAS if f'fr{n}' in root.name or f'freiburg{n}' in root.name),
                  None)
    camera = ROS_CAMERA if number is None else TUM_CAMERAS[number]

    def load(name: str) -> RgbdScene:
        stamp, image, depth = rows[name]
        return RgbdScene(name, Frame(
            read_image(root / image), read_map(root / depth, TUM_SCALE), camera,
            stamp=stamp, pose=pose_near(poses, stamp)))

    return Scenes(_some(list(rows), root, 'associated images'), load)


def icl_nuim(folder: Path | str) -> Scenes:
    """Read ICL-NUIM views: color/N.png or rgb/N.png with depth/N.png, which is the truth."""
    root = _folder(folder)
    colour = next((p for part in ('color', 'rgb') if (p := root / part).is_dir()), None)
    if colour is None:
        raise ValueError(f'{root}: expected a folder color or rgb, got neither')
    names = sorted((p.stem for p in colour.glob('*.png')), key=lambda n: (len(n), n))

    def load(name: str) -> RgbdScene:
        truth = read_map(root / 'depth' / f'{name}.png', TUM_SCALE)
        return RgbdScene(name, Frame(read_image(colour / f'{name}.png'), truth, ICL_CAMERA), truth)

    return Scenes(_some(names, colour, 'PNG images'), load)


def plain(folder: Path | str) -> Scenes:
    """
    Read a plain folder, or one folder per scene.

    It holds image.*, depth.*, intrinsics.json (fx, fy, cx, cy, optionally baseline and the
    depth_scale of integer files) and optionally confidence.* in [0, 1] and truth.*.
    """
    root = _folder(folder)
    if (root / 'intrinsics.json').is_file():
        return Scenes([root.name], lambda name: _plain_scene(root))
    names = sorted(p.parent.name for p in root.glob('*/intrinsics.json'))
    return Scenes(
        _some(names, root, 'intrinsics.json, here or one folder down'),
        lambda name: _plain_scene(root / name))


def _plain_scene(scene: Path) -> RgbdScene:
    path = scene / 'intrinsics.json'
    known = _numbers(path)
    scale = known.pop('depth_scale', MILLIMETRES)
    intrinsics = Intrinsics(**known)
    image = next((p for p in sorted(scene.glob('image.*'))), scene / 'image.png')
    depth, confidence, truth = (find_map(scene, s) for s in ('depth', 'confidence', 'truth'))
    if depth is None:
        raise ValueError(f'{scene}: expected a depth map depth.png, .pfm or .npy, got none')
    frame = Frame(
        read_image(image), read_map(depth, scale), intrinsics,
        None if confidence is None else np.nan_to_num(read_map(confidence, 255)))
    return RgbdScene(scene.name, frame, None if truth is None else _positive(
        read_map(truth, scale)))


def _positive(depth: np.ndarray) -> np.ndarray:
    """Return depth with NaN for what is no distance: float files mark the unknown by 0 or -1."""
    return np.where(depth > 0, depth, np.float32(np.nan))


def _numbers(path: Path) -> dict[str, float]:
    """Read the numbers of a camera from a JSON file."""
    text = read_text(path)
    try:
        known = {key: float(value) for key, value in json.loads(text).items()}
    except (TypeError, AttributeError, ValueError, OverflowError, RecursionError):
        known = {}
    needed, more = {'fx', 'fy', 'cx', 'cy'}, {'baseline', 'depth_scale'}
    if not needed <= known.keys() <= needed | more:
        raise ValueError(
            f'{path}: expected numbers fx, fy, cx, cy and optionally baseline and depth_scale, '
            f'got {text[:80]!r}')
    return known


READERS: dict[str, Callable[[Path | str], Scenes]] = {
    'middlebury': middlebury, 'kitti': kitti, 'tum': tum, 'icl': icl_nuim, 'folder': plain,
}


def _folder(folder: Path | str) -> Path:
    root = Path(folder)
    if not root.is_dir():
        raise ValueError(f'{root}: expected a folder, got nothing there')
    return root.resolve()


def _some(names: list[str], root: Path, what: str) -> list[str]:
    if not names:
        raise ValueError(f'{root}: expected {what}, got none')
    return names


def _assignments(path: Path, separator: str = '=') -> dict[str, str]:
    if not path.is_file():
        raise ValueError(f'{path}: expected a calibration file, got nothing there')
    lines = (line.partition(separator) for line in read_text(path).splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}


def _checked_pair(scene: StereoScene) -> StereoScene:
    shape = scene.left.shape
    if scene.right.shape != shape:
        raise ValueError(
            f'{scene.name}: expected a right image of shape {shape}, got {scene.right.shape}')
    if scene.truth is not None and scene.truth.shape != shape[:2]:
        raise ValueError(
            f'{scene.name}: expected true disparity of shape {shape[:2]}, '
            f'got {scene.truth.shape}')
    return scene
