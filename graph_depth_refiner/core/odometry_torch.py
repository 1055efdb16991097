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
"""Normal equations of the camera's motion: the reference, on any torch device."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from graph_depth_refiner.core import odometry as stage
from graph_depth_refiner.core.camera_torch import plane_vectors
from graph_depth_refiner.core.filters_torch import blur_reflected, halve
from graph_depth_refiner.core.statistics_torch import masked_median
from graph_depth_refiner.frame import Intrinsics


def blurred(images: tuple[torch.Tensor, ...], sigma: float) -> tuple[torch.Tensor, ...]:
    """Return images, H W, without what interpolation would show of single pixels."""
    return tuple(blur_reflected(torch.stack(images), sigma))


def halved(images: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Return images, H W, of half their size."""
    return tuple(halve(torch.stack(images)))


@dataclass
class Search:
    """Where a search for a motion stands."""

    matrix: torch.Tensor  # 4 4
    gain_bias: torch.Tensor  # 2
    scale: torch.Tensor  # pixels, of the motion of blocks
    found: torch.Tensor  # SEEN + 4, the last sums
    failed: torch.Tensor  # bool


def search_motion(problem: stage.Alignment, matrix: torch.Tensor, plan: tuple,
                  block_flow_scale: float) -> torch.Tensor:
    """
    Return the 16 numbers of the motion that is found from a first one on, and 1 if it is trusted.

    As nobody is asked whether it has settled, all steps are gone through; those after it has
    change nothing.
    """
    numbers = matrix.new_zeros(stage.SEEN + 4)
    at = Search(matrix, torch.arange(2, device=matrix.device).sub(1).abs().to(matrix.dtype),
                numbers.new_full((), block_flow_scale), numbers, problem.near <= 0)
    for part in plan:
        active = ~at.failed
        for _ in range(part[2]):
            active = _step(problem, at, active, part)
    height, width = problem.now.d.shape
    seen, alike, measured, agreeing = at.found[stage.SEEN:, None]
    trusted = ~at.failed & torch.isfinite(at.matrix).all() & (
        measured > stage.LEAST_SAMPLES * height * width / stage.PLAN[-1][1] ** 2) & (
        agreeing > stage.LEAST_AGREEING * measured) & (alike > stage.LEAST_ALIKE * seen)
    return torch.cat((at.matrix.flatten(), trusted.to(at.matrix.dtype)))


def _step(problem: stage.Alignment, at: Search, active: torch.Tensor, part: tuple
          ) -> torch.Tensor:
    """Take a Gauss-Newton step if the search is active; return whether it is still."""
    floor, stride, _, wider, most = part
    now, images = problem.now, problem.images[min(floor, len(problem.images) - 1)]
    by_block, shifts = normal_equations(
        problem.past.planes, problem.steady, images[0], now.d, now.m, images[1], stride,
        at.matrix, at.gain_bias, now.intrinsics, wider * now.sigma,
        wider * stage.PHOTOMETRIC_SIGMA, at.scale)
    sums = by_block.sum(dim=0)
    shift = masked_median(shifts, by_block[:, stage.SEEN] > 0)
    shift = torch.where(shift < torch.inf, shift, 0)
    step = _solve(sums, problem.near)
    bad = ~torch.isfinite(step).all() | (shift > most)
    at.failed, at.found = at.failed | (active & bad), torch.where(active, sums, at.found)
    active = active & ~bad
    at.matrix = torch.where(active, _moved(at.matrix, step), at.matrix)
    at.gain_bias = torch.where(active, at.gain_bias + step[6:], at.gain_bias)
    at.scale = torch.where(active, (2 * shift).clamp(min=stage.BLOCK_FLOW_SCALE), at.scale)
    pixels = now.intrinsics.fx * torch.maximum(
        step[:3].abs().max(), step[3:6].abs().max() * problem.near)
    return active & (pixels >= stage.STILL * 2 ** floor)


