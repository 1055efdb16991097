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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
import math
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

from graph_depth_refiner.renamed import new_name, new_text, new_value

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
        value = new_text(self.name, value)
        if self.kind is float and type(value) is int and self._within(value):
            value = float(value)
        if type(value) is not self.kind:
            self._refuse(f'{_shown(value)} ({type(value).__name__})')
        if self.choices and value not in self.choices:
            self._refuse(_shown(value))
        if self.kind in (int, float):
            if not self._within(value):
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

    def _within(self, value: float) -> bool:
        """Say whether a number is within the bounds; NaN is not."""
        return self.low is not None and self.high is not None and self.low <= value <= self.high

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
class Group:
    """Some tunables under a common name, checked on construction."""

    group: ClassVar[str] = ''  # in front of their names, and the field that holds them

    def __post_init__(self) -> None:
        """Check every value against its bounds."""
        for field_name, one in self._own().items():
            object.__setattr__(self, field_name, one.check(getattr(self, field_name)))

    @classmethod
    @cache
    def tunables(cls) -> dict[str, Tunable]:
        """Return what is known of every tunable, by its dotted name."""
        known = {one.name: one for one in cls._own().values()}
        for f in fields(cls):
            if isinstance(f.default, Group):
                known |= f.default.tunables()
        return known

    @classmethod
    @cache
    def _own(cls) -> dict[str, Tunable]:
        """Return the tunables that are in no group below this one, by field."""
        prefix = f'{cls.group}.' if cls.group else ''
        return {
            f.name: Tunable(
                f'{prefix}{f.name}', type(f.default), f.default, **f.metadata[_TUNABLE])
            for f in fields(cls) if _TUNABLE in f.metadata
        }


