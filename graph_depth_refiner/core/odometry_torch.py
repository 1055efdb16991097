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

import numpy as np
import torch

from graph_depth_refiner.core import odometry as stage
from graph_depth_refiner.core.camera_torch import plane_vectors
from graph_depth_refiner.frame import Intrinsics


def normal_equations(x: torch.Tensor, n: torch.Tensor, before: torch.Tensor, d: torch.Tensor,
                     m: torch.Tensor, now: torch.Tensor, stride: int, motion: np.ndarray,
                     gain_bias: np.ndarray, intrinsics: Intrinsics, sigma: float,
                     photometric_sigma: float, block_flow_scale: float
                     ) -> tuple[torch.Tensor, torch.Tensor]:
    """
    Linearise the misfit of planes and images at a motion, in float64.

    Samples are every `stride`-th plane x (3 H W) with frame count n. The image residual is
    now(pi(P')) - gain before - bias; the depth residual is that of the measured d, interpolated
    where the point lands, against the moved plane there. The images may be smaller.
    """
    height, width = n.shape
    k, scale = intrinsics, now.shape[1] / width
    rotation, translation = (
        torch.from_numpy(part.astype(np.float64)).to(x.device)
        for part in (motion[:3, :3], motion[:3, 3:]))  # 3 3, 3 1
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
    places = [place for first in range(0, side, stage.BLOCK)
              for place in range(first + stride // 2, min(first + stage.BLOCK, side), stride)]
    return torch.tensor(places, dtype=torch.int64, device=device)


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
    reach = torch.arange(-1, 3, device=u.device)[:, None]
    columns = torch.floor(u).long().clamp(0, width - 2) + reach  # 4 N
    rows = torch.floor(v).long().clamp(0, height - 2) + reach  # 4 N
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
