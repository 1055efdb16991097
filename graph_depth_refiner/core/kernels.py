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
The one place where implementations are chosen: every stage of a frame, for a CPU or a device.

A stage has two variants beside each other: `local_planes_numba.py`, kernels for a CPU that
take and give numpy arrays, and `local_planes_torch.py`, the readable reference that runs on
any torch device. `Kernels` lists all stages; what is missing fails when it is made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
import logging
import os
from pathlib import Path
import re
import subprocess
from typing import Any, NamedTuple, Protocol, TYPE_CHECKING

import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.jit.compile_once import compile_once, warm_up_arguments
from graph_depth_refiner.core.types import Memory, Terms
from graph_depth_refiner.frame import Intrinsics

if TYPE_CHECKING:
    from graph_depth_refiner.core.noise import NoiseModel
    from graph_depth_refiner.core.odometry import Alignment

Array = Any  # numpy.ndarray with the kernels for a CPU, else torch.Tensor
Number = Any  # float with the kernels for a CPU, else a torch.Tensor without axes

_LOG = logging.getLogger(__name__)
_failed: set[str] = set()  # devices that Triton could not compile for
# A CUDA device shows as one of these: looking is free, importing torch takes seconds.
_NODES = ('/dev/nvidia0', '/dev/nvidiactl', '/dev/nvhost-gpu', '/dev/dxg')
# What torch, its solver of equations, and Triton write where a device is full or lost.
_DEVICE_FAILURES = ('CUDA error', 'CUDA driver error', 'cusolver error', 'Triton Error [CUDA]')


class Adam(Protocol):
    """ADAM on the energy, with explicit state; planes and memory in the arrays of the kernels."""

    def init(self, x: Array, w: Array, d: Array, m: Array, unit: Number, terms: Terms,
             memory: Memory | None = None) -> Any: ...

    def step(self, state: Any, rate: float, slope_rate: float) -> None: ...

    def steps(self, state: Any, rates: list[float], slope_share: float) -> None: ...

    def finite(self, state: Any) -> Any: ...

    def taken(self, state: Any) -> Any: ...

    def energy(self, state: Any, x: Array | None = None, every: int = 1) -> Number: ...

    def planes(self, state: Any) -> Array: ...

    def memory(self, state: Any) -> Memory: ...


class Irls(Protocol):
    """Iteratively re-weighted least squares on the energy, with explicit state."""

    def init(self, x: Array, w: Array, d: Array, m: Array, unit: Number, terms: Terms) -> Any: ...

    def step(self, state: Any, inner: int) -> None: ...

    def finite(self, state: Any) -> Any: ...

    def taken(self, state: Any) -> Any: ...

    def energy(self, state: Any, x: Array | None = None, every: int = 1) -> Number: ...

    def planes(self, state: Any) -> Array: ...


class BuildGraph(Protocol):
    """The patch graph, O H W, of a guide, H W or C H W; `rows` rewrites only those of `out`."""

    def __call__(self, guide: Array, config: RefinerConfig, out: Array | None = None,
                 rows: tuple[int, int] | None = None) -> Array: ...


class PositiveMedian(Protocol):
    """The median of those of some pixels, H W, that are above 0, if any is."""

    def __call__(self, image: Array, otherwise: float = 0.0) -> Number: ...


class NormalEquations(Protocol):
    """Sums and shifts of every block of samples of a motion; see `core.odometry`."""

    def __call__(self, x: Array, n: Array, before: Array, d: Array, m: Array, now: Array,
                 stride: int, motion: Array, gain_bias: Array,
                 intrinsics: Intrinsics, sigma: Number, photometric_sigma: float,
                 block_flow_scale: Number) -> tuple[Array, Array]: ...


class Fuse(Protocol):
    """The running mean with the history, its frames, the history, and counts; see `temporal`."""

    def __call__(self, d: Array, m: Array, grey: Array, past: Array, frames: Array,
                 seen: Array, gain: Number, bias: Array, noise: NoiseModel, flow: Number,
                 limit: float, means: float) -> tuple[Array, Array, Array, Array]: ...