@dataclass(frozen=True)
class Tunables(Group):
    """A frozen set of tunables, in groups or not, that people change by dotted names."""

    @classmethod
    def named(cls, name: str) -> Tunable:
        """Return one tunable, or raise ValueError for an unknown name."""
        known = cls.tunables()
        now = new_name(name, known)
        if now not in known:
            plain = all(part.isidentifier() for part in name.split('.')) and len(name) <= 80
            shown = name if plain else _shown(name)
            raise ValueError(f'{shown}: unknown name, expected one of {", ".join(known)}')
        return known[now]

    def value(self, name: str) -> Any:
        """Return the value of a tunable by its dotted name."""
        return attrgetter(self.named(name).name)(self)

    def with_values(self: C, **values: Any) -> C:
        """
        Return a copy with some values changed; unknown names are refused.

        Names are dotted, `**{'graph.window': 5}`, or a group has a mapping, as in YAML:
        `graph={'window': 5}`.
        """
        by_group: dict[str, dict[str, Any]] = {'': {}}
        for name, value in self._flat(values):
            group, _, field_name = self.named(name).name.rpartition('.')
            by_group.setdefault(group, {})[field_name] = new_value(name, value)
        changed = by_group.pop('')
        for group, some in by_group.items():
            changed[group] = replace(getattr(self, group), **some)
        return replace(self, **changed)

    def with_settings(self: C, settings: list[str]) -> C:
        """Return a copy changed by `name=value` texts, as the command line has them."""
        values = {}
        for setting in settings:
            name, equals, text = setting.partition('=')
            if not equals:
                raise ValueError(f'setting: expected name=value, got {setting!r}')
            values[name] = self.named(name).parse(text)
        return self.with_values(**values)

    def _flat(self, values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, value in values.items():
            if isinstance(value, Mapping) and isinstance(getattr(self, name, None), Group):
                yield from ((f'{name}.{own}', inner) for own, inner in value.items())
            else:
                yield name, value


# ------------------------------------------------------------------- refinement

@dataclass(frozen=True)
class Depth(Group):
    """Which measurements are valid."""

    group = 'depth'
    min: float = tunable(  # noqa: A003
        0.001, 'Depth below this is taken as invalid', unit='m', low=1e-6, high=1e6)
    max: float = tunable(  # noqa: A003
        1e5, 'Depth beyond this is taken as invalid', unit='m', low=1e-6, high=1e6)

    def __post_init__(self) -> None:
        """Check every value, and that there is something between them."""
        super().__post_init__()
        if self.min >= self.max:
            raise ValueError(
                f'depth.min: expected less than depth.max ({self.max:g}), got {self.min:g}')


@dataclass(frozen=True)
class Graph(Group):
    """Which pixels are joined by the similarity of their patches, and how strongly."""

    group = 'graph'
    window: int = tunable(
        3, 'Side B of the search window of a pixel', unit='px', low=3, high=15, odd=True)
    patch: int = tunable(
        3, 'Side Q of the compared patches', unit='px', low=1, high=15, odd=True)
    neighbours: int = tunable(
        0, 'Edges K kept per pixel, the heaviest first; 0 keeps all', low=0, high=224)
    sigma_intensity: float = tunable(
        0.07, 'Patch difference that counts as similar, image in [0, 1]', low=1e-4, high=10.0)
    sigma_space: float = tunable(
        3.0, 'Distance over which an edge fades', unit='px', low=0.1, high=100.0)
    color: bool = tunable(False, 'Compare patches in colour instead of grey')
    normalise: bool = tunable(True, 'Scale the weights of each pixel to sum 1')
    symmetric: bool = tunable(
        False, 'Give both directions of an edge the smaller of their weights')
    tolerance: float = tunable(
        0.012, 'Mean difference of the image in [0, 1] up to which the graph is kept',
        low=0.0, high=1.0)


@dataclass(frozen=True)
class Cleaning(Group):
    """Which measurements are dropped or replaced before the solver sees them."""

    group = 'cleaning'
    least_confidence: float = tunable(
        0.0, 'Pixels of higher confidence are reliable: others are filled from them',
        low=0.0, high=1.0)
    speckle_area: int = tunable(
        0, 'Reliable pixels in patches of up to this area are dropped, and small patches '
        'outside the range of the large ones; 0 keeps all',
        unit='px', low=0, high=100000)
    speckle_step: float = tunable(
        1.0, 'Neighbours that differ by less belong to one patch, in noise units',
        low=0.0, high=1e6)
    visible: bool = tunable(
        False, 'Drop pixels that something nearer hides from the right camera of a stereo pair '
        'whose left one sees them')
    joint_median: bool = tunable(
        False, 'Replace pixels that pixels of similar colour contradict by a joint weighted '
        'median')
    joint_median_sigma: float = tunable(
        0.05, 'Difference of a colour channel that counts as similar, image in [0, 1]',
        low=1e-4, high=10.0)


@dataclass(frozen=True)
class Holes(Group):
    """What becomes of pixels without a measurement."""

    group = 'holes'
    fill: str = tunable(
        'small', 'Which holes are filled: none, those that are narrow or that earlier frames '
        'saw, or all', choices=('none', 'small', 'all'))
    max_width: int = tunable(
        4, 'Holes of up to this width are small', unit='px', low=0, high=1000)
    history_width: int = tunable(
        40, 'Holes of up to this width, and the rim of others, are filled with what earlier '
        'frames saw', unit='px', low=0, high=10000)
    method: str = tunable(
        'smooth', 'How all holes are filled: smoothly, with the farther side, or by telling '
        'occlusions from other holes (stereo)', choices=('smooth', 'background', 'occlusion'))


@dataclass(frozen=True)
class Noise(Group):
    """The error of the sensor, which everything is measured in."""

    group = 'noise'
    sensor: str = tunable(
        'auto', 'Kind of sensor, whose noise a stream begins with before it is learned; auto '
        'looks at the first frame, and is stereo where the baseline is known',
        choices=('auto', 'structured-light', 'active-stereo', 'tof', 'stereo'))


@dataclass(frozen=True)
class Planes(Group):
    """The planes that the solver starts from, and what is done to those it ends with."""

    group = 'planes'
    start: bool = tunable(
        True, 'Start from planes fitted around every pixel')
    width: float = tunable(
        4.0, 'Distance from such a plane beyond which a pixel is of another surface, in '
        'standard deviations', low=0.1, high=1e3)
    slopes: bool = tunable(False, 'Start with the slopes of planes fitted over the graph')
    passes: int = tunable(
        2, 'Passes that smooth planes where wide windows are planar, each twice as wide as the '
        'one before; one more where the full resolution is solved for', low=0, high=5)
    final_median: bool = tunable(False, 'End with a 3x3 median of inverse depth')
    guided: bool = tunable(
        False, 'At full resolution choose between the planes around a pixel by its colour '
        'instead of its measurement (stereo, which errs at edges)')


@dataclass(frozen=True)
class Edges(Group):
    """How edges of the graph across depth jumps are weakened."""

    group = 'edges'
    passes: int = tunable(
        1, 'Times the graph is freed of edges across depth jumps; 0 leaves it to the image',
        low=0, high=10)
    sigma: float = tunable(
        1.5, 'Error of prediction between two planes over which their edge fades, in noise '
        'units', low=1e-3, high=1e6)


@dataclass(frozen=True)
class Temporal(Group):
    """How the frames before help in a video."""

    group = 'temporal'
    enabled: bool = tunable(
        True, 'Warp the planes of the last frame along the motion of the camera')
    evidence_limit: float = tunable(
        20.0, 'Most frames that the warped planes count for', low=0.0, high=1e4)
    motion: str = tunable(
        'auto', 'How the motion of the camera is found: from the poses of the frames where '
        'they have one, else from the frames; always from the frames; or it stands still',
        choices=('auto', 'frames', 'none'))


@dataclass(frozen=True)
class Energy(Group):
    """What is minimised."""

    group = 'energy'
    regulariser: str = tunable(
        'planar', "Norms of the regulariser: the paper's, NLTGV, or l2 over a neighbourhood",
        choices=('planar', 'nltgv', 'neighbourhood'))
    reg_lambda: float = tunable(
        4.0, 'Weight lambda of the regulariser against the data', low=0.0, high=1e4)
    reg_lambda_coarse: float = tunable(
        0.0, 'The same at the coarser levels; 0 is as at the finest', low=0.0, high=1e4)
    reg_alpha: float = tunable(
        2.0, 'Weight alpha of slope differences inside the regulariser', low=0.0, high=1e4)
    reg_curved: float = tunable(
        0.0, 'Mean slope difference to the neighbours at which the regulariser counts half, '
        'so that it gives way where things are curved; 0 keeps it the same everywhere',
        unit='noise units/px', low=0.0, high=1e6)


@dataclass(frozen=True)
class Solver(Group):
    """How it is minimised."""

    group = 'solver'
    method: str = tunable('adam', 'Minimiser of the energy', choices=('adam', 'irls'))
    mode: str = tunable(
        'realtime', 'A fixed number of steps, or on until the energy settles',
        choices=('realtime', 'converged'))
    iterations: int = tunable(1, 'Solver steps per frame in realtime mode', low=0, high=100000)
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
        2.2, 'First ADAM step of d in a frame, in noise units', low=1e-6, high=100.0)
    slope_rate: float = tunable(
        0.05, 'Step of the slopes as a share of that of d', unit='1/px', low=0.0, high=10.0)
    rate_decay: float = tunable(
        0.15, 'Last step of a frame as a share of its first, geometric between',
        low=1e-6, high=1.0)
    time_budget_ms: float = tunable(
        0.0, 'The solver stops once the refinement of a frame has taken this long; 0 is no limit',
        unit='ms', low=0.0, high=1e6)
    scale: int = tunable(
        0, 'Pixels per side of a pixel that is solved for, 1, 2 or 4; the planes are then '
        'upsampled to full resolution; 0 chooses by size', low=0, high=4)

    def __post_init__(self) -> None:
        """Check every value, and the one that its range does not say all about."""
        super().__post_init__()
        if self.scale == 3:
            raise ValueError('solver.scale: expected 0, 1, 2 or 4, got 3')


