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
"""The demo in the Rerun viewer: images, depth, normals, clouds, times and history."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graph_depth_refiner.files.exports import check_place
from graph_depth_refiner.lab.demo.clouds import cloud
from graph_depth_refiner.lab.demo.score import Observation
from graph_depth_refiner.messages.outgoing import normal_colors

VIEWER = 'viewer'  # in place of a file
NEEDED = 'rerun: expected the package rerun-sdk, got none (pip install rerun-sdk)'


class RerunLog:
    """Sends frames to a viewer that it opens, or to an .rrd file."""

    def __init__(self, place: str) -> None:
        """Open the viewer (place is 'viewer') or the file."""
        self._rerun = _rerun()
        self._stream = self._rerun.RecordingStream('graph_depth_refiner')
        if place == VIEWER:
            self._stream.spawn()
        else:
            self._stream.save(place)
        self._stream.log('/', self._rerun.ViewCoordinates.RDF, static=True)

    def frame(self, seconds: float, seen: Observation) -> None:
        """Send one frame: image, depths, normals as colours, clouds."""
        self._stream.set_time('stamp', timestamp=seconds)
        rerun, camera = self._rerun, seen.intrinsics
        height, width = seen.true_depth.shape
        self._log('camera', rerun.Pinhole(
            focal_length=(camera.fx, camera.fy), principal_point=(camera.cx, camera.cy),
            width=width, height=height))
        self._log('camera/image', rerun.Image(seen.image))
        for method, depth in seen.depths.items():
            known = np.where(np.isfinite(depth), depth, 0).astype(np.float32)
            self._log(f'{method}/depth', rerun.DepthImage(known, meter=1.0))
            points = cloud(depth, seen.image, camera)
            self._log(f'{method}/cloud', rerun.Points3D(
                points['xyz'], colors=points['rgba'], radii=rerun.Radius.ui_points(1.5)))
        for method, normals in seen.normals.items():
            self._log(f'{method}/normals', rerun.Image(normal_colors(normals)))

    def figures(self, seconds: float, diagnostics: Mapping[str, str]) -> None:
        """Send every number that the node tells about itself, stage times and history included."""
        self._stream.set_time('stamp', timestamp=seconds)
        for name, text in diagnostics.items():
            try:
                self._log(f'node/{name}', self._rerun.Scalars(float(text)))
            except ValueError:
                continue  # words

    def close(self) -> None:
        """Write what is left."""
        self._stream.flush()
        self._stream.disconnect()

    def _log(self, name: str, what: Any) -> None:
        self._stream.log(self._rerun.new_entity_path(name.split('/')), what)


def check(place: str) -> None:
    """Refuse at once what would fail later: no package, or a file that cannot be written."""
    _rerun()
    if place != VIEWER:
        check_place('rerun', Path(place))


def _rerun() -> Any:
    try:
        import rerun
    except ImportError:
        raise ValueError(NEEDED) from None
    return rerun