class UpsampleAndDescribe(Protocol):
    """
    The work of `upsample_planes`, `keep_planes` and `describe`, in this order.

    Cells are the arguments of the first, kept, H W bool, that of the second (None: all), and
    shown those of the last after the planes.
    """

    def __call__(self, cells: tuple, kept: Array | None, shown: tuple
                 ) -> tuple[Array, Array, Array, Array]: ...


class Kernels(NamedTuple):
    """Every stage of a frame in one implementation; arguments as the stages name them."""

    name: str  # fused, torch or triton
    device: str  # cpu or cuda:N
    array: Callable[[np.ndarray], Array]  # where the stages compute, see `_contiguous`
    arrays: Callable[..., list[Array]]  # the same of several at once
    zeros: Callable[[tuple, str], Array]
    motion: Callable[[np.ndarray], Array]  # a matrix 4 4 in float64
    noise: Callable[[NoiseModel], NoiseModel]  # with its numbers there
    numpy: Callable[[Array], np.ndarray]  # back again; waits for the device
    pack: Callable[[tuple, tuple], Any]  # arrays and numbers, for one copy back
    fetch: Callable[[Any], tuple[list[np.ndarray], list[float]]]  # that copy; waits
    where: Callable[[Array, Array, Array], Array]
    either: Callable[[Any, Callable[[], Any], Callable[[], Any]], Any]  # see `transfer_torch`
    inverse_depth: Callable[[np.ndarray, float, float], tuple[np.ndarray, np.ndarray]]
    weigh: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, tuple[float, int, int]]]
    # numbers
    smaller: Callable[[Number, float], Number]
    positive_median: PositiveMedian
    known_median: Callable[[Array, Array], Number]
    fused_unit: Callable[[NoiseModel, Number, Number], Number]
    known_sigma: Callable[[NoiseModel, Array, Array, Number], Array]
    learn_noise: Callable[[NoiseModel, Array, Array, Array, Array, float], NoiseModel]
    # resolution
    merge_blocks: Callable[[Array, Array, float], tuple[Array, Array]]
    upsample_planes: Callable[[Array, Array, Array, Array, NoiseModel, Number, int], Array]
    predict_by_color: Callable[[Array, Array, Array, Array, int, float, float], Array]
    fillable: Callable[[Array, Array, Number, RefinerConfig], Array]
    keep_planes: Callable[[Array, Array], None]  # in place
    median3: Callable[[Array], Array]
    # graph
    build_graph: BuildGraph
    band_changes: Callable[[Array, Array], Array]
    renew_graph: Callable[
        [Array, Array, Array, RefinerConfig], tuple[Array, Array, Number]]
    symmetrise: Callable[[Array], None]  # in place
    normalise: Callable[[Array], Any]  # in place
    # where to begin
    first_slopes: Callable[[Array, Array, Array], Array]
    fit_local_planes: Callable[[Array, Array, Array, Array, int], Array]
    not_flying: Callable[[Array, Array, Array, Array], Array]
    atrous_pass: Callable[[Array, Array, Array, int], Array]
    plane_mismatch: Callable[[Array, Array, Array, int], Number]
    geodesic_fill: Callable[[Array, Array, Array, float, Array], None]  # in place
    fill_background: Callable[[Array, Array], Array]
    fill_occluded: Callable[[Array, Array, Array], Array]
    joint_weighted_median: Callable[[Array, Array, int, float, float, float], Array]
    joint_plane_median: Callable[[Array, Array, Array, int, float], Array]
    fit_slopes: Callable[[Array, Array], Array]
    # the past
    blurred: Callable[[tuple, float], tuple]
    halved: Callable[[tuple], tuple]
    normal_equations: NormalEquations
    search_motion: Callable[[Alignment, Array, tuple, float], Array]
    warp: Callable[
        [Array, Array, Array, Array, Array, Intrinsics], tuple[Array, Array, Array]]
    # of the image in pixels: as the host knows it, or once more by a motion and inverse depth
    flow: Callable[[float, Array, Intrinsics, Array], Number]
    bias_sums: Callable[[Array, Array, Array, Array, NoiseModel], Array]
    bias_field: Callable[[Array, Number], Array]
    exposure_gain: Callable[[Array, Array, Array], Number]
    fuse: Fuse
    # minimisation
    gate_depth_edges: Callable[[Array, Array, float], Array]
    relax_at_curvature: Callable[[Array, Array, float], Array]
    adam: Adam
    irls: Irls
    # results
    describe: Callable[
        [Array, Array, Array, Array, tuple[float, float], Intrinsics, tuple[float, float]],
        tuple[Array, Array, Array, Array]]
    upsample_and_describe: UpsampleAndDescribe


