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
"""What goes wrong in a depth camera, one function a fault; all of them seeded by the caller."""

from __future__ import annotations

import cv2
import numpy as np

from graph_depth_refiner.frame import Intrinsics

JUMP = 0.05  # relative depth difference of neighbours at which a pixel sees two surfaces
_CROSS = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))


def window_noise(shape: tuple[int, int], window: tuple[float, float],
                 rng: np.random.Generator) -> np.ndarray:
    """
    Return noise of unit deviation, H W, that neighbours share within a window.

    A block matcher averages the noise of its window (width, height, in pixels), so that the
    autocorrelation falls about linearly to zero over the window's side. The second, small window
    stands for the matcher's own smoothing.
    """
    noise = rng.standard_normal(shape, dtype=np.float32)
    noise = cv2.blur(noise, _odd(window))
    noise = cv2.blur(noise, _odd((window[0] / 4, window[1] / 4)))
    return noise / max(float(noise.std()), 1e-6)


def smooth_field(size: tuple[int, int], cell: float, seed: tuple[int, ...]) -> np.ndarray:
    """Return smooth noise of unit deviation, H W; cell is its length in pixels."""
    grid = _grid(size, cell)
    state = np.random.default_rng(seed).standard_normal(grid[::-1], dtype=np.float32)
    return _enlarged(state, size)


def drifting_field(size: tuple[int, int], cell: float, seed: tuple[int, ...], index: int,
                   knot: int) -> np.ndarray:
    """Return smooth noise of unit deviation, H W, that is another one after `knot` frames."""
    return _enlarged(drifting(_grid(size, cell)[::-1], seed, index, knot), size)


def drifting(shape: tuple[int, ...], seed: tuple[int, ...], index: int,
             knot: int) -> np.ndarray:
    """Return standard normal numbers that are others after `knot` frames, as float32."""
    number, part = divmod(index, knot)
    states = [np.random.default_rng((*seed, n)).standard_normal(shape, dtype=np.float32)
              for n in (number, number + 1)]
    angle = 0.5 * np.pi * part / knot
    return (np.cos(angle) * states[0] + np.sin(angle) * states[1]).astype(np.float32)


def incidence_growth(facing: np.ndarray) -> np.ndarray:
    """
    Return the factor by which noise grows with the angle of incidence, H W, at most 4.

    Nguyen, Izadi and Lovell (3DIMPVT 2012) add 0.0001 / sqrt(z) t^2 / (pi/2 - t)^2 metres to
    0.0012 + 0.0019 (z - 0.4)^2 for an angle t; the ratio is that at z = 1.5 m.
    """
    angle = np.arccos(np.clip(-facing, 0, 1))
    steep = angle / np.maximum(np.float32(np.pi / 2) - angle, np.float32(1e-2))
    return np.minimum(1 + np.float32(0.023) * steep * steep, np.float32(4))


def jitter_edges(values: np.ndarray, deviation: float, window: tuple[float, float],
                 rng: np.random.Generator, mix: bool) -> np.ndarray:
    """
    Take each value from a place some pixels beside, H W.

    The lateral noise of Nguyen et al. (0.8 px for the Kinect) and the pixel shifts of Barron and
    Malik (CVPR 2013), which Handa et al. (ICRA 2014) took over: depth edges become ragged and
    slopes noisy. Neighbours within the window move together. With `mix` a pixel between two
    surfaces takes a value between theirs, else one of them.
    """
    shape = values.shape
    y, x = np.indices(shape, np.float32)
    by = [np.float32(deviation) * window_noise(shape, window, rng) for _ in range(2)]
    return cv2.remap(values, x + by[0], y + by[1],
                     cv2.INTER_LINEAR if mix else cv2.INTER_NEAREST,
                     borderMode=cv2.BORDER_REPLICATE)


def shadows(disparity: np.ndarray) -> np.ndarray:
    """
    Return where the second camera or the projector, to the right, does not see, H W bool.

    A pixel at column x is at x - disparity in the other view; it is hidden when a pixel to its
    right comes to lie at or left of that, and outside when it is beyond the left border.
    """
    other = np.arange(disparity.shape[1], dtype=np.float32) - disparity
    leftmost = np.minimum.accumulate(other[:, ::-1], axis=1)[:, ::-1]
    hidden = other < 0
    hidden[:, :-1] |= other[:, :-1] >= leftmost[:, 1:]
    return hidden


