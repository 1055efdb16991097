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
"""Image filters on any torch device that agree with those of OpenCV."""

from __future__ import annotations

import torch
from torch.nn.functional import max_pool2d, pad


def gaussian(sigma: float, size: int, like: torch.Tensor) -> torch.Tensor:
    """Return the weights of a Gaussian, as of cv2.getGaussianKernel."""
    place = torch.arange(size, dtype=torch.float64, device=like.device) - size // 2
    weights = torch.exp(-0.5 * (place / sigma).square())
    return (weights / weights.sum()).to(like.dtype)


def blur(images: torch.Tensor, weights: torch.Tensor, mode: str) -> torch.Tensor:
    """Return images, C H W, blurred along both axes."""
    if min(images.shape[-2:]) <= len(weights) // 2:
        mode = 'replicate'  # too small for a reflection
    # products and sums: convolutions of CUDA round to fewer bits
    wide = pad(images[None], (len(weights) // 2,) * 4, mode=mode)[0]
    columns = (wide.unfold(1, len(weights), 1) * weights).sum(dim=-1)
    return (columns.unfold(2, len(weights), 1) * weights).sum(dim=-1)


def blur_reflected(images: torch.Tensor, sigma: float) -> torch.Tensor:
    """Return images, C H W, as of cv2.GaussianBlur over 5x5 pixels."""
    return blur(images, gaussian(sigma, 5, images), 'reflect')


def halve(images: torch.Tensor) -> torch.Tensor:
    """Return images, C H W, at half their size, as of cv2.pyrDown."""
    place = torch.arange(5, device=images.device) - 2
    weights = (6 - place.abs() * (place.abs() + 3) // 2).to(images.dtype) / 16  # 1 4 6 4 1
    return blur(images, weights, 'reflect')[:, ::2, ::2].contiguous()


def dilate(image: torch.Tensor, side: int, border: float) -> torch.Tensor:
    """Return the largest value, H W, in a square around every pixel, as of cv2.dilate."""
    before, after = side // 2, side - 1 - side // 2
    wide = pad(image[None], (before, after, before, after), value=border)
    rows = max_pool2d(wide, (side, 1), stride=1)
    return max_pool2d(rows, (1, side), stride=1)[0]


def close(mask: torch.Tensor, width: int) -> torch.Tensor:
    """Return a mask, H W of 0 and 1, with what is narrower than a width closed."""
    if width < 1:
        return mask
    grown = dilate(mask, width + 1, 0.0)
    return torch.maximum(mask, -dilate(-grown, width + 1, 0.0))


def median3(image: torch.Tensor) -> torch.Tensor:
    """Return the median, H W, of the 3x3 pixels around every one, as of cv2.medianBlur."""
    wide = pad(image[None, None], (1, 1, 1, 1), mode='replicate')[0, 0]
    around = wide.unfold(0, 3, 1).unfold(1, 3, 1).flatten(2)  # H W 9
    return around.sort(dim=-1).values[..., 4].contiguous()