@dataclass(frozen=True)
class RefinerConfig(Tunables):
    """What the refinement does, with or without ROS."""

    backend: str = tunable(
        'auto', 'Implementation: fused kernels on a CPU, plain torch, or torch with Triton '
        'kernels on a GPU', choices=('auto', 'fused', 'torch', 'triton'))
    threads: int = tunable(
        0, 'Most threads of the fused kernels; 0: as many as other work leaves cores free. '
        'Results do not depend on it', low=0, high=1024)
    depth: Depth = Depth()
    cleaning: Cleaning = Cleaning()
    noise: Noise = Noise()
    holes: Holes = Holes()
    graph: Graph = Graph()
    planes: Planes = Planes()
    temporal: Temporal = Temporal()
    edges: Edges = Edges()
    energy: Energy = Energy()
    solver: Solver = Solver()


PAPER = {
    'holes.fill': 'all', 'holes.method': 'background',
    'graph.window': 9, 'graph.patch': 3, 'graph.neighbours': 20,
    'graph.sigma_intensity': 0.07, 'graph.sigma_space': 3.0,
    'planes.start': False, 'temporal.enabled': False, 'edges.passes': 0,
    'energy.reg_lambda': 25.0, 'energy.reg_lambda_coarse': 15.0, 'energy.reg_alpha': 3.5,
    'solver.iterations': 10, 'solver.levels': 2, 'solver.level_ratio': 2,
    'solver.learning_rate': 0.3, 'solver.rate_decay': 0.2, 'solver.scale': 1,
}