@cache
def numba_kernels() -> Kernels:
    """Return the kernels for a CPU; torch is not imported."""
    from graph_depth_refiner.core import (
        adam_numba,
        atrous_numba,
        downsampling_numba,
        edge_gating_numba,
        flying_numba,
        geodesic_fill_numba,
        guided_upsampling_numba,
        inpainting_numba,
        irls_numba,
        joint_median_numba,
        local_planes_numba,
        noise,
        noise_numba,
        observation_numba,
        odometry,
        odometry_numba,
        output_numba,
        patch_graph,
        patch_graph_numba,
        slope_fit_numba,
        statistics,
        statistics_numba,
        temporal,
        temporal_numba,
        upsampling,
        upsampling_numba,
        warping_numba,
    )

    def renew_graph(before, weights, guide, config):
        changes = patch_graph_numba.band_changes(before, guide)
        return patch_graph.renew_graph(
            patch_graph_numba.build_graph, changes, before, weights, guide, config)

    return Kernels(
        name='fused',
        device='cpu',
        array=_contiguous,
        arrays=lambda *values: [_contiguous(one) for one in values],
        zeros=np.zeros,
        motion=np.asarray,
        noise=lambda model: model,
        numpy=np.asarray,
        pack=lambda arrays, numbers: (arrays, numbers),
        fetch=lambda packed: (list(packed[0]), list(map(float, packed[1]))),
        inverse_depth=observation_numba.inverse_depth,
        weigh=observation_numba.weigh,
        where=np.where,
        either=lambda condition, one, other: one() if condition else other(),
        smaller=min,
        positive_median=statistics_numba.positive_median,
        known_median=statistics.known_median,
        fused_unit=noise.fused_unit,
        known_sigma=noise_numba.known_sigma,
        learn_noise=noise_numba.learn_noise,
        merge_blocks=downsampling_numba.merge_blocks,
        upsample_planes=upsampling_numba.upsample_planes,
        predict_by_color=guided_upsampling_numba.predict_by_color,
        fillable=upsampling_numba.fillable,
        keep_planes=upsampling_numba.keep_planes,
        median3=upsampling.median3,
        build_graph=patch_graph_numba.build_graph,
        band_changes=patch_graph_numba.band_changes,
        renew_graph=renew_graph,
        symmetrise=patch_graph_numba.symmetrise,
        normalise=patch_graph_numba.normalise,
        first_slopes=local_planes_numba.first_slopes,
        fit_local_planes=local_planes_numba.fit_local_planes,
        not_flying=flying_numba.not_flying,
        atrous_pass=atrous_numba.atrous_pass,
        plane_mismatch=atrous_numba.plane_mismatch,
        geodesic_fill=geodesic_fill_numba.geodesic_fill,
        fill_background=inpainting_numba.fill_background,
        fill_occluded=inpainting_numba.fill_occluded,
        joint_weighted_median=joint_median_numba.joint_weighted_median,
        joint_plane_median=joint_median_numba.joint_plane_median,
        fit_slopes=slope_fit_numba.fit_slopes,
        blurred=odometry.blurred,
        halved=odometry.halved,
        normal_equations=odometry_numba.normal_equations,
        search_motion=odometry_numba.search_motion,
        warp=warping_numba.warp,
        flow=lambda flow, motion, intrinsics, d: flow,
        bias_sums=temporal_numba.bias_sums,
        bias_field=temporal.bias_field,
        exposure_gain=temporal_numba.exposure_gain,
        fuse=temporal_numba.fuse,
        gate_depth_edges=edge_gating_numba.gate_depth_edges,
        relax_at_curvature=edge_gating_numba.relax_at_curvature,
        adam=adam_numba,
        irls=irls_numba,
        describe=output_numba.describe,
        upsample_and_describe=output_numba.upsample_and_describe)


