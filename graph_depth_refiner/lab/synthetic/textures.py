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
"""Procedural, tileable textures for the synthetic stream, with their mip pyramid."""

from __future__ import annotations

import cv2
import numpy as np

SIDE = 512  # texels of a tile
TEXEL = 0.005  # metres
LEVELS = 5
WOODEN, BRICKS, TILES, STRIPES, PLASTER, SHAPES, CARPET = range(7)


class Atlas:
    """All textures of a scene, stacked into one image per mip level."""

    def __init__(self, textures: list[np.ndarray]) -> None:
        """Build the pyramid; a texture is SIDE SIDE 3 uint8."""
        self._levels = []
        for level in range(LEVELS):
            side = SIDE >> level
            # one texel of border on each side lets bilinear lookup wrap around
            self._levels.append(np.concatenate([
                cv2.copyMakeBorder(
                    cv2.resize(one, (side, side), interpolation=cv2.INTER_AREA),
                    1, 1, 1, 1, cv2.BORDER_WRAP)
                for one in textures]))  # T*(side+2) side+2 3

    def sample(self, texture: np.ndarray, u: np.ndarray, v: np.ndarray,
               footprint: np.ndarray) -> np.ndarray:
        """Return H W 3 uint8 colours at (u, v) metres; footprint is metres per pixel."""
        level = np.log2(footprint * np.float32(1 / TEXEL) + np.float32(1e-6))
        level = np.clip(np.rint(level), 0, LEVELS - 1).astype(np.uint8)  # H W
        color = np.zeros((*u.shape, 3), np.uint8)
        for index, stack in enumerate(self._levels):
            here = level == index
            if not here.any():
                continue
            side = SIDE >> index
            scale = np.float32(1 / (TEXEL * 2 ** index))
            column = np.mod(u * scale - np.float32(0.5), side) + 1
            row = np.mod(v * scale - np.float32(0.5), side) + 1 + texture * np.float32(side + 2)
            looked_up = cv2.remap(stack, column, row, cv2.INTER_LINEAR)
            np.copyto(color, looked_up, where=here[..., None])
        return color


def make_textures(kinds: list[int], rng: np.random.Generator) -> list[np.ndarray]:
    """Return one random texture of each kind, SIDE SIDE 3 uint8, tileable."""
    grain = 1 + 0.10 * _noise(rng, 1.0) + 0.10 * _noise(rng, 2.2)  # each takes another piece
    textures = []
    for kind in kinds:
        pattern = _PATTERNS[kind](rng).astype(np.float32)  # SIDE SIDE in about [0, 1]
        base, accent = _colors(rng)
        mixed = base + pattern[..., None] * (accent - base)
        mixed *= np.roll(grain, rng.integers(0, SIDE, 2), (0, 1))[..., None]
        textures.append(np.clip(mixed * 255, 8, 247).astype(np.uint8))
    return textures


def _colors(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    hue = rng.uniform(0.7, 1.3, 3)
    base = np.clip(rng.uniform(0.3, 0.75) * hue / hue.mean(), 0, 0.9)
    accent = np.clip(base * rng.choice([0.55, 0.7, 1.3]) * rng.uniform(0.9, 1.1, 3), 0, 0.95)
    return base.astype(np.float32), accent.astype(np.float32)


def _noise(rng: np.random.Generator, slope: float) -> np.ndarray:
    """Return tileable noise with a 1/f^slope amplitude spectrum, unit deviation."""
    frequency = np.hypot(np.fft.fftfreq(SIDE)[:, None], np.fft.rfftfreq(SIDE)[None])
    frequency[0, 0] = np.inf
    spectrum = np.fft.rfft2(rng.standard_normal((SIDE, SIDE), dtype=np.float32))
    noise = np.fft.irfft2(spectrum * frequency ** -slope, (SIDE, SIDE))
    return (noise / noise.std()).astype(np.float32)


def _grid() -> tuple[np.ndarray, np.ndarray]:
    return np.meshgrid(np.arange(SIDE), np.arange(SIDE))


def _wooden(rng: np.random.Generator) -> np.ndarray:
    _, y = _grid()
    plank = SIDE // int(rng.choice([4, 8]))
    shade = rng.uniform(0, 1, SIDE // plank)[y // plank]
    rings = np.sin(12 * np.pi * y / plank + 2.5 * _noise(rng, 2.0))
    joint = (y % plank < 3).astype(np.float32)
    return 0.5 * shade + 0.2 * rings + joint


def _bricks(rng: np.random.Generator) -> np.ndarray:
    x, y = _grid()
    tall = SIDE // int(rng.choice([8, 16]))
    row = y // tall
    shifted = (x + (row % 2) * tall) % SIDE
    column = shifted // (2 * tall)
    shade = rng.uniform(0, 1, (SIDE // tall, SIDE // (2 * tall)))[row, column]
    joint = (y % tall < 3) | (shifted % (2 * tall) < 3)
    return np.where(joint, 1.3, 0.6 * shade)


def _tiles(rng: np.random.Generator) -> np.ndarray:
    x, y = _grid()
    side = SIDE // int(rng.choice([4, 8]))
    checker = ((x // side + y // side) % 2) * rng.uniform(0.3, 0.8)
    joint = (x % side < 3) | (y % side < 3)
    return np.where(joint, 1.2, checker)


def _stripes(rng: np.random.Generator) -> np.ndarray:
    x, _ = _grid()
    count = int(rng.choice([8, 12, 20]))
    return 0.5 + 0.5 * np.sign(np.sin(2 * np.pi * count * x / SIDE)) * rng.uniform(0.3, 0.8)


def _plaster(rng: np.random.Generator) -> np.ndarray:
    return 0.25 * _noise(rng, 1.5)


def _shapes(rng: np.random.Generator) -> np.ndarray:
    """Return overlapping discs and bars, the kind of clutter a poster or a rug shows."""
    pattern = np.zeros((SIDE, SIDE), np.float32)
    for _ in range(40):
        x, y = rng.integers(40, SIDE - 40, 2)
        shade = float(rng.uniform(0, 1))
        if rng.random() < 0.5:
            cv2.circle(pattern, (int(x), int(y)), int(rng.integers(8, 38)), shade, -1)
        else:
            half = rng.integers(6, 38, 2)
            cv2.rectangle(pattern, (int(x - half[0]), int(y - half[1])),
                          (int(x + half[0]), int(y + half[1])), shade, -1)
    return pattern


def _carpet(rng: np.random.Generator) -> np.ndarray:
    return 0.3 * _noise(rng, 0.8) + 0.15 * _noise(rng, 2.0)


_PATTERNS = {
    WOODEN: _wooden, BRICKS: _bricks, TILES: _tiles, STRIPES: _stripes,
    PLASTER: _plaster, SHAPES: _shapes, CARPET: _carpet,
}
