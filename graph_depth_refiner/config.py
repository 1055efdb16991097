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
"""Every tunable of the package: default, meaning, unit and bounds, written once."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

_TUNABLE = 'tunable'
C = TypeVar('C', bound='Tunables')


@dataclass(frozen=True)
class Tunable:
    """What is known of one tunable besides its default."""

    name: str
    kind: type  # bool, int, float or str
    default: Any
    meaning: str
    unit: str = ''
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    odd: bool = False
    fixed: bool = False  # read at start only

    @property
    def bounds(self) -> str:
        """Say which values are accepted, for people."""
        if self.kind is bool:
            return 'true or false'
        if self.choices:
            return 'one of ' + ', '.join(self.choices)
        if self.kind is str:
            return 'text'
        if self.kind is int:
            return f'{"odd " if self.odd else ""}integer from {self.low} to {self.high}'
        return f'number from {self.low:g} to {self.high:g}'

    def check(self, value: Any) -> Any:
        """Return the value in its own type, or raise ValueError in one sentence."""
        if self.kind is float and type(value) is int and self.low <= value <= self.high:
            value = float(value)
        if type(value) is not self.kind:
            self._refuse(f'{_shown(value)} ({type(value).__name__})')
        if self.choices and value not in self.choices:
            self._refuse(_shown(value))
        if self.kind in (int, float):
            if not self.low <= value <= self.high:  # nor is NaN
                self._refuse(_shown(value))
            if self.odd and value % 2 == 0:
                self._refuse(_shown(value))
        return value

    def parse(self, text: str) -> Any:
        """Read a value from the command line."""
        try:
            if self.kind is bool:
                return {'true': True, 'false': False}[text.lower()]
            return self.check(self.kind(text))
        except (KeyError, ValueError):
            self._refuse(_shown(text))

    def _refuse(self, got: str) -> None:
        raise ValueError(f'{self.name}: expected {self.bounds}, got {got}')


def _shown(value: Any) -> str:
    """Return a value for a sentence, however long it is."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write integers of thousands of digits
        return 'an integer of thousands of digits'
    return text if len(text) <= 80 else f'{text[:77]}...'


def tunable(default: Any, meaning: str, **known: Any) -> Any:
    """Declare one tunable of a frozen dataclass."""
    return field(default=default, metadata={_TUNABLE: dict(known, meaning=meaning)})


@dataclass(frozen=True)
class Tunables:
    """A frozen set of tunables, checked on construction."""

    def __post_init__(self) -> None:
        """Check every value against its bounds."""
        for one in self.tunables().values():
            object.__setattr__(self, one.name, one.check(getattr(self, one.name)))

    @classmethod
    def tunables(cls) -> dict[str, Tunable]:
        """Return what is known of every tunable, by name."""
        return {
            f.name: Tunable(f.name, type(f.default), f.default, **f.metadata[_TUNABLE])
            for f in fields(cls)
        }

    @classmethod
    def named(cls, name: str) -> Tunable:
        """Return one tunable, or raise ValueError for an unknown name."""
        known = cls.tunables()
        if name not in known:
            shown = name if name.isidentifier() and len(name) <= 80 else _shown(name)
            raise ValueError(f'{shown}: unknown name, expected one of {", ".join(known)}')
        return known[name]

    def with_values(self: C, **values: Any) -> C:
        """Return a copy with some values changed; unknown names are refused."""
        for name in values:
            self.named(name)
        return replace(self, **values)

    def with_settings(self: C, settings: list[str]) -> C:
        """Return a copy changed by `name=value` texts, as the command line has them."""
        values = {}
        for setting in settings:
            name, equals, text = setting.partition('=')
            if not equals:
                raise ValueError(f'setting: expected name=value, got {setting!r}')
            values[name] = self.named(name).parse(text)
        return self.with_values(**values)