@cache
def torch_kernels(device: str) -> Kernels:
    """Return the references on a torch device."""
    import torch

    from graph_depth_refiner.core import (
        adam_torch,
        atrous_torch,
        camera_torch,
        downsampling_torch,
        edge_gating_torch,
        filters_torch,
        flying_torch,
        geodesic_fill_torch,
        guided_upsampling_torch,
        inpainting_torch,
        irls_torch,
        joint_median_torch,
        local_planes_torch,
        noise,
        noise_torch,
        observation,
        odometry_torch,
        output,
        output_torch,
        patch_graph_torch,
        slope_fit_torch,
        statistics_torch,
        temporal_torch,
        transfer_torch,
        upsampling_torch,
        warping_torch,
    )

    def arrays(*values: np.ndarray) -> list[torch.Tensor]:
        return transfer_torch.upload([_contiguous(one) for one in values], device)

    def fetch(packed: transfer_torch.Packed) -> tuple[list[np.ndarray], list[float]]:
        return transfer_torch.unpack(to_numpy(packed.values), packed)

    def to_numpy(values: torch.Tensor) -> np.ndarray:
        return values.cpu().numpy()

    return Kernels(
        name='torch',
        device=device,
        array=lambda values: arrays(values)[0],
        arrays=arrays,
        zeros=lambda shape, kind: torch.zeros(shape, dtype=getattr(torch, kind), device=device),
        motion=lambda matrix: transfer_torch.upload([matrix.astype(np.float64)], device)[0],
        noise=partial(transfer_torch.noise_on, device),
        numpy=to_numpy,
        pack=transfer_torch.pack,
        fetch=fetch,
        inverse_depth=observation.inverse_depth,  # on the host: it is copied after that
        weigh=observation.weigh,
        where=torch.where,
        either=transfer_torch.either,
        smaller=transfer_torch.smaller,
        positive_median=statistics_torch.positive_median,
        known_median=statistics_torch.known_median,
        fused_unit=noise.fused_sigma,
        known_sigma=noise_torch.known_sigma,
        learn_noise=noise_torch.learn_noise,
        merge_blocks=downsampling_torch.merge_blocks,
        upsample_planes=upsampling_torch.upsample_planes,
        predict_by_color=guided_upsampling_torch.predict_by_color,
        fillable=upsampling_torch.fillable,
        keep_planes=upsampling_torch.keep_planes,
        median3=filters_torch.median3,
        build_graph=patch_graph_torch.build_graph,
        band_changes=patch_graph_torch.band_changes,
        renew_graph=patch_graph_torch.renew_graph,
        symmetrise=patch_graph_torch.symmetrise,
        normalise=patch_graph_torch.normalise,
        first_slopes=local_planes_torch.first_slopes,
        fit_local_planes=local_planes_torch.fit_local_planes,
        not_flying=flying_torch.not_flying,
        atrous_pass=atrous_torch.atrous_pass,
        plane_mismatch=atrous_torch.plane_mismatch,
        geodesic_fill=geodesic_fill_torch.geodesic_fill,
        fill_background=inpainting_torch.fill_background,
        fill_occluded=inpainting_torch.fill_occluded,
        joint_weighted_median=joint_median_torch.joint_weighted_median,
        joint_plane_median=joint_median_torch.joint_plane_median,
        fit_slopes=slope_fit_torch.fit_slopes,
        blurred=odometry_torch.blurred,
        halved=odometry_torch.halved,
        normal_equations=odometry_torch.normal_equations,
        search_motion=odometry_torch.search_motion,
        warp=warping_torch.warp,
        flow=partial(camera_torch.flow, statistics_torch.positive_median),
        bias_sums=temporal_torch.bias_sums,
        bias_field=temporal_torch.bias_field,
        exposure_gain=temporal_torch.exposure_gain,
        fuse=temporal_torch.fuse,
        gate_depth_edges=edge_gating_torch.gate_depth_edges,
        relax_at_curvature=edge_gating_torch.relax_at_curvature,
        adam=adam_torch,
        irls=irls_torch,
        describe=output_torch.describe,
        upsample_and_describe=partial(
            output.in_turn, upsampling_torch.upsample_planes, upsampling_torch.keep_planes,
            output_torch.describe))