def _solve(sums: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
    """Return the Gauss-Newton step, slightly damped, in units free of the scene's scale."""
    size = stage.TERMS
    place = torch.arange(size + 1, device=sums.device)
    rows = place[:size, None]
    first = rows * (2 * size + 3 - rows) // 2  # of a row of the upper triangle, with J^T r
    at = torch.where(place >= rows, first + place - rows, 0)
    upper = torch.where(place >= rows, sums[at], 0)
    matrix, vector = upper[:, :size], upper[:, size]
    matrix = matrix + matrix.triu(1).T
    scale = torch.where((place[:size] >= 3) & (place[:size] < 6), 1 / near, 1)
    matrix = matrix * scale[:, None] * scale
    damping = 1e-6 * matrix.diagonal().sum() / size + 1e-12
    matrix = matrix + damping * (place[:size] == rows)
    step, _ = torch.linalg.solve_ex(matrix, -vector * scale)
    return step * scale


def _moved(matrix: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """Return a motion, 4 4, followed by a small one: a rotation vector and a shift."""
    x, y, z = step[:3]
    none = torch.zeros_like(x)
    cross = torch.stack((none, -z, y, z, none, -x, -y, x, none)).view(3, 3)
    square = (step[:3] * step[:3]).sum()
    angle = square.sqrt().clamp(min=1e-12)
    rotation = _identity(3, matrix) + torch.sin(angle) / angle * cross + (
        1 - torch.cos(angle)) / angle.square() * (cross @ cross)
    top = rotation @ matrix[:3] + step[3:6, None] * matrix[3]
    return torch.cat((top, matrix[3:]))


def _identity(size: int, like: torch.Tensor) -> torch.Tensor:
    return torch.eye(size, dtype=like.dtype, device=like.device)


def normal_equations(x: torch.Tensor, n: torch.Tensor, before: torch.Tensor, d: torch.Tensor,
                     m: torch.Tensor, now: torch.Tensor, stride: int, motion: torch.Tensor,
                     gain_bias: torch.Tensor, intrinsics: Intrinsics, sigma: torch.Tensor,
                     photometric_sigma: float, block_flow_scale: torch.Tensor
                     ) -> tuple[torch.Tensor, torch.Tensor]:
    """
    Linearise the misfit of planes and images at a motion, in float64.

    Samples are every `stride`-th plane x (3 H W) with frame count n. The image residual is
    now(pi(P')) - gain before - bias; the depth residual is that of the measured d, interpolated
    where the point lands, against the moved plane there. The images may be smaller.
    """
    height, width = n.shape
    k, scale = intrinsics, now.shape[1] / width
    rotation, translation = motion[:3, :3], motion[:3, 3:]
    v, u = (places.flatten() for places in torch.meshgrid(
        _samples(height, stride, x.device), _samples(width, stride, x.device), indexing='ij'))
    inverse = x[0, v, u].double()
    use = (inverse > 0) & (n[v, u] > 0)
    ray = _rays(u, v, k)  # 3 N
    p = rotation @ (ray / torch.where(use, inverse, 1)) + translation  # 3 N
    use = use & (p[2] > 0)
    px, py, pz = torch.where(use, p, 1)
    to_u, to_v = k.fx * px / pz + k.cx, k.fy * py / pz + k.cy
    low, right, bottom = stage.MARGIN, width - 1 - stage.MARGIN, height - 1 - stage.MARGIN
    use = use & (to_u >= low) & (to_v >= low) & (to_u <= right) & (to_v <= bottom)
    to_u, to_v = torch.where(use, to_u, 0), torch.where(use, to_v, 0)
    blocks = (v // stage.BLOCK) * -(-width // stage.BLOCK) + u // stage.BLOCK
    number = -(-height // stage.BLOCK) * -(-width // stage.BLOCK)

    is_now, gu, gv = _bilinear(now, (to_u + 0.5) * scale - 0.5, (to_v + 0.5) * scale - 0.5)
    was, _, _ = _bilinear(
        before, (u.double() + 0.5) * scale - 0.5, (v.double() + 0.5) * scale - 0.5)
    gu, gv = gu * scale, gv * scale
    gain, bias = gain_bias
    r = is_now - gain * was - bias
    gx, gy = gu * k.fx / pz, gv * k.fy / pz
    slope = torch.stack((gx, gy, -(gx * px + gy * py) / pz))
    point = torch.stack((px, py, pz))
    j = torch.cat((torch.linalg.cross(point, slope, dim=0), slope,
                   torch.stack((-was, -torch.ones_like(was)))))  # 8 N
    e = r / photometric_sigma
    w = use / ((1 + e * e) * photometric_sigma) ** 2
    counts = torch.stack((use, use & (e * e < stage.OUTLIER)))
    flow = torch.stack((w * gu * gu, w * gu * gv, w * gv * gv, w * gu * r, w * gv * r))

    q = plane_vectors(x.double(), intrinsics)[:, v, u]  # 3 N
    depth_terms, depth_counts = _depth_terms(
        q, use, (to_u, to_v), d, m, rotation, translation, intrinsics, sigma)
    rows = torch.cat((_terms(j, r, w) + depth_terms, counts, depth_counts, flow))
    sums = rows.new_zeros((number, len(rows))).index_add_(0, blocks, rows.T)
    shifts = _shifts(sums[:, stage.SEEN + 4:], photometric_sigma)
    still = 1 / (1 + (shifts / block_flow_scale).square()).square()
    counted = sums[:, stage.SEEN:stage.SEEN + 4]
    return torch.cat((sums[:, :stage.SEEN] * still[:, None], counted), dim=1), shifts


def _samples(side: int, stride: int, device: torch.device) -> torch.Tensor:
    """Return every stride-th place of every block."""
    steps = range(stride // 2, stage.BLOCK, stride)
    within = stride // 2 + stride * torch.arange(len(steps), device=device)
    places = (stage.BLOCK * torch.arange(-(-side // stage.BLOCK), device=device)[:, None]
              + within).flatten()
    last = side - stage.BLOCK * (side // stage.BLOCK)  # places of the last block, if it is cut
    left = len(steps) * (side // stage.BLOCK) + sum(step < last for step in steps)
    return places[:left]


def _rays(column, row, intrinsics):
    """Return the rays through pixels, 3 N, of length 1 along the axis of the camera."""
    k, column, row = intrinsics, column.double(), row.double()
    return torch.stack(((column - k.cx) / k.fx, (row - k.cy) / k.fy, torch.ones_like(row)))


def _depth_terms(planes, use, place, d, m, rotation, translation, intrinsics, sigma):
    """Return the point-to-plane terms, SEEN N, where points land, and counts."""
    column, row, value, weight, share = _measured(d, m, *place)
    use = use & (share > 0)
    rays = _rays(column, row, intrinsics)  # 3 N
    q = rotation @ planes
    q = torch.where(use, q / (1 + (translation * q).sum(dim=0)), 0)
    predicted = (q * rays).sum(dim=0)
    r = value - predicted
    j = torch.cat((-torch.linalg.cross(q, rays, dim=0), predicted * q,
                   torch.zeros_like(q[:stage.TERMS - 6])))  # 8 N
    e = r / (stage.DEPTH_SCALE * sigma)
    w = use * weight / ((1 + e * e) * sigma) ** 2
    return _terms(j, r, w), torch.stack((use * share, use * share * (e * e < stage.OUTLIER)))


def _measured(d, m, u, v):
    """Return column, row, d and weight of what is measured around (u, v), and its share."""
    sums, share = u.new_zeros((4, len(u))), torch.zeros_like(u)
    first, top = torch.floor(u).long(), torch.floor(v).long()
    for row, column in ((top + a, first + b) for a in (0, 1) for b in (0, 1)):
        part = (1 - (row - v).abs()) * (1 - (column - u).abs())
        weight = part * m[row, column]
        sums = sums + weight * torch.stack(
            (column.double(), row.double(), d[row, column].double(), torch.ones_like(u)))
        share = share + part * (weight > 0)
    weight = sums[3]
    return *(sums[:3] / torch.where(share > 0, weight, 1)), weight, share


def _terms(j, r, w):
    """Return w J^T J and w J^T r of samples, SEEN N, the upper triangle row by row."""
    return torch.stack([
        w * j[a] * other for a in range(stage.TERMS) for other in (*j[a:], r)])


def _bilinear(image, u, v):
    """Return the image at (u, v) and its two slopes, of central differences, interpolated."""
    height, width = image.shape
    around = torch.arange(-1, 3, device=u.device)[:, None]
    columns = torch.floor(u).long().clamp(0, width - 2) + around
    rows = torch.floor(v).long().clamp(0, height - 2) + around
    fu, fv = u - columns[1], v - rows[1]
    columns, rows = columns.clamp(0, width - 1), rows.clamp(0, height - 1)
    around = image[rows[:, None], columns].double()  # 4 4 N
    across, down = (1 - fu) * around[:, 1] + fu * around[:, 2], (
        (1 - fv) * around[1] + fv * around[2])  # 4 N each: by rows, by columns
    return ((1 - fv) * across[1] + fv * across[2],
            0.5 * ((1 - fu) * (down[2] - down[0]) + fu * (down[3] - down[1])),
            0.5 * ((1 - fv) * (across[2] - across[0]) + fv * (across[3] - across[1])))


def _shifts(flow, photometric_sigma):
    """Return by how many pixels every block would move on its own: a Lucas-Kanade step."""
    uu, uv, vv, ur, vr = flow.T
    flat = stage.FLAT_BLOCK / photometric_sigma ** 2
    uu, vv = uu + flat, vv + flat
    determinant = uu * vv - uv * uv
    return torch.hypot((vv * ur - uv * vr) / determinant, (uu * vr - uv * ur) / determinant)
