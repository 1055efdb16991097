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
"""The CPU serves while a GPU compiles its kernels for images of a size that it has not seen."""

from __future__ import annotations

from dataclasses import replace
from threading import Thread

from graph_depth_refiner.config import RefinerConfig
from graph_depth_refiner.refiner import DepthRefiner
from graph_depth_refiner.ros.shedding import STAGES


def warm_up_all(config: RefinerConfig, device: str, shape: tuple[int, int]) -> None:
    """Compile what frames of a shape (H, W) need at all stages of shedding."""
    for staged in dict.fromkeys(stage.apply(config, shape) for stage in STAGES):
        DepthRefiner(staged, device).warm_up(shape)


class Preparation:
    """Which sizes of images a device is prepared for, under which configuration."""

    def __init__(self) -> None:
        """Know none."""
        self._threads: dict[tuple, Thread] = {}
        self._substitute: DepthRefiner | None = None

    def refiner(self, wanted: DepthRefiner, shape: tuple[int, int], config: RefinerConfig
                ) -> DepthRefiner:
        """Return the refiner for frames of a shape: the wanted one, or until it is ready a CPU."""
        if wanted.device == 'cpu':
            return wanted
        key = (wanted.device, shape, config)
        if key not in self._threads:
            self._threads[key] = Thread(
                target=warm_up_all, args=(config, wanted.device, shape), daemon=True)
            self._threads[key].start()
        if not self._threads[key].is_alive():
            self._substitute = None
            return wanted
        self._substitute = self._substitute or DepthRefiner(
            replace(config, backend='auto'), 'cpu')
        return self._substitute
