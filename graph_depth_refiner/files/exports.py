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
"""Write depth, normals and organised point clouds in the formats other tools read."""

from __future__ import annotations

import os
from pathlib import Path

import cv2
import numpy as np

from graph_depth_refiner.core.camera import points
from graph_depth_refiner.files.exr import write_exr
from graph_depth_refiner.frame import Intrinsics

MAP_FORMATS = ('png', 'npy', 'pfm', 'exr')
CLOUD_FORMATS = ('ply', 'pcd')
_VERTEX = np.dtype([
    ('x', '<f4'), ('y', '<f4'), ('z', '<f4'),
    ('normal_x', '<f4'), ('normal_y', '<f4'), ('normal_z', '<f4'),
    ('b', 'u1'), ('g', 'u1'), ('r', 'u1'), ('a', 'u1')])
_PLY_NAMES = {
    'normal_x': 'nx', 'normal_y': 'ny', 'normal_z': 'nz',
    'r': 'red', 'g': 'green', 'b': 'blue', 'a': 'alpha'}


def check_place(name: str, path: Path) -> None:
    """Refuse a file that could not be written, before hours of work."""
    folder = path.absolute().parent
    if path.is_dir() or not folder.is_dir() or not os.access(
            path if path.exists() else folder, os.W_OK):
        raise ValueError(f'{name}: expected a file that can be written, got {str(path)!r}')


def write_depth(path: Path, depth: np.ndarray, scale: float) -> None:
    """Write depth in metres; as PNG in counts of 1 / scale metres with 0 where unknown."""
    if path.suffix == '.png':
        counts = np.rint(np.nan_to_num(depth, posinf=0, neginf=0).astype(np.float64) * scale)
        _write_png(path, np.clip(counts, 0, np.iinfo(np.uint16).max).astype(np.uint16))
    else:
        _write_map(path, depth)


def write_normals(path: Path, normals: np.ndarray) -> None:
    """Write normals; as PNG with 16 bit RGB = (n + 1) / 2, 0 where unknown."""
    if path.suffix == '.png':
        top = np.iinfo(np.uint16).max
        counts = np.rint((normals.astype(np.float64) + 1) / 2 * top)
        counts = np.where(np.isfinite(counts), np.maximum(counts, 1), 0).astype(np.uint16)
        _write_png(path, np.ascontiguousarray(counts[..., ::-1]))  # OpenCV writes BGR
    else:
        _write_map(path, normals)


def write_cloud(
        path: Path, depth: np.ndarray, normals: np.ndarray, colors: np.ndarray,
        intrinsics: Intrinsics) -> None:
    """Write an organised cloud of all pixels, row by row; NaN where depth is unknown."""
    vertices = np.zeros(depth.shape, _VERTEX)
    space = np.where(np.isfinite(depth)[..., None], points(depth, intrinsics), np.nan)  # H W 3
    for axis, name in enumerate('xyz'):
        vertices[name] = space[..., axis]
        vertices[f'normal_{name}'] = normals[..., axis]
    for channel, name in enumerate('rgb'):
        vertices[name] = colors[..., channel]
    vertices['a'] = 255
    header = {'.ply': _ply_header, '.pcd': _pcd_header}[path.suffix](depth.shape)
    path.write_bytes(header.encode('ascii') + vertices.tobytes())


def _ply_header(shape: tuple[int, int]) -> str:
    kinds = {'<f4': 'float', '|u1': 'uchar'}
    properties = '\n'.join(
        f'property {kinds[_VERTEX[name].str]} {_PLY_NAMES.get(name, name)}'
        for name in _VERTEX.names)
    rows, columns = shape
    return (
        'ply\nformat binary_little_endian 1.0\n'
        f'obj_info num_cols {columns}\nobj_info num_rows {rows}\n'
        f'element vertex {rows * columns}\n{properties}\nend_header\n')


def _pcd_header(shape: tuple[int, int]) -> str:
    rows, columns = shape
    return (
        '# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\n'
        'FIELDS x y z normal_x normal_y normal_z rgb\n'
        'SIZE 4 4 4 4 4 4 4\nTYPE F F F F F F U\nCOUNT 1 1 1 1 1 1 1\n'
        f'WIDTH {columns}\nHEIGHT {rows}\nVIEWPOINT 0 0 0 1 0 0 0\n'
        f'POINTS {rows * columns}\nDATA binary\n')


def _write_map(path: Path, values: np.ndarray) -> None:
    if path.suffix == '.npy':
        np.save(path, values, allow_pickle=False)
    elif path.suffix == '.pfm':
        _write_pfm(path, values)
    elif path.suffix == '.exr':
        write_exr(path, values)
    else:
        raise ValueError(
            f'{path}: expected one of {", ".join(MAP_FORMATS)}, got {path.suffix or "no suffix"}')


def _write_pfm(path: Path, values: np.ndarray) -> None:
    kind = 'Pf' if values.ndim == 2 else 'PF'
    header = f'{kind}\n{values.shape[1]} {values.shape[0]}\n-1.0\n'.encode('ascii')
    path.write_bytes(header + values[::-1].astype('<f4').tobytes())


def _write_png(path: Path, counts: np.ndarray) -> None:
    done, data = cv2.imencode('.png', counts)
    if not done:
        raise ValueError(f'{path}: expected a map OpenCV can encode, got {counts.shape}')
    path.write_bytes(data.tobytes())
