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
from functools import cache
from importlib.util import find_spec
import logging
from pathlib import Path
import re
from typing import Any, NamedTuple, Protocol, TYPE_CHECKING

import numpy as np

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.jit.compile_once import compile_once, warm_up_arguments
from graph_depth_refiner.core.types import Memory, Terms
from graph_depth_refiner.frame import Intrinsics

if TYPE_CHECKING:
    from graph_depth_refiner.core.noise import NoiseModel

Array = Any  # numpy.ndarray with the kernels for a CPU, else torch.Tensor

_LOG = logging.getLogger(__name__)
# A CUDA device shows as one of these: looking is free, importing torch takes seconds.
_NODES = ('/dev/nvidia0', '/dev/nvidiactl', '/dev/nvhost-gpu', '/dev/dxg')


class Adam(Protocol):
    """ADAM on the energy, with explicit state; planes and memory in the arrays of the kernels."""

    def init(self, x: Array, w: Array, d: Array, m: Array, unit: float, terms: Terms,
             memory: Memory | None = None) -> Any: ...

    def step(self, state: Any, rate: float, slope_rate: float) -> None: ...

    def steps(self, state: Any, rates: list[float], slope_share: float) -> None: ...

    def finite(self, state: Any) -> bool: ...

    def taken(self, state: Any) -> int: ...

    def energy(self, state: Any, x: Array | None = None) -> float: ...

    def planes(self, state: Any) -> Array: ...

    def memory(self, state: Any) -> Memory: ...


class Irls(Protocol):
    """Iteratively re-weighted least squares on the energy, with explicit state."""

    def init(self, x: Array, w: Array, d: Array, m: Array, unit: float, terms: Terms) -> Any: ...

    def step(self, state: Any, inner: int) -> None: ...

    def finite(self, state: Any) -> bool: ...

    def taken(self, state: Any) -> int: ...

    def energy(self, state: Any, x: Array | None = None) -> float: ...

    def planes(self, state: Any) -> Array: ...


class BuildGraph(Protocol):
    """The patch graph, O H W, of a guide, H W or C H W; `rows` rewrites only those of `out`."""

    def __call__(self, guide: Array, config: RefinerConfig, out: Array | None = None,
                 rows: tuple[int, int] | None = None) -> Array: ...


class NormalEquations(Protocol):
    """Sums and shifts of every block of samples of a motion; see `core.odometry`."""

    def __call__(self, x: Array, n: Array, before: Array, d: Array, m: Array, now: Array,
                 stride: int, motion: np.ndarray, gain_bias: np.ndarray,
                 intrinsics: Intrinsics, sigma: float, photometric_sigma: float,
                 block_flow_scale: float) -> tuple[Array, Array]: ...


class Fuse(Protocol):
    """The running mean with the history, its frames, the history, and counts; see `temporal`."""

    def __call__(self, d: Array, m: Array, grey: Array, planes: Array, frames: Array,
                 seen: Array, bias: Array, noise: NoiseModel, flow: float, limit: float,
                 means: float) -> tuple[Array, Array, Array, Array]: ...


class Kernels(NamedTuple):
    """Every stage of a frame in one implementation; arguments as the stages name them."""

    name: str  # fused, torch or compiled
    device: str  # cpu or cuda:N
    array: Callable[[np.ndarray], Array]  # where the stages compute, see `_contiguous`
    numpy: Callable[[Array], np.ndarray]  # back again; waits for the device
    where: Callable[[Array, Array, Array], Array]
    # resolution
    merge_blocks: Callable[[Array, Array, float], tuple[Array, Array]]
    upsample_planes: Callable[[Array, Array, Array, Array, int], Array]
    predict_by_color: Callable[[Array, Array, Array, Array, int, float, float], Array]
    # graph
    build_graph: BuildGraph
    band_changes: Callable[[Array, Array], Array]
    symmetrise: Callable[[Array], None]  # in place
    normalise: Callable[[Array], Any]  # in place
    # where to begin
    first_slopes: Callable[[Array, Array, Array], Array]
    fit_local_planes: Callable[[Array, Array, Array, Array], Array]
    atrous_pass: Callable[[Array, Array, Array, int], Array]
    geodesic_fill: Callable[[Array, Array, Array, float, Array], None]  # in place
    fill_background: Callable[[Array, Array], Array]
    fill_occluded: Callable[[Array, Array, Array], Array]
    joint_weighted_median: Callable[[Array, Array, int, float, float, float], Array]
    joint_plane_median: Callable[[Array, Array, Array, int, float], Array]
    fit_slopes: Callable[[Array, Array], Array]
    # the past
    normal_equations: NormalEquations
    warp: Callable[
        [Array, Array, Array, np.ndarray, Intrinsics], tuple[Array, Array, Array]]
    bias_sums: Callable[[Array, Array, Array, Array, NoiseModel], Array]
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


