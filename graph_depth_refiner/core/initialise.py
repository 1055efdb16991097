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
"""The planes that the minimisation begins with, and the graph that suits them."""

from __future__ import annotations

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.core.downsampling import Level
from graph_depth_refiner.core.kernels import Array, Kernels
from graph_depth_refiner.core.local_planes import fit_planes, fit_weight, WIDTH


def initialise(k: Kernels, level: Level, weights: Array | None, config: RefinerConfig) -> Array:
    """
    Return planes, 3 H W, through the inverse depth of a level.

    By the configuration they are fitted around every pixel, or their slopes are fitted over
    the graph, or they face the camera, as in the paper.
    """
    if config.planes.start:
        sigma = level.sigma * (config.planes.width / WIDTH)
        return fit_planes(k, level.d, fit_weight(k, level), sigma)
    planes = k.zeros((3, *level.d.shape), 'float32')
    planes[0] = level.d
    if config.planes.slopes or config.edges.passes or config.energy.reg_curved:
        planes[1:] = k.fit_slopes(level.d, weights)
    return planes


def gate_edges(k: Kernels, weights: Array | None, planes: Array, level: Level,
               config: RefinerConfig) -> tuple[Array | None, Array]:
    """
    Return the graph without edges across depth jumps, O H W, and the planes that go with it.

    The graph that comes in stays as it is; None is none.
    """
    if weights is None:
        return None, planes
    gated, sigma = weights, config.edges.sigma * level.fused_unit
    for _ in range(config.edges.passes):
        gated = k.gate_depth_edges(weights, planes, sigma)
        if not config.planes.start:
            planes[1:] = k.fit_slopes(planes[0], gated)
    if config.edges.passes and config.graph.normalise and not config.planes.start:
        k.normalise(gated)
    if config.graph.symmetric:
        gated = weights + 0 if gated is weights else gated  # a copy in numpy and torch alike
        k.symmetrise(gated)
    if config.energy.reg_curved:
        gated = k.relax_at_curvature(gated, planes, config.energy.reg_curved * level.fused_unit)
    return gated, planes