STEREO = {
    'noise.sensor': 'stereo',  # limits of cleaning are in pixels of disparity
    'cleaning.least_confidence': 0.5, 'cleaning.speckle_area': 30,
    'cleaning.visible': True,
    'cleaning.joint_median': True, 'holes.fill': 'all',
    'holes.method': 'occlusion',
    'planes.width': 3.0, 'planes.guided': True,
    'planes.passes': 0,  # half a pixel of disparity, its unit, hides too much that is curved
    'energy.reg_lambda': 12.0, 'energy.reg_alpha': 5.5,
    'solver.iterations': 20, 'solver.learning_rate': 0.6, 'solver.rate_decay': 0.2,
    'solver.slope_rate': 0.1,
    'solver.scale': 2,  # a matcher's windows are larger, its maps need no finer solution
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
    return RefinerConfig().with_values(**PRESETS[name]).with_values(**values)


def nearest_preset(config: RefinerConfig) -> str:
    """Name the preset from which the fewest values differ."""
    def differing(name: str) -> int:
        other = preset(name)
        return sum(config.value(one) != other.value(one) for one in config.tunables())
    return min(PRESETS, key=differing)


# ------------------------------------------------------------------------- node

@dataclass(frozen=True)
class Confidence(Group):
    """What the confidence image means."""

    group = 'confidence'
    preset: str = tunable(
        'unit', 'Meaning of the confidence image; none: derived from the depth instead',
        choices=('zed', 'l515', 'tof_amplitude', 'unit', 'percent', 'none'))
    scale: float = tunable(
        0.0, "Value of the confidence image that means 1; 0 is the preset's",
        low=0.0, high=1e9)
    polarity: str = tunable(
        'preset', 'Whether higher or lower values are better',
        choices=('preset', 'higher', 'lower'))
    threshold: float = tunable(
        -1.0, "Confidence below this counts as none; negative is the preset's",
        low=-1.0, high=1.0)


def transform_numbers(name: str, text: str) -> list[float]:
    """Return the seven numbers of a text 'x y z qx qy qz qw', none where it is empty."""
    try:
        numbers = [float(word) for word in text.replace(',', ' ').split()]
    except ValueError:
        numbers = [math.nan]
    turn = math.hypot(*numbers[3:])
    if numbers and not (len(numbers) == 7 and 0.5 < turn < 2 and all(map(math.isfinite, numbers))):
        raise ValueError(
            f"{name}: expected seven numbers 'x y z qx qy qz qw', metres and a quaternion, got "
            f'{_shown(text)}')
    return numbers


@dataclass(frozen=True)
class Points(Group):
    """What the cloud holds."""

    group = 'points'
    fields: str = tunable(
        'all', 'Fields of a point: x, y, z (12 bytes); and colour (16 bytes); and normal and '
        'curvature (32 bytes)', choices=('xyz', 'xyzrgb', 'all'))
    decimation: int = tunable(
        1, 'Every how manyth pixel of every how manyth row becomes a point', low=1, high=64)


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
    odometry_topic: str = tunable(
        '', 'Name of odometry (nav_msgs/Odometry) of the body that carries the camera, instead of '
        'camera_pose_topic', fixed=True)
    camera_in_body: str = tunable(
        '', "Place of the optical frame in the body of the odometry, 'x y z qx qy qz qw' (m); "
        'empty: TF knows it', fixed=True)
    fixed_frame: str = tunable(
        '', 'Frame of TF, such as odom, in which the camera moves, instead of a topic of poses',
        fixed=True)
    pose_timeout: float = tunable(
        0.05, 'Longest time a frame waits for its pose or transform', unit='s', low=0.0, high=1.0)
    image_info_topic: str = tunable(
        '', 'Name of the calibration of the image, needed where its frame is not that of the '
        'depth', fixed=True)
    input_kind: str = tunable(
        'depth', 'What comes in: a depth or a disparity image',
        choices=('depth', 'disparity'), fixed=True)
    image_transport: str = tunable(
        'raw', 'Transport of the image', choices=('raw', 'compressed'), fixed=True)
    depth_image_transport: str = tunable(
        'raw', 'Transport of the depth image; compressed: lossless PNG or TIFF only',
        choices=('raw', 'compressedDepth', 'compressed'), fixed=True)
    compressed_outputs: bool = tunable(
        False, 'Also offer depth_refined/image/compressedDepth, '
        'depth_refined/provenance/compressed and normals/image_color/compressed', fixed=True)
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
    approximate_sync: bool = tunable(
        True, 'Match stamps that differ a little; else equal ones only')
    approximate_sync_tolerance_seconds: float = tunable(
        0.02, 'Stamps that differ by less are matched, if by no more than half a frame',
        unit='s', low=1e-6, high=10.0)
    jump_back: float = tunable(
        0.2, 'Stamps that go back by more start the stream anew', unit='s', low=0.0, high=1e6)
    max_age: float = tunable(
        0.0, 'Frames older than this when their turn comes are dropped; 0 is no limit',
        unit='s', low=0.0, high=1e6)
    max_pixels: int = tunable(
        16777216, 'Images of more pixels are refused', unit='px', low=1, high=268435456)

    # camera
    distortion: str = tunable(
        'refuse', 'Input whose camera_info has distortion: refuse it, undistort it, or take '
        'it as rectified already', choices=('refuse', 'undistort', 'rectified'))
    depth_scale: float = tunable(
        0.0, 'Metres of one unit of the depth image; 0: 0.001 for integers, 1 for floats, as '
        'REP 118 has it. What comes out is in the units of REP 118', unit='m', low=0.0, high=1e3)
    baseline: float = tunable(
        0.0, 'Distance of the two cameras where depth comes from stereo; 0 is unknown',
        unit='m', low=0.0, high=100.0)

    check_frames: bool = tunable(
        True, 'An image of another frame_id than the depth is brought into the depth camera by '
        'TF, or refused where that does not know the two; false: it is taken as registered')
    depth_in_image: str = tunable(
        '', "Place of the depth camera in that of the image, 'x y z qx qy qz qw' (m), optical "
        'frames; empty: TF knows it where their frame_id differs')

    # load
    lazy: bool = tunable(
        True, 'Subscribe to the inputs only while somebody listens to an output')
    while_loading: str = tunable(
        'wait', 'Frames that come while kernels are compiled or loaded: the newest one waits, or '
        'all depth is passed through unchanged', choices=('wait', 'pass'))
    shed_load: bool = tunable(
        True, 'Under overload take no steps, then solve at a lower resolution')

    confidence: Confidence = Confidence()
    points: Points = Points()

    def __post_init__(self) -> None:
        """Check every value, and the texts that are transforms."""
        super().__post_init__()
        for name in ('camera_in_body', 'depth_in_image'):
            transform_numbers(name, getattr(self, name))