def flying_pixels(depth: np.ndarray, share: float,
                  rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return where pixels mix two surfaces, and the depth with them mixed, H W."""
    near, far = cv2.erode(depth, _CROSS), cv2.dilate(depth, _CROSS)
    flying = (far - near > JUMP * depth) & (
        rng.random(depth.shape, dtype=np.float32) < share)
    part = rng.random(depth.shape, dtype=np.float32)
    return flying, np.where(flying, near + part * (far - near), depth)


def returned_light(reflectance: np.ndarray, facing: np.ndarray, depth: np.ndarray,
                   shiny: np.ndarray) -> np.ndarray:
    """
    Return what comes back of the sensor's own light, H W: reflectance cosine / depth^2.

    A shiny surface sends a hundredth of it back, but all where the sensor looks straight at it.
    """
    cosine = np.maximum(-facing, 0)
    away = shiny & (cosine < 0.98)
    return reflectance * cosine / (depth * depth) * np.where(
        away, np.float32(0.01), np.float32(1))


def local_texture(grey: np.ndarray, window: tuple[float, float]) -> np.ndarray:
    """Return the deviation of an image within a window, H W: what a matcher holds on to."""
    side = _odd(window)
    mean = cv2.blur(grey, side)
    return np.sqrt(np.maximum(cv2.blur(grey * grey, side) - mean * mean, 0))


def multipath(depth: np.ndarray, normals: np.ndarray, reflectance: np.ndarray,
              intrinsics: Intrinsics) -> np.ndarray:
    """
    Return by how much light over a second surface lengthens the distance, H W metres.

    One bounce: every pixel p gets, besides its own light, what 16 others q around it throw at it,
    in proportion to the cosines at both ends (form factor) and to their reflectance, over a path
    that is (|q| + |pq| - |p|) / 2 longer. Only concave places see each other: corners become
    round and too far by centimetres (Foix, Alenya and Torras, IEEE Sensors Journal 2011).
    """
    width, height = depth.shape[1], depth.shape[0]
    size = (max(8, width // 4), max(8, height // 4))
    z, grey = (cv2.resize(one, size, interpolation=cv2.INTER_NEAREST)
               for one in (depth, reflectance))
    n = cv2.resize(np.nan_to_num(normals), size, interpolation=cv2.INTER_NEAREST)
    y, x = np.indices(z.shape, np.float32)
    x = (x * np.float32(width / size[0]) - np.float32(intrinsics.cx)) / np.float32(intrinsics.fx)
    y = (y * np.float32(height / size[1]) - np.float32(intrinsics.cy)) / np.float32(intrinsics.fy)
    points = np.stack([x * z, y * z, z], -1)  # h w 3
    far = np.linalg.norm(points, axis=-1)
    light, longer = np.zeros_like(z), np.zeros_like(z)
    for reach in (0.05, 0.12):  # of the image's width
        for turn in range(8):
            dx, dy = (round(reach * size[0] * f(turn * np.pi / 4)) for f in (np.cos, np.sin))
            move = np.float32([[1, 0, -dx], [0, 1, -dy]])
            other, normal = (cv2.warpAffine(one, move, size, borderMode=cv2.BORDER_REPLICATE)
                             for one in (points, n))
            way = other - points
            length = np.maximum(np.linalg.norm(way, axis=-1), np.float32(1e-3))
            weight = (np.maximum((n * way).sum(-1), 0) * np.maximum(-(normal * way).sum(-1), 0)
                      / (length * length)) * cv2.warpAffine(grey, move, size) * np.float32(0.1)
            light += weight
            longer += weight * np.maximum(
                np.linalg.norm(other, axis=-1) + length - far, 0) / 2
    error = cv2.GaussianBlur(longer / (1 + light), (0, 0), 1.0)
    return cv2.resize(error, (width, height), interpolation=cv2.INTER_LINEAR)


def shift_and_blur(image: np.ndarray, shift: np.ndarray, motion: np.ndarray,
                   defocus: float) -> np.ndarray:
    """Return an image H W 3 moved by `shift` px, smeared along `motion` px, and out of focus."""
    size = image.shape[1::-1]
    move = np.float32([[1, 0, shift[0]], [0, 1, shift[1]]])
    image = cv2.warpAffine(image, move, size, borderMode=cv2.BORDER_REPLICATE)
    length = float(np.hypot(*motion))
    if length > 0.5:
        taps = int(np.ceil(length)) + 1
        parts = (np.float32([[1, 0, motion[0] * t], [0, 1, motion[1] * t]])
                 for t in np.linspace(-0.5, 0.5, taps))
        image = sum(cv2.warpAffine(image, part, size, borderMode=cv2.BORDER_REPLICATE)
                    for part in parts) / np.float32(taps)
    return cv2.GaussianBlur(image, (0, 0), defocus) if defocus > 0.3 else image


def _odd(window: tuple[float, float]) -> tuple[int, int]:
    return tuple(2 * int(side / 2) + 1 for side in window)


def _grid(size: tuple[int, int], cell: float) -> tuple[int, int]:
    return max(2, round(size[0] / cell)), max(2, round(size[1] / cell))


def _enlarged(state: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    smooth = cv2.resize(state, size, interpolation=cv2.INTER_CUBIC)
    return smooth / max(float(smooth.std()), 1e-6)
