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
"""Pictures of depth, normals and errors for people, and panels of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

UNKNOWN = (0, 0, 0)
GOOD, BAD, UNJUDGED = (238, 238, 238), (196, 30, 58), (120, 120, 120)
INK, PAPER = (30, 30, 30), (255, 255, 255)
TITLE_HEIGHT = 22  # px
GAP = 4  # px
TALLEST = 4  # times its width is the most that a picture may be high
SPREAD = (1, 99)  # percentiles of inverse depth that take the ends of the colour scale


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture of a panel with its title."""

    title: str
    pixels: np.ndarray  # H W 3 uint8 RGB


def depth_range(depth: np.ndarray) -> tuple[float, float]:
    """Return the nearest and farthest depth worth a colour."""
    known = depth[np.isfinite(depth) & (depth > 0)]
    if not known.size:
        return 1.0, 2.0
    far, near = np.percentile(1 / known, SPREAD)
    return float(1 / near), float(1 / far)


def depth_colors(depth: np.ndarray, span: tuple[float, float] | None = None) -> np.ndarray:
    """Colour depth by its inverse: near is warm, far is cold, unknown is black."""
    near, far = span or depth_range(depth)
    known = np.isfinite(depth) & (depth > 0)
    inverse = np.zeros(depth.shape)
    np.divide(1.0, depth, out=inverse, where=known)
    level = (inverse - 1 / far) / max(1 / near - 1 / far, 1e-12)
    level = np.rint(np.clip(level, 0, 1) * 255).astype(np.uint8)
    colors = cv2.cvtColor(cv2.applyColorMap(level, cv2.COLORMAP_TURBO), cv2.COLOR_BGR2RGB)
    colors[~known] = UNKNOWN
    return colors  # H W 3


def error_mask(bad: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Show which judged pixels are bad."""
    colors = np.empty((*bad.shape, 3), np.uint8)
    colors[:] = GOOD
    colors[bad] = BAD
    colors[~judged] = UNJUDGED
    return colors  # H W 3


def image_colors(image: np.ndarray) -> np.ndarray:
    """Return any image of a frame as 8 bit RGB."""
    if image.dtype == np.uint16:
        image = (image >> 8).astype(np.uint8)
    elif image.dtype != np.uint8:
        image = np.rint(np.clip(np.nan_to_num(image), 0, 1) * 255).astype(np.uint8)
    return image if image.ndim == 3 else cv2.cvtColor(image, cv2.COLOR_GRAY2RGB)


def panel(rows: Sequence[Sequence[Picture]], width: int) -> np.ndarray:
    """Lay out pictures in rows, each picture `width` pixels wide under its title."""
    strips = [np.hstack([_tile(picture, width) for picture in row]) for row in rows]
    widest = max(strip.shape[1] for strip in strips)
    strips = [
        cv2.copyMakeBorder(s, 0, 0, 0, widest - s.shape[1], cv2.BORDER_CONSTANT, value=PAPER)
        for s in strips]
    return np.vstack(strips)  # H W 3


def png(pixels: np.ndarray) -> bytes:
    """Return RGB pixels as a PNG file."""
    settings = [cv2.IMWRITE_PNG_COMPRESSION, 9]
    done, data = cv2.imencode('.png', cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), settings)
    if not done:
        raise ValueError(f'picture: expected pixels OpenCV can encode, got {pixels.shape}')
    return data.tobytes()


def jpeg(pixels: np.ndarray, quality: int = 85) -> bytes:
    """Return RGB pixels as a JPEG file."""
    settings = [cv2.IMWRITE_JPEG_QUALITY, quality]
    return cv2.imencode('.jpg', cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), settings)[1].tobytes()


def fitted(pixels: np.ndarray, width: int) -> tuple[int, int]:
    """Return the width and height of a picture shown in a column of this width."""
    rows, columns = pixels.shape[:2]
    scale = min(width / columns, TALLEST * width / rows)
    return max(1, round(columns * scale)), max(1, round(rows * scale))


def _tile(picture: Picture, width: int) -> np.ndarray:
    size = fitted(picture.pixels, width)
    smaller = size[0] < picture.pixels.shape[1]
    pixels = cv2.resize(
        picture.pixels, size, interpolation=cv2.INTER_AREA if smaller else cv2.INTER_NEAREST)
    pixels = cv2.copyMakeBorder(
        pixels, 0, 0, 0, width - size[0], cv2.BORDER_CONSTANT, value=PAPER)
    title = np.full((TITLE_HEIGHT, width, 3), PAPER, np.uint8)
    cv2.putText(
        title, picture.title, (3, TITLE_HEIGHT - 7), cv2.FONT_HERSHEY_SIMPLEX, 0.42, INK, 1,
        cv2.LINE_AA)
    return cv2.copyMakeBorder(
        np.vstack([title, pixels]), 0, GAP, 0, GAP, cv2.BORDER_CONSTANT, value=PAPER)
