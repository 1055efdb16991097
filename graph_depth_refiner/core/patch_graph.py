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
The patch-similarity graph of the image: its edges, its weights, and its cache.

Edges lead to the pixels of a window, weighted by how alike the patches around both ends are
(non-local means: Buades et al., CVPR 2005). A graph is an array O H W, one offset after the
other. Where the image has not changed beyond sensor noise the graph of the frame before is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TYPE_CHECKING

import numpy as np

from graph_depth_refiner.config import RefinerConfig

if TYPE_CHECKING:
    from graph_depth_refiner.core.kernels import BuildGraph, Kernels

# A weight exp(-t) with t beyond this, 1e-10 of the largest there can be, is 0: nobody would
# notice it but the processor, which is slow at numbers as small as its square.
FAINT = 23.0
# The graph is kept or rebuilt by bands of rows, which are looked at tile by tile.
BAND = 16  # rows that are kept or rebuilt together
TILE = 32  # columns at least, unless the image is narrower, over which a change must show
# share of changed bands beyond which rebuilding all of them is quicker
REBUILD_SHARE = 0.5


def offsets(window: int) -> list[tuple[int, int]]:
    """Return the steps (dy, dx) to the neighbours, row-major; the mirror of o is -1 - o."""
    reach = range(-(window // 2), window // 2 + 1)
    return [(dy, dx) for dy in reach for dx in reach if (dy, dx) != (0, 0)]


def window_of(edges: int) -> int:
    """Return the side of the window that has so many neighbours."""
    return round((edges + 1) ** 0.5)


@dataclass(eq=False)
class CachedGraph:
    """A graph and the guide it is built from, bit for bit, in arrays of the kernels."""

    guide: Any  # H W or 3 H W
    weights: Any  # O H W; None: nothing is computed over it
    settings: tuple
    hit_rate: Any = 0.0  # a number


def update_graph(k: Kernels, cached: CachedGraph | None, guide: Any,
                 config: RefinerConfig) -> CachedGraph:
    """
    Return the graph of a guide, rebuilding only bands (and their halo) that changed.

    Without a step of the solver, and with planes fitted around every pixel, it has no weights.
    """
    settings = _settings(config)
    if config.planes.start and not takes_steps(config):
        return CachedGraph(guide, None, settings)
    if cached is None or cached.weights is None or cached.guide.shape != guide.shape \
            or cached.settings != settings:
        return CachedGraph(guide, k.build_graph(guide, config), settings)
    guide, weights, hit_rate = k.renew_graph(cached.guide, cached.weights, guide, config)
    return CachedGraph(guide, weights, settings, hit_rate)


def takes_steps(config: RefinerConfig) -> bool:
    """Tell whether the solver takes any step."""
    return config.solver.mode == 'converged' or config.solver.iterations > 0


def renew_graph(build: BuildGraph, changes: np.ndarray, before: np.ndarray, weights: np.ndarray,
                guide: np.ndarray, config: RefinerConfig
                ) -> tuple[np.ndarray, np.ndarray, float]:
    """
    Return the guide that a graph is now of, its weights, and the share of it that was kept.

    The weights, O H W, of the guide before are written over where that has changed; `changes`
    are those of bands of rows.
    """
    changed = changes > config.graph.tolerance
    if not changed.any():
        return before, weights, 1.0
    if changed.mean() > REBUILD_SHARE:
        return guide, build(guide, config, out=weights), 0.0
    height = guide.shape[-2]
    halo = config.graph.window // 2 + config.graph.patch // 2
    mixed = before + 0
    stale = np.zeros(height, bool)
    for band in np.flatnonzero(changed).tolist():
        first, last = band * BAND, min(height, (band + 1) * BAND)
        mixed[..., first:last, :] = guide[..., first:last, :]
        stale[max(0, first - halo):last + halo] = True
    for first, last in _runs(stale):
        build(mixed, config, out=weights, rows=(first, last))
    return mixed, weights, 1.0 - float(stale.mean())


def _settings(config: RefinerConfig) -> tuple:
    return tuple(config.value(name) for name in (
        'graph.window', 'graph.patch', 'graph.neighbours', 'graph.sigma_intensity',
        'graph.sigma_space', 'graph.normalise'))


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """Return the first and past-last index of every run of true flags."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist()))