@cache
def triton_kernels(device: str) -> Kernels:
    """Return the references with what is hot as Triton kernels; without a device: interpreted."""
    from graph_depth_refiner.core import (
        adam_triton,
        atrous_triton,
        camera_torch,
        downsampling_triton,
        edge_gating_triton,
        flying_triton,
        geodesic_fill_triton,
        joint_median_triton,
        local_planes_triton,
        noise_triton,
        odometry_triton,
        output,
        output_triton,
        patch_graph_triton,
        statistics_triton,
        temporal_triton,
        upsampling_torch,
        upsampling_triton,
        warping_triton,
    )
    return torch_kernels(device)._replace(
        name='triton',
        positive_median=statistics_triton.positive_median,
        known_median=statistics_triton.known_median,
        learn_noise=noise_triton.learn_noise,
        known_sigma=noise_triton.known_sigma,
        merge_blocks=downsampling_triton.merge_blocks,
        upsample_planes=upsampling_triton.upsample_planes,
        fillable=upsampling_triton.fillable,
        build_graph=patch_graph_triton.build_graph,
        band_changes=patch_graph_triton.band_changes,
        renew_graph=patch_graph_triton.renew_graph,
        first_slopes=local_planes_triton.first_slopes,
        fit_local_planes=local_planes_triton.fit_local_planes,
        not_flying=flying_triton.not_flying,
        atrous_pass=atrous_triton.atrous_pass,
        plane_mismatch=atrous_triton.plane_mismatch,
        geodesic_fill=geodesic_fill_triton.geodesic_fill,
        joint_plane_median=joint_median_triton.joint_plane_median,
        search_motion=odometry_triton.search_motion,
        warp=warping_triton.warp,
        flow=partial(camera_torch.flow, statistics_triton.positive_median),
        bias_sums=temporal_triton.bias_sums,
        exposure_gain=temporal_triton.exposure_gain,
        fuse=temporal_triton.fuse,
        gate_depth_edges=edge_gating_triton.gate_depth_edges,
        adam=adam_triton,
        describe=output_triton.describe,
        upsample_and_describe=partial(
            output.in_turn, upsampling_triton.upsample_planes, upsampling_torch.keep_planes,
            output_triton.describe))


class Choice(NamedTuple):
    """Which kernels are meant; making them imports numba or torch."""

    backend: str  # fused, torch or triton
    device: str  # cpu or cuda:N


def choose(device: str = 'auto', backend: str = 'auto') -> Choice:
    """Return what a device (auto, cpu, cuda or cuda:N) and a backend stand for here."""
    if not re.fullmatch(r'auto|cpu|cuda(:\d+)?', device):
        raise ValueError(f'device: expected auto, cpu, cuda or cuda:N, got {device!r}')
    RefinerConfig.named('backend').check(backend)
    device = _found(device, backend)
    if backend == 'auto':
        backend = _best(device)
    if backend == 'fused' and device != 'cpu':
        raise ValueError(f'backend: expected torch or triton on {device}, got fused')
    if backend == 'triton' and device == 'cpu' and os.environ.get('TRITON_INTERPRET') != '1':
        raise ValueError('backend: expected fused or torch on cpu, got triton')
    return Choice(backend, device)