@cache
def numba_kernels() -> Kernels:
    """Return the kernels for a CPU; torch is not imported."""
    from graph_depth_refiner.core import (
        adam_numba,
        atrous_numba,
        downsampling_numba,
        edge_gating_numba,
        geodesic_fill_numba,
        guided_upsampling_numba,
        inpainting_numba,
        irls_numba,
        joint_median_numba,
        local_planes_numba,
        odometry_numba,
        output_numba,
        patch_graph_numba,
        slope_fit_numba,
        temporal_numba,
        upsampling_numba,
        warping_numba,
    )
    return Kernels(
        name='fused',
        device='cpu',
        array=_contiguous,
        numpy=np.asarray,
        where=np.where,
        merge_blocks=downsampling_numba.merge_blocks,
        upsample_planes=upsampling_numba.upsample_planes,
        predict_by_color=guided_upsampling_numba.predict_by_color,
        build_graph=patch_graph_numba.build_graph,
        band_changes=patch_graph_numba.band_changes,
        symmetrise=patch_graph_numba.symmetrise,
        normalise=patch_graph_numba.normalise,
        first_slopes=local_planes_numba.first_slopes,
        fit_local_planes=local_planes_numba.fit_local_planes,
        atrous_pass=atrous_numba.atrous_pass,
        geodesic_fill=geodesic_fill_numba.geodesic_fill,
        fill_background=inpainting_numba.fill_background,
        fill_occluded=inpainting_numba.fill_occluded,
        joint_weighted_median=joint_median_numba.joint_weighted_median,
        joint_plane_median=joint_median_numba.joint_plane_median,
        fit_slopes=slope_fit_numba.fit_slopes,
        normal_equations=odometry_numba.normal_equations,
        warp=warping_numba.warp,
        bias_sums=temporal_numba.bias_sums,
        fuse=temporal_numba.fuse,
        gate_depth_edges=edge_gating_numba.gate_depth_edges,
        relax_at_curvature=edge_gating_numba.relax_at_curvature,
        adam=adam_numba,
        irls=irls_numba,
        describe=output_numba.describe)


@cache
def torch_kernels(device: str, compiled: bool = False) -> Kernels:
    """Return the references on a torch device; with `compiled` ADAM's step is compiled."""
    import torch

    from graph_depth_refiner.core import (
        adam_compiled,
        adam_torch,
        atrous_torch,
        downsampling_torch,
        edge_gating_torch,
        geodesic_fill_torch,
        guided_upsampling_torch,
        inpainting_torch,
        irls_torch,
        joint_median_torch,
        local_planes_torch,
        odometry_torch,
        output_torch,
        patch_graph_torch,
        slope_fit_torch,
        temporal_torch,
        upsampling_torch,
        warping_torch,
    )

    def array(values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(_contiguous(values)).to(device)

    def to_numpy(values: torch.Tensor) -> np.ndarray:
        return values.cpu().numpy()

    return Kernels(
        name='compiled' if compiled else 'torch',
        device=device,
        array=array,
        numpy=to_numpy,
        where=torch.where,
        merge_blocks=downsampling_torch.merge_blocks,
        upsample_planes=upsampling_torch.upsample_planes,
        predict_by_color=guided_upsampling_torch.predict_by_color,
        build_graph=patch_graph_torch.build_graph,
        band_changes=patch_graph_torch.band_changes,
        symmetrise=patch_graph_torch.symmetrise,
        normalise=patch_graph_torch.normalise,
        first_slopes=local_planes_torch.first_slopes,
        fit_local_planes=local_planes_torch.fit_local_planes,
        atrous_pass=atrous_torch.atrous_pass,
        geodesic_fill=geodesic_fill_torch.geodesic_fill,
        fill_background=inpainting_torch.fill_background,
        fill_occluded=inpainting_torch.fill_occluded,
        joint_weighted_median=joint_median_torch.joint_weighted_median,
        joint_plane_median=joint_median_torch.joint_plane_median,
        fit_slopes=slope_fit_torch.fit_slopes,
        normal_equations=odometry_torch.normal_equations,
        warp=warping_torch.warp,
        bias_sums=temporal_torch.bias_sums,
        fuse=temporal_torch.fuse,
        gate_depth_edges=edge_gating_torch.gate_depth_edges,
        relax_at_curvature=edge_gating_torch.relax_at_curvature,
        adam=adam_compiled if compiled else adam_torch,
        irls=irls_torch,
        describe=output_torch.describe)


class Choice(NamedTuple):
    """Which kernels are meant; making them imports numba or torch."""

    backend: str  # fused, torch or compiled
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
        raise ValueError(f'backend: expected torch or compiled on {device}, got fused')
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
    return torch_kernels(choice.device, choice.backend == 'compiled')


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
        return 'compiled' if find_spec('triton') else 'torch'
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
