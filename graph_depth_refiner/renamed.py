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
"""The flat names that tunables had in version 0.1: taken in this release, gone with this file."""

from __future__ import annotations

from collections.abc import Container
import logging
from typing import Any

RENAMED = {
    # refinement
    'min_depth': 'depth.min',
    'max_depth': 'depth.max',
    'least_confidence': 'cleaning.least_confidence',
    'speckle_area': 'cleaning.speckle_area',
    'speckle_step': 'cleaning.speckle_step',
    'vote': 'cleaning.joint_median',
    'vote_sigma': 'cleaning.joint_median_sigma',
    'fill': 'holes.method',
    'graph_window': 'graph.window',
    'graph_patch': 'graph.patch',
    'graph_neighbours': 'graph.neighbours',
    'graph_sigma_intensity': 'graph.sigma_intensity',
    'graph_sigma_space': 'graph.sigma_space',
    'graph_color': 'graph.color',
    'graph_normalise': 'graph.normalise',
    'graph_symmetric': 'graph.symmetric',
    'graph_tolerance': 'graph.tolerance',
    'plane_start': 'planes.start',
    'plane_slopes': 'planes.slopes',
    'final_median': 'planes.final_median',
    'temporal': 'temporal.enabled',
    'evidence_limit': 'temporal.evidence_limit',
    'motion': 'temporal.motion',
    'depth_aware': 'edges.passes',
    'depth_sigma': 'edges.sigma',
    'regulariser': 'energy.regulariser',
    'reg_lambda': 'energy.reg_lambda',
    'reg_lambda_coarse': 'energy.reg_lambda_coarse',
    'reg_alpha': 'energy.reg_alpha',
    'reg_curved': 'energy.reg_curved',
    'solver': 'solver.method',
    'mode': 'solver.mode',
    'iterations': 'solver.iterations',
    'max_iterations': 'solver.max_iterations',
    'tolerance': 'solver.tolerance',
    'cg_iterations': 'solver.cg_iterations',
    'levels': 'solver.levels',
    'level_ratio': 'solver.level_ratio',
    'learning_rate': 'solver.learning_rate',
    'slope_rate': 'solver.slope_rate',
    'rate_decay': 'solver.rate_decay',
    'time_budget_ms': 'solver.time_budget_ms',
    'solve_scale': 'solver.scale',
    # node
    'depth_transport': 'depth_image_transport',
    'exact_sync': 'approximate_sync',
    'slop': 'approximate_sync_tolerance_seconds',
    'confidence_preset': 'confidence.preset',
    'confidence_scale': 'confidence.scale',
    'confidence_polarity': 'confidence.polarity',
    'confidence_threshold': 'confidence.threshold',
}
VALUES = {('backend', 'compiled'): 'triton'}  # of texts that are called otherwise now
OPPOSITE = {'exact_sync'}  # of what the new name says

_LOG = logging.getLogger(__name__)
_warned: set[str] = set()


def new_name(name: str, known: Container[str]) -> str:
    """Return the name of a tunable among those known today; warn once of each old name."""
    new = RENAMED.get(name, name)
    if name in known or new not in known:
        return name
    if name not in _warned:
        _warned.add(name)
        opposite = ', its opposite' if name in OPPOSITE else ''
        _LOG.warning('%s: now called %s%s; the next release does not know the old name',
                     name, new, opposite)
    return new


def new_text(name: str, value: Any) -> Any:
    """Return what a text of a tunable is called today; warn once of each old one."""
    new = VALUES.get((name, value), value) if isinstance(value, str) else value
    if new is not value and f'{name}={value}' not in _warned:
        _warned.add(f'{name}={value}')
        _LOG.warning('%s: %s is now called %s; the next release does not know the old name',
                     name, value, new)
    return new


def new_value(name: str, value: Any) -> Any:
    """Return what a value means under the new name."""
    return not value if name in OPPOSITE and isinstance(value, bool) else value