@dataclass(frozen=True)
class RefinerConfig(Tunables):
    """What the refinement does, with or without ROS."""

    # measurement
    min_depth: float = tunable(
        0.001, 'Depth below this is taken as invalid', unit='m', low=1e-6, high=1e6)
    max_depth: float = tunable(
        1e5, 'Depth beyond this is taken as invalid', unit='m', low=1e-6, high=1e6)

    # graph
    graph_window: int = tunable(
        3, 'Side B of the search window of a pixel', unit='px', low=3, high=15, odd=True)
    graph_patch: int = tunable(
        3, 'Side Q of the compared patches', unit='px', low=1, high=15, odd=True)
    graph_neighbours: int = tunable(
        0, 'Edges K kept per pixel, the heaviest first; 0 keeps all', low=0, high=224)
    graph_sigma_intensity: float = tunable(
        0.07, 'Patch difference that counts as similar, image in [0, 1]', low=1e-4, high=10.0)
    graph_sigma_space: float = tunable(
        3.0, 'Distance over which an edge fades', unit='px', low=0.1, high=100.0)
    graph_color: bool = tunable(False, 'Compare patches in colour instead of grey')
    graph_normalise: bool = tunable(True, 'Scale the weights of each pixel to sum 1')

    # preparation of a single frame
    least_confidence: float = tunable(
        0.0, 'Pixels of higher confidence are sure: others are filled from them',
        low=0.0, high=1.0)
    speckle_area: int = tunable(
        0, 'Sure pixels in patches of up to this area are dropped, and small patches '
        'outside the range of the large ones; 0 keeps all',
        unit='px', low=0, high=100000)
    speckle_step: float = tunable(
        1.0, 'Neighbours that differ by less belong to one patch, in noise units',
        low=0.0, high=1e6)
    fill: str = tunable(
        'smooth', 'How holes are filled: smoothly, with the farther side, or by telling '
        'occlusions from other holes (stereo)', choices=('smooth', 'background', 'occlusion'))
    vote: bool = tunable(False, 'Replace pixels that pixels of similar colour contradict')
    vote_sigma: float = tunable(
        0.05, 'Difference of a colour channel that counts as similar, image in [0, 1]',
        low=1e-4, high=10.0)
    plane_slopes: bool = tunable(False, 'Start with the slopes of planes fitted over the graph')
    depth_aware: int = tunable(
        1, 'Times the graph is freed of edges across depth jumps; 0 leaves it to the image',
        low=0, high=10)
    depth_sigma: float = tunable(
        1.5, 'Error of prediction between two planes over which their edge fades, in noise '
        'units', low=1e-3, high=1e6)
    graph_symmetric: bool = tunable(
        False, 'Give both directions of an edge the smaller of their weights')
    final_median: bool = tunable(False, 'End with a 3x3 median of inverse depth')

    # video: how the frames before help
    temporal: bool = tunable(
        True, 'Carry the planes of the last frame along the motion of the camera')
    evidence_limit: float = tunable(
        20.0, 'Most frames that the carried planes count for', low=0.0, high=1e4)
    motion: str = tunable(
        'auto', 'How the motion of the camera is found: from the poses of the frames where '
        'they have one, else from the frames; always from the frames; or it stands still',
        choices=('auto', 'frames', 'none'))
    plane_start: bool = tunable(
        True, 'Start from planes that every pixel elects among those fitted around it')
    graph_tolerance: float = tunable(
        0.012, 'Mean difference of the image in [0, 1] up to which the graph is kept',
        low=0.0, high=1.0)
    solve_scale: int = tunable(
        0, 'Pixels per side of a pixel that is solved for, 1, 2 or 4; the planes are then '
        'lifted to full resolution; 0 chooses by size', low=0, high=4)

    # energy
    regulariser: str = tunable(
        'planar', "Norms of the regulariser: the paper's, NLTGV, or l2 over a neighbourhood",
        choices=('planar', 'nltgv', 'neighbourhood'))
    reg_lambda: float = tunable(
        7.5, 'Weight lambda of the regulariser against the data', low=0.0, high=1e4)
    reg_lambda_coarse: float = tunable(
        0.0, 'The same at the coarser levels; 0 is as at the finest', low=0.0, high=1e4)
    reg_alpha: float = tunable(
        5.5, 'Weight alpha of slope differences inside the regulariser', low=0.0, high=1e4)
    reg_curved: float = tunable(
        0.0, 'Mean slope difference to the neighbours at which the regulariser counts half, '
        'so that it gives way where things are curved; 0 keeps it the same everywhere',
        unit='noise units/px', low=0.0, high=1e6)

    # solver
    solver: str = tunable('adam', 'Minimiser of the energy', choices=('adam', 'irls'))
    mode: str = tunable(
        'realtime', 'A fixed number of steps, or on until the energy settles',
        choices=('realtime', 'converged'))
    iterations: int = tunable(10, 'Solver steps per frame in realtime mode', low=0, high=100000)
    max_iterations: int = tunable(
        8000, 'Most solver steps per level in converged mode', low=1, high=1000000)
    tolerance: float = tunable(
        1e-4, 'Converged mode ends when the energy changes by less than this share of it',
        low=0.0, high=1.0)
    cg_iterations: int = tunable(
        10, 'Steps of conjugate gradients between two re-weightings of irls', low=1, high=1000)
    levels: int = tunable(1, 'Levels L of the pyramid, from coarse to fine', low=1, high=8)
    level_ratio: int = tunable(2, 'Ratio r of the sides of two levels', low=2, high=8)
    learning_rate: float = tunable(
        0.3, 'First ADAM step of d in a frame, in noise units', low=1e-6, high=100.0)
    slope_rate: float = tunable(
        0.05, 'Step of the slopes as a share of that of d', unit='1/px', low=0.0, high=10.0)
    rate_decay: float = tunable(
        0.2, 'Last step of a frame as a share of its first, geometric between',
        low=1e-6, high=1.0)
    time_budget_ms: float = tunable(
        0.0, 'The solver stops once the refinement of a frame has taken this long; 0 is no limit',
        unit='ms', low=0.0, high=1e6)
    backend: str = tunable(
        'auto', 'Implementation: fused kernels on a CPU, plain torch, or compiled torch',
        choices=('auto', 'fused', 'torch', 'compiled'))

    def __post_init__(self) -> None:
        """Check every value, and those that must suit each other."""
        super().__post_init__()
        if self.min_depth >= self.max_depth:
            raise ValueError(f'min_depth: expected less than max_depth ({self.max_depth:g}), '
                             f'got {self.min_depth:g}')
        if self.solve_scale == 3:
            raise ValueError('solve_scale: expected 0, 1, 2 or 4, got 3')


