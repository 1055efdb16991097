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
SHA-256 of all results over presets, sizes and solvers, to move code without moving results.

  scripts/run python test/byte_guard.py FILE            writes FILE, or compares with it

Kernels round as the processor at hand lets them, so the hashes of one machine mean nothing on
another: they are recorded before a change and compared after it, and are not kept here.
"""

from __future__ import annotations

import argparse
import hashlib
from itertools import product
import json
from pathlib import Path
import sys

import numpy as np

try:
    from graph_depth_refiner import DepthRefiner, Frame, Intrinsics, preset
except ImportError:  # before there was a public API
    from graph_depth_refiner.config import preset
    from graph_depth_refiner.frame import Frame, Intrinsics
    from graph_depth_refiner.refiner import DepthRefiner

PRESETS = ('realtime', 'stereo', 'paper')
SOLVERS = ('adam', 'irls')
# one pixel, odd sides, a plain size, and one that is solved at half its resolution
SIZES = {'fused': ((1, 1), (33, 5), (53, 37), (160, 120), (403, 301)),
         'torch': ((1, 1), (33, 5), (53, 37), (403, 301))}
FRAMES = 2


def frames(width: int, height: int) -> list[Frame]:
    """Return a noisy slanted wall behind a ball that comes nearer, with a hole."""
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    found = []
    for k in range(FRAMES):
        rng = np.random.default_rng(k)
        ball = np.hypot(x - 0.7 * width, y - 0.6 * height) < 0.2 * height
        inverse = 0.5 + 0.3 * (x + y) / (width + height) + 0.005 * k + 0.3 * ball
        depth = (rng.normal(1, 0.005, x.shape) / inverse).astype(np.float32)
        depth[height // 3:height // 2, width // 3:width // 2] = 0
        shade = 80 + 60 * np.sin((x + k) / 7) + 40 * ball
        image = (shade[..., None] * np.ones(3)).astype(np.uint8)
        confidence = rng.random(depth.shape).astype(np.float32)
        camera = Intrinsics(width, width, width / 2, height / 2)
        found.append(Frame(image, depth, camera, confidence, 1 + k / 30))
    return found


def digest(name: str, size: tuple[int, int], solver: str, backend: str) -> str:
    """Return the hash of everything that comes out of a short video."""
    total = hashlib.sha256()
    refiner = DepthRefiner(
        preset(name, iterations=6, cg_iterations=3, solver=solver, backend=backend), device='cpu')
    for frame in frames(*size):
        refined = refiner.refine(frame)
        for array in (refined.depth, refined.normals, refined.confidence, refined.provenance):
            total.update(array.tobytes())
        total.update(repr((refined.status, refined.iterations)).encode())
    return total.hexdigest()


def digests(backends: list[str]) -> dict[str, str]:
    """Return the hash of every case by its name."""
    return {
        f'{backend} {name} {size[0]}x{size[1]} {solver}': digest(name, size, solver, backend)
        for backend in backends
        for name, size, solver in product(PRESETS, SIZES[backend], SOLVERS)}


def main() -> int:
    """Write the hashes, or name the cases that differ."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('file', type=Path)
    parser.add_argument('--backend', choices=list(SIZES), action='append')
    args = parser.parse_args()
    now = digests(args.backend or list(SIZES))
    if not args.file.exists():
        args.file.write_text(json.dumps(now, indent=1) + '\n')
        print(f'{len(now)} hashes written')
        return 0
    before = json.loads(args.file.read_text())
    changed = [name for name in now if before.get(name) != now[name]]
    print('\n'.join([*changed, f'{len(now) - len(changed)} of {len(now)} are the same']))
    return 1 if changed else 0


if __name__ == '__main__':
    sys.exit(main())