def make(choice: Choice, compiled: tuple[str, ...] = ()) -> Kernels:
    """
    Return the chosen kernels; numba or torch is imported when this is first called.

    Those for a CPU are compiled and stored before, as the arguments of the command warm-up say
    (`compile_once.warm_up_arguments`).
    """
    if choice.backend == 'fused':
        compile_once(compiled or warm_up_arguments(RefinerConfig()))
        return numba_kernels()
    return (triton_kernels if choice.backend == 'triton' else torch_kernels)(choice.device)


def instead(choice: Choice, error: Exception) -> Choice | None:
    """
    Return what computes instead after an error, and say so; None if it is no fault of theirs.

    A device that is full or lost is left for the CPU. Where Triton cannot compile, plain torch
    serves on the same device, from now on in this process.
    """
    if choice.device == 'cpu' and choice.backend != 'triton':
        return None
    reason = f'{type(error).__name__}: {" ".join(str(error).split())[:200]}'
    if is_device_failure(error):
        _LOG.warning('%s failed (%s): the CPU computes from now on', choice.device, reason)
        return choose('cpu')
    if choice.backend == 'triton' and is_compile_failure(error):
        _failed.add(choice.device)
        _warn_once(f'Triton cannot compile for {choice.device} ({reason}): plain torch computes, '
                   'which is slower')
        return choice._replace(backend='torch')
    return None


def is_device_failure(error: BaseException) -> bool:
    """Tell whether a device is out of memory or lost; by names, as torch need not be there."""
    return type(error).__name__ in ('OutOfMemoryError', 'AcceleratorError') or (
        isinstance(error, RuntimeError) and any(text in str(error) for text in _DEVICE_FAILURES))


def is_compile_failure(error: BaseException) -> bool:
    """Tell whether Triton, or the compiler of C that it calls, failed, or cannot be imported."""
    return type(error).__module__.partition('.')[0] == 'triton' or isinstance(
        error, (subprocess.CalledProcessError, ImportError)) or 'C compiler' in str(error)


def select(device: str = 'auto', backend: str = 'auto') -> Kernels:
    """Return the kernels for a device and a backend."""
    return make(choose(device, backend))


def _contiguous(values: np.ndarray) -> np.ndarray:
    """
    Return an array that kernels compiled once can take: contiguous and writable.

    Bytes and truth values keep their type, all else becomes float32.
    """
    kept = values.dtype in (np.uint8, np.bool_)
    return np.require(values, values.dtype if kept else np.float32, ('C', 'W'))


def _found(device: str, backend: str) -> str:
    """Return the device itself, and for `auto` a CUDA device if there is one."""
    if device == 'auto' and (
            backend == 'fused' or not any(Path(node).exists() for node in _NODES)
            or find_spec('torch') is None):
        return 'cpu'
    if device == 'cpu':
        return device
    if find_spec('torch') is None:
        raise ValueError(
            f'device: expected auto or cpu, for a GPU needs PyTorch, which is not installed, '
            f'got {device!r}')
    import torch
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    number = int(device.partition(':')[2] or 0) if device != 'auto' else 0
    if number < there:
        return f'cuda:{number}'
    if device == 'auto':
        _warn_once('an NVIDIA device is there, but torch sees no CUDA: the CPU computes')
        return 'cpu'
    raise ValueError(f'device: expected one of {there} CUDA devices, got {device!r}')


def _best(device: str) -> str:
    if device != 'cpu':
        return 'triton' if find_spec('triton') and device not in _failed else 'torch'
    if find_spec('numba'):
        return 'fused'
    if not find_spec('torch'):
        raise ValueError(
            'backend: expected numba, or torch, to be installed, got neither: pip install numba')
    _warn_once('numba is not installed: plain torch on the CPU is about 50 times slower')
    return 'torch'


@cache
def _warn_once(sentence: str) -> None:
    _LOG.warning(sentence)