PAPER = {
    'graph_window': 9, 'graph_patch': 3, 'graph_neighbours': 20,
    'graph_sigma_intensity': 0.07, 'graph_sigma_space': 3.0,
    'reg_lambda': 25.0, 'reg_lambda_coarse': 15.0, 'reg_alpha': 3.5,
    'levels': 2, 'level_ratio': 2,
    'fill': 'background', 'plane_start': False, 'temporal': False, 'depth_aware': 0,
    'learning_rate': 1.0,
}

STEREO = {
    'graph_window': 5,
    'least_confidence': 0.5, 'speckle_area': 30, 'fill': 'occlusion', 'vote': True,
    'plane_start': False, 'temporal': False,
    'plane_slopes': True, 'depth_aware': 2, 'depth_sigma': 1.0, 'graph_symmetric': True,
    'final_median': True,
    'reg_lambda': 25.0, 'reg_alpha': 3.5,
    'iterations': 30, 'learning_rate': 0.3, 'rate_decay': 0.2, 'slope_rate': 0.15,
}

PRESETS: dict[str, dict[str, Any]] = {
    'realtime': {},
    'paper': PAPER,
    'stereo': STEREO,
}


def preset(name: str, **values: Any) -> RefinerConfig:
    """Return the named preset, with some values changed."""
    if name not in PRESETS:
        raise ValueError(f'preset: expected one of {", ".join(PRESETS)}, got {name!r}')
    return RefinerConfig().with_values(**{**PRESETS[name], **values})


@dataclass(frozen=True)
class NodeConfig(Tunables):
    """What the ROS 2 node does around the refinement."""

    preset: str = tunable(
        'realtime', 'Set of refinement values to start from', choices=tuple(PRESETS), fixed=True)

    # topics
    image_topic: str = tunable('image', 'Name of the guiding image', fixed=True)
    depth_topic: str = tunable('depth', 'Name of the depth image', fixed=True)
    disparity_topic: str = tunable('disparity', 'Name of the disparity image', fixed=True)
    confidence_topic: str = tunable('confidence', 'Name of the confidence image', fixed=True)
    camera_info_topic: str = tunable(
        'camera_info', 'Name of the calibration of the depth image', fixed=True)
    camera_pose_topic: str = tunable(
        '', 'Name of the pose (PoseStamped) of the optical frame in a fixed frame, '
        'known from odometry; empty: the motion is estimated from the frames', fixed=True)
    input_kind: str = tunable(
        'depth', 'What comes in: a depth or a disparity image',
        choices=('depth', 'disparity'), fixed=True)
    image_transport: str = tunable(
        'raw', 'Transport of the image', choices=('raw', 'compressed'), fixed=True)
    depth_transport: str = tunable(
        'raw', 'Transport of the depth image', choices=('raw', 'compressedDepth'), fixed=True)
    use_confidence: str = tunable(
        'auto', 'Wait for a confidence image with every depth image; auto: while somebody '
        'publishes one', choices=('auto', 'always', 'never'), fixed=True)
    sync_camera_info: bool = tunable(
        True, 'Wait for the camera_info of every depth image; else the newest one serves')
    device: str = tunable(
        'auto', 'Where to compute: auto, cpu, or a torch device such as cuda:0', fixed=True)

    # synchronisation
    queue_size: int = tunable(
        5, 'Messages of a topic that wait for those of the others', low=1, high=1000)
    exact_sync: bool = tunable(False, 'Match equal stamps only')
    slop: float = tunable(
        0.02, 'Stamps that differ by less are matched, if by no more than half a frame',
        unit='s', low=1e-6, high=10.0)
    jump_back: float = tunable(
        0.2, 'Stamps that go back by more start the stream anew', unit='s', low=0.0, high=1e6)
    max_age: float = tunable(
        0.0, 'Frames older than this when their turn comes are dropped; 0 is no limit',
        unit='s', low=0.0, high=1e6)
    max_pixels: int = tunable(
        16777216, 'Images of more pixels are refused', unit='px', low=1, high=268435456)

    # confidence
    confidence_preset: str = tunable(
        'unit', 'Meaning of the confidence image; none: derived from the depth instead',
        choices=('zed', 'l515', 'tof_amplitude', 'unit', 'percent', 'none'))
    confidence_scale: float = tunable(
        0.0, "Value of the confidence image that means 1; 0 is the preset's",
        low=0.0, high=1e9)
    confidence_polarity: str = tunable(
        'preset', 'Whether higher or lower values are better',
        choices=('preset', 'higher', 'lower'))
    confidence_threshold: float = tunable(
        -1.0, "Confidence below this counts as none; negative is the preset's",
        low=-1.0, high=1.0)

    # camera
    distortion: str = tunable(
        'refuse', 'Input whose camera_info has distortion: refuse it, undistort it, or take '
        'it as rectified already', choices=('refuse', 'undistort', 'rectified'))
    baseline: float = tunable(
        0.0, 'Distance of the two cameras where depth comes from stereo; 0 is unknown',
        unit='m', low=0.0, high=100.0)

    check_frames: bool = tunable(
        True, 'Warn where image or camera_info have another frame_id than the depth')

    # load
    shed_load: bool = tunable(
        True, 'Under overload take fewer steps, then solve at a lower resolution')
